"""``processor worker``: a process that runs a part of a job. ``processor run --workers`` starts it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from processor.cli.options import BuildArgument, ConfigOption, SetOption
from processor.cli.reporting import reporting


def worker(
    build: BuildArgument,
    number: Annotated[int, typer.Option("--worker", help="Its number.")],
    control: Annotated[int, typer.Option("--control-fd", help="Its end of the stream to the coordinator.")],
    parent: Annotated[int, typer.Option("--parent", help="The coordinator's process.")],
    sockets: Annotated[Path, typer.Option("--sockets", help="The folder where workers meet.")],
    config: ConfigOption = None,
    set_: SetOption = None,
) -> None:
    """Run a part of a job, as its coordinator says."""
    from processor.runtime.parent_death import die_with_parent

    die_with_parent(parent)
    with reporting() as told:
        from processor.cli.configured import load_configured
        from processor.cli.job_reference import load_graph

        settings = load_configured(config, set_, told).settings
        graph = load_graph(build)

        from processor.ids import WorkerId
        from processor.runtime.worker_process import run_worker
        from processor.telemetry.log import get_log

        log = get_log("worker").bind(job=graph.name, worker=number)
        run_worker(graph, settings, WorkerId(number), control, sockets, log)
