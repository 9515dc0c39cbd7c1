"""``processor rescale``: has a running job go on at another parallelism."""

from __future__ import annotations

from typing import Annotated

import typer

from processor.cli.options import ConfigOption, JobArgument, SetOption, TimeoutOption
from processor.cli.reporting import reporting


def rescale(
    job: JobArgument,
    parallelism: Annotated[
        int,
        typer.Option(
            "--parallelism", "-p", min=1, metavar="N", help="Subtasks of each step that does not say itself."
        ),
    ],
    config: ConfigOption = None,
    set_: SetOption = None,
    timeout: TimeoutOption = "10m",
) -> None:
    """Change the parallelism of a running job: it goes on from a checkpoint taken now. Until the process ends; its
    next start has what runtime.parallelism says."""
    with reporting() as told:
        from processor.cli.control import client_of, tell_outcome, timeout_ms

        wait_ms = timeout_ms(timeout)
        outcome = client_of(job, config, set_, told).rescale(parallelism, wait_ms)
        tell_outcome("rescaled", outcome)
