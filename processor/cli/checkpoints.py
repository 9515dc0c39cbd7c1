"""``processor checkpoints``: what the decision log of a job holds. Works whether the job runs or not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from processor.cli.options import ConfigOption, JobArgument, SetOption
from processor.cli.reporting import Reporting, reporting

if TYPE_CHECKING:
    from processor.storage.decision_log import DecisionLog

app = typer.Typer(
    name="checkpoints",
    help="Look at the checkpoints of a job.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("list")
def list_(job: JobArgument, config: ConfigOption = None, set_: SetOption = None) -> None:
    """Every entry of the decision log that is kept, oldest first."""
    with reporting() as told:
        from processor.cli.checkpoint_text import list_text

        log = _opened(job, config, set_, told)
        typer.echo(list_text(log.read_all().entries, log.published()))


@app.command()
def show(
    job: JobArgument,
    checkpoint: Annotated[
        int | None, typer.Argument(metavar="[ID]", help="Its number; the newest when left out.")
    ] = None,
    config: ConfigOption = None,
    set_: SetOption = None,
) -> None:
    """One checkpoint: positions, state, output, files."""
    with reporting() as told:
        from processor.cli.checkpoint_text import chosen, show_text

        log = _opened(job, config, set_, told)
        entry = chosen(log.read_all().entries, checkpoint, job)
        typer.echo(show_text(entry, log.published()))


def _opened(
    job: str, config: Sequence[Path] | None, assignments: Sequence[str] | None, told: Reporting
) -> DecisionLog:
    """The log as it is, opened for looking only: nothing is made, claimed or sealed."""
    import secrets

    from processor.cli.configured import checkpoint_directory, load_configured
    from processor.ids import JobName
    from processor.storage.decision_log import DecisionLog
    from processor.storage.directory import open_job_directory

    root = checkpoint_directory(load_configured(config, assignments, told).settings)
    directory = open_job_directory(root, JobName(job), token=secrets.token_hex, make=False)
    return DecisionLog(directory.log)
