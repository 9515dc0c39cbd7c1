"""Runs a job in a process of its own that kills or stops itself at a named point.

    python -m tests.integration.fault_point_job REFERENCE POINTS kill|stop FLAG [SECTION.FIELD=VALUE …]

POINTS are passings in their order: ``chunk-published:2,half-sent:1`` is the first half-sent after the second
chunk-published. FLAG is a file that is made just before.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import typer

from processor.cli.job_reference import load_graph
from processor.cli.reporting import reporting
from processor.fault_points import FaultPoint
from processor.plugins import installed_plugins
from processor.runtime.daemon import run_job
from processor.runtime.start_options import StartOptions
from processor.settings.loading import load_settings
from processor.telemetry.log import configure_logging, get_log

ACTS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


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
            if self._left:
                return
        self._flag.touch()
        # To this very thread: sent to the process, another thread may be woken to stop it, while this one runs on
        # past the point.
        signal.pthread_kill(threading.get_ident(), self._signal)


def main(arguments: Sequence[str]) -> int:
    reference, points, act, flag, *assignments = arguments
    try:
        return _run(reference, points, act, Path(flag), assignments)
    except typer.Exit as ended:
        return ended.exit_code


def _run(reference: str, points: str, act: str, flag: Path, assignments: Sequence[str]) -> int:
    with reporting():
        settings = load_settings(
            plugins=installed_plugins().settings_models(), environ={}, assignments=assignments
        ).settings
        configure_logging(settings.log)
        graph = load_graph(reference)
        hook = SignalAt(points, act, flag)
        return run_job(graph, settings, StartOptions(), get_log("runtime").bind(job=graph.name), faults=hook)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
