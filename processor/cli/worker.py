"""``processor worker``: a process that runs a part of a job. ``processor run --workers`` starts it on its own
machine; on others it is started with the coordinator's address, and comes by itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from processor.cli.options import BuildArgument, ConfigOption, ParentOption, SetOption, tied_to
from processor.cli.reporting import reporting
from processor.errors import SettingsError

if TYPE_CHECKING:
    from processor.runtime.worker_process import WorkerJob


def worker(
    build: BuildArgument,
    coordinator: Annotated[
        str | None,
        typer.Option(
            "--coordinator", metavar="tcp:HOST:PORT", help="Where the job's coordinator waits for workers."
        ),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen",
            metavar="tcp:HOST:PORT",
            help="Where other workers reach this one; by default any free port of the address by which it reaches "
            "the coordinator.",
        ),
    ] = None,
    number: Annotated[int | None, typer.Option("--worker", hidden=True)] = None,
    control: Annotated[int | None, typer.Option("--control-fd", hidden=True)] = None,
    parent: ParentOption = None,
    sockets: Annotated[Path | None, typer.Option("--sockets", hidden=True)] = None,
    config: ConfigOption = None,
    set_: SetOption = None,
) -> None:
    """Run a part of a job, as its coordinator says."""
    tied_to(parent)
    with reporting() as told:
        from processor.cli.configured import load_configured
        from processor.cli.job_reference import load_graph

        settings = load_configured(config, set_, told).settings
        graph = load_graph(build)

        from processor.ids import WorkerId
        from processor.runtime.worker_process import WorkerJob, run_worker
        from processor.telemetry.log import get_log

        log = get_log("worker").bind(job=graph.name)
        if coordinator is not None:
            _join(WorkerJob(graph=graph, settings=settings, log=log), coordinator, listen)
        elif number is not None and control is not None and sockets is not None:
            job = WorkerJob(graph=graph, settings=settings, log=log.bind(worker=number))
            run_worker(job, WorkerId(number), control, sockets)
        else:
            raise SettingsError(
                "--coordinator was not given: nobody knows which coordinator this worker is for.",
                remedy="Give the address that the coordinator listens on, runtime.cluster.listen.",
            )


def _join(job: WorkerJob, coordinator: str, listen: str | None) -> None:
    from processor.channels.credentials import credentials_of
    from processor.runtime.cluster.joining_worker import JoiningWorker
    from processor.runtime.cluster.network_address import network_address

    JoiningWorker(
        job,
        network_address(coordinator, "--coordinator"),
        None if listen is None else network_address(listen, "--listen"),
        credentials_of(job.settings.runtime.cluster),
    ).run_until_signalled()
