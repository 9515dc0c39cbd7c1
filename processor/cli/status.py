"""``processor status``: a running job, asked through its control socket."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from processor.cli.options import ConfigOption, JobArgument, SetOption
from processor.cli.reporting import reporting

if TYPE_CHECKING:
    from processor.contracts.job_control import JobStatus
    from processor.protocol.failure_history import AttemptFailure

FAILURES_SHOWN: Final = 3
"""The newest; ``--json`` has all that are remembered."""


def status(
    job: JobArgument,
    config: ConfigOption = None,
    set_: SetOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for programs.")] = False,
) -> None:
    """Say how a running job is doing."""
    with reporting() as told:
        from processor.cli.control import client_of

        now = client_of(job, config, set_, told).status()
        if as_json:
            import msgspec

            typer.echo(msgspec.json.encode(now).decode())
        else:
            typer.echo(status_text(now))


def status_text(now: JobStatus) -> str:
    """Name and value a line."""
    from processor.cli.table import aligned

    rows = [
        ("job", now.job),
        ("state", now.state),
        ("attempt", str(now.attempt)),
        ("last checkpoint", _number(now.last_checkpoint)),
        ("published checkpoint", _number(now.published_checkpoint)),
        ("records in", f"{now.records_in:,}"),
        ("records out", f"{now.records_out:,}"),
        ("restarts", str(now.restarts)),
        ("up for", _spent(now.uptime_ms)),
    ]
    if now.waiting_for:
        rows.append(("waiting for", now.waiting_for))
    for step in sorted({*now.counters, *now.gauges}):
        figures = {**now.counters.get(step, {}), **now.gauges.get(step, {})}
        rows += [(f"{step or 'job'}: {name.replace('_', ' ')}", f"{n:,.0f}") for name, n in figures.items()]
    told = ["\n".join(aligned(rows))]
    if now.failures:
        told.append("\n".join(_failures(now.failures)))
    return "\n\n".join(told)


def _failures(failures: Sequence[AttemptFailure]) -> Iterator[str]:
    """The newest few, each in two or three lines."""
    from processor.telemetry.error_text import printable

    shown = failures[:FAILURES_SHOWN]
    yield f"newest failures ({len(shown)} of {len(failures)}):"
    for failure in shown:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(failure.at_ms / 1_000))
        began = (
            "before it began" if failure.checkpoint is None else f"began at checkpoint {failure.checkpoint}"
        )
        attempt = "no attempt yet" if failure.attempt is None else f"attempt {failure.attempt}"
        gained = "" if failure.progressed else ", published nothing"
        yield f"  {when}  {attempt}, {began}{gained}, ran {_spent(failure.ran_ms)}"
        place = failure.place()
        kind = f"{failure.error} ({failure.cause})" if failure.cause else failure.error
        yield "    " + printable(f"{kind}{f', {place}' if place else ''}: {failure.text}")
        if failure.again:
            yield "    " + printable(failure.outlook())


def _number(checkpoint: int | None) -> str:
    return "none yet" if checkpoint is None else str(checkpoint)


def _spent(ms: int) -> str:
    """The two largest units that matter: ``3d 4h``, ``1m 1s``, ``0s``."""
    left_s, parts = ms // 1_000, []
    for unit, seconds in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        count, left_s = divmod(left_s, seconds)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2]) or "0s"
