"""``processor savepoint``: a checkpoint that stays, in a directory of one's own."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from processor.cli.options import ConfigOption, JobArgument, SetOption, TimeoutOption
from processor.cli.reporting import reporting


def savepoint(
    job: JobArgument,
    to: Annotated[str, typer.Option("--to", metavar="DIR", help="The directory to make it in.")],
    config: ConfigOption = None,
    set_: SetOption = None,
    timeout: TimeoutOption = "10m",
) -> None:
    """Have a running job write a savepoint, and go on. Its path is printed last."""
    with reporting() as told:
        from processor.cli.control import client_of, tell_outcome, timeout_ms

        wait_ms = timeout_ms(timeout)
        outcome = client_of(job, config, set_, told).savepoint(os.path.abspath(to), wait_ms)
        tell_outcome("savepoint", outcome)
