"""``processor dev``: what connectors offer to developers, such as a Kafka to work against."""

from __future__ import annotations

from typing import Any, Final

import typer

from processor.cli.reporting import reporting
from processor.errors import SettingsError

CONTEXT_SETTINGS: Final[dict[str, Any]] = {"allow_extra_args": True, "ignore_unknown_options": True}
"""Everything after ``dev`` belongs to the plugin, ``--help`` included. A group of typer's would have to
import every plugin to know its commands."""


def dev(context: typer.Context) -> None:
    """Commands of connectors for developers: processor dev PLUGIN COMMAND."""
    with reporting():
        from processor.plugins import installed_plugins

        plugins = installed_plugins()
        if not context.args or context.args[0].startswith("-"):
            names = ", ".join(plugins.names) or "none is installed"
            typer.echo(f"Usage: processor dev PLUGIN COMMAND\n\nPlugins: {names}")
            return
        name, *arguments = context.args
        commands = plugins.get(name).dev_commands()
        if commands is None:
            raise SettingsError(f"plugin '{name}' has no commands for developers.", remedy="Leave it out.")
        command = typer.main.get_command(commands)
        shown = arguments or ["--help"]
        # A Typer with a single command becomes that command, and its name would be taken for an argument.
        if not isinstance(command, typer.core.TyperGroup):
            shown = arguments[1:]
        command(args=shown, prog_name=f"processor dev {name}")
