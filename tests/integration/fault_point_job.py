"""Runs a job in a process of its own that kills or stops itself at a named point.

    python -m tests.integration.fault_point_job REFERENCE POINTS kill|stop FLAG [SECTION.FIELD=VALUE …]

POINTS are passings in their order: ``chunk-published:2,half-sent:1`` is the first half-sent after the second
chunk-published. FLAG is a file that is made just before; it holds the process's number. Of a job in several workers
it is one of these, whichever is there first: each counts its own passings.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import typer

from processor.cli.job_reference import load_graph
from processor.cli.options import tied_to
from processor.cli.reporting import reporting
from processor.fault_points import FaultPoint, no_faults
from processor.ids import WorkerId
from processor.plugins import installed_plugins
from processor.runtime.daemon import run_job
from processor.runtime.launch import Launch
from processor.runtime.start_options import StartOptions
from processor.runtime.worker_process import WorkerJob, run_worker
from processor.settings.loading import load_settings
from processor.telemetry.log import configure_logging, get_log

ACTS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}
WORKER = "worker"
"""The first argument of a worker process; its number, its end of the stream, its parent and a folder follow."""


class SignalAt:
    """A fault hook: sends this process a signal when the last of some passings is reached, once."""

    def __init__(self, points: str, act: str, flag: Path) -> None:
        self._left = [
            (FaultPoint(name), int(times)) for name, times in (part.split(":") for part in points.split(","))
        ]
        self._signal = ACTS[act]
        self._flag = flag
        self._lock = threading.Lock()  # points are passed in background threads too

    def __call__(self, point: FaultPoint) -> None:
        with self._lock:
            if not self._left or self._left[0][0] is not point:
                return
            _, times = self._left.pop(0)
            if times > 1:
                self._left.insert(0, (point, times - 1))
            if self._left or not self._first():
                return
        # To this very thread: sent to the process, another thread may be woken to stop it, while this one runs on
        # past the point.
        signal.pthread_kill(threading.get_ident(), self._signal)

    def _first(self) -> bool:
        """Whether no other worker, nor one before it, has been here. The flag is there with its content or not at
        all: somebody waits for it."""
        mine = self._flag.with_name(f"{self._flag.name}-{os.getpid()}")
        mine.write_text(str(os.getpid()))
        try:
            os.link(mine, self._flag)
        except FileExistsError:
            return False
        finally:
            mine.unlink()
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Faulty(Launch):
    """Starts workers that have the hook."""

    arguments: tuple[str, ...]
    """Ours."""

    def command(self, worker: WorkerId, control_fd: int, sockets: Path) -> Sequence[str]:
        of_worker = (str(worker), str(control_fd), str(os.getpid()), str(sockets))
        return (
            sys.executable,
            "-m",
            "tests.integration.fault_point_job",
            WORKER,
            *of_worker,
            *self.arguments,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What every process of the job is told."""

    job: WorkerJob
    hook: SignalAt

    @classmethod
    def by(cls, arguments: Sequence[str]) -> Self:
        reference, points, act, flag, *assignments = arguments
        settings = load_settings(
            plugins=installed_plugins().settings_models(), environ={}, assignments=assignments
        ).settings
        configure_logging(settings.log)
        graph = load_graph(reference)
        job = WorkerJob(graph=graph, settings=settings, log=get_log("runtime").bind(job=graph.name))
        return cls(job=job, hook=SignalAt(points, act, Path(flag)))


def main(arguments: Sequence[str]) -> int:
    try:
        with reporting():
            return _worker(arguments[1:]) if arguments[0] == WORKER else _coordinator(arguments)
    except typer.Exit as ended:
        return ended.exit_code


def _coordinator(arguments: Sequence[str]) -> int:
    asked = _Asked.by(arguments)
    job = asked.job
    several = job.settings.runtime.workers > 1
    return run_job(
        job.graph,
        job.settings,
        StartOptions(),
        job.log,
        faults=no_faults if several else asked.hook,
        launch=_Faulty(build=arguments[0], arguments=tuple(arguments)),
    )


def _worker(arguments: Sequence[str]) -> int:
    number, control_fd, parent, sockets, *same = arguments
    tied_to(int(parent))
    asked = _Asked.by(same)
    job = replace(asked.job, faults=asked.hook, log=asked.job.log.bind(worker=int(number)))
    run_worker(job, WorkerId(int(number)), int(control_fd), Path(sockets))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
