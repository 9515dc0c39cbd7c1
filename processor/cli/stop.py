"""``processor stop``: ends a running job after a last checkpoint or savepoint."""

from __future__ import annotations

from typing import Annotated

import typer

from processor.cli.options import (
    ConfigOption,
    FormatOption,
    JobArgument,
    SavepointFormat,
    SetOption,
    TimeoutOption,
)
from processor.cli.reporting import reporting


def stop(
    job: JobArgument,
    savepoint: Annotated[
        str | None,
        typer.Option(
            "--savepoint",
            metavar="DIR",
            help="Write a savepoint to this path or URI instead of a checkpoint.",
        ),
    ] = None,
    drain: Annotated[
        bool,
        typer.Option(
            "--drain",
            help="End the job for good: sources end, all that waits for event time comes out. It cannot go on from "
            "there.",
        ),
    ] = False,
    config: ConfigOption = None,
    set_: SetOption = None,
    timeout: TimeoutOption = "10m",
    format: FormatOption = SavepointFormat.CANONICAL,
) -> None:
    """Stop a running job: a last checkpoint is taken and published. A savepoint's path is printed last."""
    with reporting() as told:
        from processor.cli.control import client_of, tell_outcome, timeout_ms
        from processor.storage.savepoint_places import place_named

        wait_ms = timeout_ms(timeout)
        directory = None if savepoint is None else place_named(savepoint)
        native = format is SavepointFormat.NATIVE
        outcome = client_of(job, config, set_, told).stop(directory, wait_ms, drain=drain, native=native)
        tell_outcome("drained" if drain else "stopped", outcome)
