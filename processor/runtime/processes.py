"""Worker processes on this machine: started from the coordinator, and gone with it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from processor.channels.sockets import SocketConnection
from processor.ids import WorkerId
from processor.runtime.members import Members
from processor.runtime.worker_pool import Gone, WorkerEvent

CLOSE_S_MAX: Final = 8.0
"""For processes to end by themselves once nothing is wanted of them; then they are killed."""

END_S_MAX: Final = 2.0
"""From the end of a process's stream to its own end."""

Command = Callable[[WorkerId, int], Sequence[str]]
"""How to start a worker that finds its end of the control link at this file descriptor."""


class ProcessPool:
    """See ``processor.runtime.worker_pool.WorkerPool``."""

    def __init__(self, command: Command, workers: int) -> None:
        self._command = command
        self._workers = tuple(WorkerId(number) for number in range(workers))
        self._processes: dict[WorkerId, subprocess.Popen[bytes]] = {}
        self._members = Members()
        self.joined = self._members.joined
        self.wait = self._members.wait
        self.wakes = self._members.wakes
        self.send = self._members.send

    @property
    def workers(self) -> tuple[WorkerId, ...]:
        return self._workers

    def start_missing(self) -> None:
        for worker in self._workers:
            if worker not in self._processes:
                self._start(worker)

    def take(self) -> tuple[WorkerId, WorkerEvent] | None:
        taken = self._members.take()
        if taken is None or not isinstance(taken[1], Gone):
            return taken
        worker, _ = taken
        return worker, _ended(self._processes.pop(worker))

    def kill(self, worker: WorkerId) -> None:
        process = self._processes.get(worker)
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()  # its stream ends, and so it is told to be gone

    def close(self) -> None:
        """End all processes."""
        self._members.close()
        with suppress(subprocess.TimeoutExpired):
            for process in self._processes.values():
                process.wait(CLOSE_S_MAX)
        for process in self._processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()

    def _start(self, worker: WorkerId) -> None:
        ours, theirs = socket.socketpair()
        try:
            self._processes[worker] = subprocess.Popen(
                self._command(worker, theirs.fileno()),
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env=os.environ,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._members.add(worker, SocketConnection(ours, f"worker {worker}"))


def _ended(process: subprocess.Popen[bytes]) -> Gone:
    """How it came to its end; one that has lost its stream and lives on is ended."""
    try:
        code = process.wait(END_S_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
    if code >= 0:
        return Gone(why=f"process {process.pid} ended with exit code {code}", exit_code=code)
    return Gone(why=f"process {process.pid} was ended by {signal.Signals(-code).name}")
