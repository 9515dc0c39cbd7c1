"""The workers that a coordinator has streams with, and what it hears of them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from processor.channels.credentials import PeerConnection
from processor.ids import WorkerId
from processor.protocol.messages import Order
from processor.protocol.worker_messages import Joined, ToWorker
from processor.runtime.control_link import ControlLink
from processor.runtime.message_codec import Message
from processor.runtime.worker_pool import Gone, WorkerEvent


@dataclass(slots=True, eq=False)
class _Member:
    """One process, as long as its stream lasts."""

    worker: WorkerId
    link: ControlLink | None = None
    joined: Joined | None = None


class Members:
    """See ``processor.runtime.worker_pool.WorkerPool``, whose calls of the same names these are. ``add`` may come
    from another thread than the others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._members: dict[WorkerId, _Member] = {}
        self._events: deque[tuple[_Member, Message | Gone]] = deque()
        self._something = threading.Event()
        self._wake: Callable[[], None] = lambda: None

    def add(self, worker: WorkerId, connection: PeerConnection) -> None:
        """A process is this worker from here on, until ``take`` tells that it is ``Gone``."""
        member = _Member(worker)
        member.link = ControlLink(
            connection,
            lambda message: self._put(member, message),
            lambda why: self._put(member, Gone(why=why)),
        )
        with self._lock:
            self._members[worker] = member
        member.link.start()

    def there(self) -> frozenset[WorkerId]:
        """Those with a stream, joined or not."""
        with self._lock:
            return frozenset(self._members)

    def joined(self) -> Mapping[WorkerId, Joined]:
        with self._lock:
            return {
                worker: member.joined
                for worker, member in sorted(self._members.items())
                if member.joined is not None
            }

    def take(self) -> tuple[WorkerId, WorkerEvent] | None:
        self._something.clear()
        while self._events:
            member, event = self._events.popleft()
            with self._lock:
                if self._members.get(member.worker) is not member:
                    continue  # of a process that is not ours any more
                if isinstance(event, Joined):
                    member.joined = event
                elif isinstance(event, Gone):
                    del self._members[member.worker]
            return member.worker, event  # type: ignore[return-value]
        return None

    def wait(self, timeout_ms: int) -> None:
        self._something.wait(timeout_ms / 1_000)

    def wakes(self, wake: Callable[[], None]) -> None:
        self._wake = wake

    def send(self, worker: WorkerId, message: Order | ToWorker) -> None:
        link = self._link(worker)
        if link is not None:
            link.send(message)

    def cut(self, worker: WorkerId) -> None:
        """End its stream at once."""
        link = self._link(worker)
        if link is not None:
            link.cut()

    def close(self) -> None:
        """End all streams; nothing is heard any more."""
        with self._lock:
            members, self._members = self._members, {}
        for member in members.values():
            if member.link is not None:
                member.link.close()

    def _link(self, worker: WorkerId) -> ControlLink | None:
        with self._lock:
            member = self._members.get(worker)
        return None if member is None else member.link

    def _put(self, member: _Member, event: Message | Gone) -> None:
        self._events.append((member, event))
        self._something.set()
        self._wake()
