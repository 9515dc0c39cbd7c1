"""``processor settings``: what every setting is, and why."""

from __future__ import annotations

from typing import Annotated

import typer

from processor.cli.options import ConfigOption, SetOption
from processor.cli.reporting import reporting

app = typer.Typer(name="settings", help="Look at settings.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
def show(
    config: ConfigOption = None,
    set_: SetOption = None,
    origin: Annotated[bool, typer.Option("--origin", help="Also say where each value came from.")] = False,
) -> None:
    """Print every setting as a command with these options would see it. Secrets are masked."""
    with reporting() as told:
        from processor.cli.configured import load_configured
        from processor.cli.table import aligned
        from processor.settings.shown import shown_settings

        rows = [
            (row.path, f"= {row.value}", f"# {row.origin}") if origin else (row.path, f"= {row.value}")
            for row in shown_settings(load_configured(config, set_, told))
        ]
        typer.echo("\n".join(aligned(rows)))


@app.command()
def defaults() -> None:
    """Print every setting with its default and its meaning, as YAML."""
    with reporting():
        from processor.plugins import installed_plugins
        from processor.settings.defaults import defaults_yaml
        from processor.settings.model import CORE_SECTIONS

        models = {**CORE_SECTIONS, **installed_plugins().settings_models()}
        typer.echo(defaults_yaml(models), nl=False)
