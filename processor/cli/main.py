"""The ``processor`` command."""

from __future__ import annotations

from typing import Annotated

import typer

from processor.cli import (
    checkpoints,
    dev,
    doctor,
    explain,
    outbox,
    probe,
    replay,
    rescale,
    run,
    savepoint,
    settings,
    status,
    stop,
    verify,
    worker,
)

app = typer.Typer(
    name="processor",
    help="An exactly-once stream processor for Kafka.",
    no_args_is_help=True,
    add_completion=False,
    # Plain help and plain errors: they are read in logs and terminals alike, and the rich ones load slowly.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

app.command("run")(run.run)
app.command("worker")(worker.worker)
app.command("explain")(explain.explain)
app.command("status")(status.status)
app.add_typer(probe.app)
app.command("stop")(stop.stop)
app.command("rescale")(rescale.rescale)
app.add_typer(savepoint.app)
app.add_typer(checkpoints.app)
app.add_typer(outbox.app)
app.command("replay")(replay.replay)
app.command("verify")(verify.verify)
app.command("doctor")(doctor.doctor)
app.add_typer(settings.app)
app.command("dev", context_settings=dev.CONTEXT_SETTINGS, add_help_option=False)(dev.dev)


def _print_version(wanted: bool) -> None:
    if wanted:
        from processor import __version__

        typer.echo(__version__)
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """An exactly-once stream processor for Kafka."""


def main() -> None:
    """Entry point of the installed command."""
    app(prog_name="processor")


if __name__ == "__main__":
    main()
