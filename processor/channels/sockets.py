"""A connection over a socket that never blocks."""

from __future__ import annotations

import errno
import socket
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Final

from processor.contracts.connection import Bytes
from processor.errors import AttemptFailed

RECEIVE_BYTES: Final = 256 * 2**10
"""At most in one call."""

PARTS_MAX: Final = 1_024
"""In one call: no system takes more (IOV_MAX)."""


class SocketConnection:
    """See ``processor.contracts.connection.Connection``."""

    def __init__(self, connected: socket.socket, peer: str) -> None:
        """``peer`` names the other side in errors."""
        connected.setblocking(False)
        self.peer = peer
        self._socket = connected
        self._waiting: deque[memoryview] = deque()
        self._waiting_bytes = 0
        self._buffer = memoryview(b"")
        self._unread = b""
        self._looked = True
        """Somebody has received since there was last something to read."""
        self._broken: OSError | None = None

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def reads(self) -> bool:
        return self._looked

    def ready(self) -> None:
        self._looked = False

    @property
    def own_host(self) -> str:
        """The address of this machine that the other side is reached from, on a network."""
        return str(self._socket.getsockname()[0])

    @property
    def writes(self) -> bool:
        """Whether something waits to be written."""
        return self._waiting_bytes > 0

    def send(self, parts: Sequence[Bytes]) -> None:
        if self._broken is None:
            self._waiting.extend(map(memoryview, parts))
            self._waiting_bytes += sum(map(len, parts))

    def flush(self) -> int:
        while self._waiting_bytes:
            try:
                written = self._socket.sendmsg(list(islice(self._waiting, PARTS_MAX)))
            except BlockingIOError:
                break
            except OSError as error:
                self._break(error)
                break
            self._written(written)
        return self._waiting_bytes

    def receive(self) -> Bytes:
        self._looked = True
        if self._unread:
            unread, self._unread = self._unread, b""
            return unread
        if not self._buffer:
            self._buffer = memoryview(bytearray(RECEIVE_BYTES))
        try:
            received = self._socket.recv_into(self._buffer)
        except BlockingIOError:
            if self._broken is not None:
                raise self._failed(self._broken) from self._broken
            return b""
        except OSError as error:
            raise self._failed(error) from error
        if received == 0:
            raise AttemptFailed(f"{self.peer} has ended its connection.", remedy="Look why it did.")
        return self._buffer[:received]

    def unread(self, data: bytes) -> None:
        """Give back what was received last and is for somebody else: it is received again."""
        self._unread = data

    def close(self) -> None:
        self._socket.close()
        self._waiting.clear()
        self._waiting_bytes = 0
        self._broken = self._broken or OSError(errno.EBADF, "it is closed")

    def _written(self, written: int) -> None:
        self._waiting_bytes -= written
        waiting = self._waiting
        while written:
            part = waiting.popleft()
            if len(part) > written:
                waiting.appendleft(part[written:])
                return
            written -= len(part)

    def _break(self, error: OSError) -> None:
        self._broken = error
        self._waiting.clear()
        self._waiting_bytes = 0

    def _failed(self, error: OSError) -> AttemptFailed:
        return AttemptFailed(
            f"the connection with {self.peer} is broken: {error.strerror or error}.",
            remedy="Look whether it still runs, and at the network between the machines.",
        )
