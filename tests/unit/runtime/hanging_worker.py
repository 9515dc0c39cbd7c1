"""A worker process that joins and then hangs: whoever tells it to release an attempt, it never does.

python -m tests.unit.runtime.hanging_worker ADDRESS FOLDER SECRET
"""

from __future__ import annotations

import sys
import threading
from typing import Final

from processor.channels.credentials import Credentials
from processor.cli.job_reference import load_graph
from processor.fault_points import FaultPoint
from processor.plugins import installed_plugins
from processor.runtime.cluster.joining_worker import JoiningWorker
from processor.runtime.cluster.network_address import network_address
from processor.runtime.worker_process import WorkerJob
from processor.settings.loading import load_settings
from processor.telemetry.log import configure_logging, get_log

LEAVE_S_MAX: Final = 0.2
JOB: Final = "tests.integration.jobs:copy"


def hang(point: FaultPoint) -> None:
    if point is FaultPoint.RELEASING:
        threading.Event().wait()


def worker_job(folder: str) -> WorkerJob:
    """Of workers and their coordinator."""
    settings = load_settings(
        plugins=installed_plugins().settings_models(),
        environ={},
        assignments=[
            f"checkpoint.directory={folder}/checkpoints",
            f"state.directory={folder}/state",
            "kafka.main.bootstrap_servers=127.0.0.1:1",
        ],
    ).settings
    configure_logging(settings.log)
    return WorkerJob(
        graph=load_graph(JOB),
        settings=settings,
        log=get_log("worker"),
        faults=hang,
        leave_s_max=LEAVE_S_MAX,
    )


if __name__ == "__main__":
    address, folder, secret = sys.argv[1:]
    credentials = Credentials(secret=secret.encode())
    JoiningWorker(worker_job(folder), network_address(address, "test"), None, credentials).run()
