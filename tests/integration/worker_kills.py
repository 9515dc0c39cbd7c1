"""What may happen to the processes of a job in several workers: each of them killed, stopped for a while, or all."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from examples.job_process import JobProcess
from tests.processes import children
from tests.waiting import wait_until

ASLEEP_S = (0.2, 4.0)
"""Shorter and longer than a heartbeat may be missing in these runs."""

GONE_S_MAX = 30.0

SETTINGS = {
    "runtime.heartbeat_interval": "200ms",
    "runtime.heartbeat_timeout": "2s",
    "runtime.restart.strategy": "fixed-delay",
    "runtime.restart.attempts": "1000",
}
"""Of the job: what is stopped is given up within the run, and no number of kills ends it."""


def worker_processes(process: JobProcess) -> list[int]:
    """The numbers of the job's worker processes, as far as they are there."""
    return children(process.pid)


def kill_worker(process: JobProcess, chance: random.Random) -> None:
    workers = worker_processes(process)
    if workers:
        _signal(chance.choice(workers), signal.SIGKILL)


def kill_all_workers(process: JobProcess, chance: random.Random) -> None:
    for worker in worker_processes(process):
        _signal(worker, signal.SIGKILL)


def kill_coordinator(process: JobProcess, chance: random.Random) -> None:
    """No worker outlives it."""
    workers = worker_processes(process)
    process.kill()
    wait_until(
        lambda: not [worker for worker in workers if Path(f"/proc/{worker}").exists()],
        GONE_S_MAX,
        f"no worker of {workers} outlives its coordinator",
    )


def kill_both(process: JobProcess, chance: random.Random) -> None:
    """A worker, and the coordinator before it can act on that."""
    kill_worker(process, chance)
    kill_coordinator(process, chance)


def stop_worker(process: JobProcess, chance: random.Random) -> None:
    """SIGSTOP, and SIGCONT after a while, if it was not given up by then."""
    workers = worker_processes(process)
    if workers:
        _asleep(chance.choice(workers), chance)


def stop_coordinator(process: JobProcess, chance: random.Random) -> None:
    _asleep(process.pid, chance)


COORDINATOR: Final = "coordinator"
WORKER: Final = "worker"

ACTS: Mapping[str, Callable[[JobProcess, random.Random], None]] = {
    WORKER: kill_worker,
    "all workers": kill_all_workers,
    COORDINATOR: kill_coordinator,
    "both": kill_both,
    "worker asleep": stop_worker,
    "coordinator asleep": stop_coordinator,
}


def _asleep(process: int, chance: random.Random) -> None:
    _signal(process, signal.SIGSTOP)
    time.sleep(chance.uniform(*ASLEEP_S))
    _signal(process, signal.SIGCONT)


def _signal(process: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, number)
