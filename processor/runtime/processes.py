"""Worker processes on this machine: started from the coordinator, and gone with it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from processor.ids import WorkerId
from processor.protocol.messages import Order
from processor.protocol.worker_messages import Joined, ToWorker
from processor.runtime.control_link import ControlLink
from processor.runtime.message_codec import Message
from processor.runtime.worker_pool import Gone, WorkerEvent

CLOSE_S_MAX: Final = 8.0
"""For processes to end by themselves once nothing is wanted of them; then they are killed."""

END_S_MAX: Final = 2.0
"""From the end of a process's stream to its own end."""

Command = Callable[[WorkerId, int], Sequence[str]]
"""How to start a worker that finds its end of the control link at this file descriptor."""


class _Member:
    """One process, from its start to its end."""

    def __init__(self, worker: WorkerId, process: subprocess.Popen[bytes]) -> None:
        self.worker = worker
        self.process = process
        self.link: ControlLink | None = None
        self.joined: Joined | None = None

    def ended(self) -> Gone:
        """How it came to its end; one that has lost its stream and lives on is ended."""
        try:
            code = self.process.wait(END_S_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        if code >= 0:
            return Gone(why=f"process {self.process.pid} ended with exit code {code}", exit_code=code)
        return Gone(why=f"process {self.process.pid} was ended by {signal.Signals(-code).name}")


class ProcessPool:
    """See ``processor.runtime.worker_pool.WorkerPool``."""

    def __init__(self, command: Command, workers: int) -> None:
        self._command = command
        self._workers = tuple(WorkerId(number) for number in range(workers))
        self._members: dict[WorkerId, _Member] = {}
        self._events: deque[tuple[_Member, Message | Gone]] = deque()
        self._something = threading.Event()
        self._wake: Callable[[], None] = lambda: None

    @property
    def workers(self) -> tuple[WorkerId, ...]:
        return self._workers

    def joined(self) -> Mapping[WorkerId, Joined]:
        return {
            worker: member.joined
            for worker, member in sorted(self._members.items())
            if member.joined is not None
        }

    def start_missing(self) -> None:
        for worker in self._workers:
            if worker not in self._members:
                self._members[worker] = self._started(worker)

    def take(self) -> tuple[WorkerId, WorkerEvent] | None:
        self._something.clear()
        while self._events:
            member, event = self._events.popleft()
            if self._members.get(member.worker) is not member:
                continue  # of a process that is not ours any more
            if isinstance(event, Joined):
                member.joined = event
            elif isinstance(event, Gone):
                del self._members[member.worker]
                return member.worker, member.ended()
            return member.worker, event  # type: ignore[return-value]
        return None

    def wait(self, timeout_ms: int) -> None:
        self._something.wait(timeout_ms / 1_000)

    def wakes(self, wake: Callable[[], None]) -> None:
        self._wake = wake

    def send(self, worker: WorkerId, message: Order | ToWorker) -> None:
        member = self._members.get(worker)
        if member is not None and member.link is not None:
            member.link.send(message)

    def kill(self, worker: WorkerId) -> None:
        member = self._members.get(worker)
        if member is not None:
            with suppress(ProcessLookupError):
                member.process.kill()  # its stream ends, and so it is told to be gone

    def close(self) -> None:
        """End all processes."""
        members, self._members = self._members, {}
        for member in members.values():
            if member.link is not None:
                member.link.close()
        with suppress(subprocess.TimeoutExpired):
            for member in members.values():
                member.process.wait(CLOSE_S_MAX)
        for member in members.values():
            if member.process.poll() is None:
                member.process.kill()
            member.process.wait()

    def _started(self, worker: WorkerId) -> _Member:
        ours, theirs = socket.socketpair()
        try:
            process = subprocess.Popen(
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
        member = _Member(worker, process)
        member.link = ControlLink(
            ours,
            f"worker {worker}",
            lambda message: self._put(member, message),
            lambda why: self._put(member, Gone(why=why)),
        )
        member.link.start()
        return member

    def _put(self, member: _Member, event: Message | Gone) -> None:
        self._events.append((member, event))
        self._something.set()
        self._wake()
