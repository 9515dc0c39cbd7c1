"""``processor checkpoints``: what the decision log of a job holds, whether it runs or not; and what a running one
remembers of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from processor.cli.options import ConfigOption, JobArgument, SetOption, TimeoutOption
from processor.cli.reporting import Reporting, reporting

if TYPE_CHECKING:
    from processor.contracts.checkpoint_view import CheckpointsView
    from processor.storage.decision_log import DecisionLog

app = typer.Typer(
    name="checkpoints",
    help="Take checkpoints of a job, and look at them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command()
def take(
    job: JobArgument,
    full: Annotated[
        bool, typer.Option("--full", help="Write all state anew: it needs no file of an earlier checkpoint.")
    ] = False,
    config: ConfigOption = None,
    set_: SetOption = None,
    timeout: TimeoutOption = "10m",
) -> None:
    """Have a running job take a checkpoint now, and go on."""
    with reporting() as told:
        from processor.cli.control import client_of, tell_outcome, timeout_ms

        outcome = client_of(job, config, set_, told).checkpoint(timeout_ms(timeout), full=full)
        tell_outcome("checkpoint", outcome)


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
        int | None, typer.Argument(metavar="[ID]", help="Its number; all, and the newest, when left out.")
    ] = None,
    config: ConfigOption = None,
    set_: SetOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for programs.")] = False,
) -> None:
    """One checkpoint: how it went, as far as the running job remembers it, and what is kept of it: positions,
    state, output, files. Without a number: how all of them went, and the newest that is kept."""
    with reporting() as told:
        from processor.cli.checkpoint_text import chosen, found, show_text

        log = _opened(job, config, set_, told)
        entries, published = log.read_all().entries, log.published()
        seen = _remembered(job, checkpoint, config, set_, told)
        entry = found(entries, checkpoint)
        if entry is None and (seen is None or (checkpoint is not None and seen.asked is None)):
            entry = chosen(entries, checkpoint, job)  # says which there are
        if as_json:
            import msgspec

            whole = {"running": seen is not None, "statistics": seen, "kept": entry, "published": published}
            typer.echo(msgspec.json.encode(whole).decode())
            return
        from processor.cli.statistics_text import overview_text, record_text

        parts = []
        if seen is not None:
            parts.append(overview_text(seen) if checkpoint is None else "")
            parts.append("" if seen.asked is None else record_text(seen.asked))
        if entry is not None:
            parts.append(show_text(entry, published))
        typer.echo("\n\n".join(part for part in parts if part))


def _remembered(
    job: str,
    checkpoint: int | None,
    config: Sequence[Path] | None,
    assignments: Sequence[str] | None,
    told: Reporting,
) -> CheckpointsView | None:
    """What the running job tells; None when none runs here."""
    from processor.cli.control import client_of
    from processor.errors import Unavailable
    from processor.ids import CheckpointId

    asked = None if checkpoint is None else CheckpointId(checkpoint)
    try:
        return client_of(job, config, assignments, told).checkpoints(asked)
    except Unavailable:
        return None


def _opened(
    job: str, config: Sequence[Path] | None, assignments: Sequence[str] | None, told: Reporting
) -> DecisionLog:
    """The log as it is, opened for looking only: nothing is made, claimed or sealed."""
    import secrets

    from processor.cli.configured import load_configured
    from processor.ids import JobName
    from processor.storage.decision_log import DecisionLog
    from processor.storage.job_store import open_job_store
    from processor.storage.places import places_of

    settings = load_configured(config, assignments, told).settings
    where = places_of(settings)
    return DecisionLog(open_job_store(where, JobName(job), token=secrets.token_hex, make=False).log)
