"""A stream of bytes between two workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

Bytes = bytes | bytearray | memoryview


class Connection(Protocol):
    """Both directions, in order, without loss until it breaks. No call blocks; all come from one thread.

    What was sent and not received when it breaks is lost, in whole or from any byte on.
    """

    def send(self, parts: Sequence[Bytes]) -> None:
        """Take these bytes, all of them, to be written by this call or a later ``flush``. They are not changed
        afterwards by whoever sent them. Does nothing on a broken connection: ``receive`` tells."""
        ...

    def flush(self) -> int:
        """Write what still waits, as far as the other side takes it; returns how many bytes wait on."""
        ...

    def receive(self) -> Bytes:
        """What has arrived, as much as is at hand in one piece, empty when nothing is; valid until the next call.

        Raises AttemptFailed, naming the peer, when the connection is broken or was ended by the other side.
        """
        ...

    def close(self) -> None:
        """End it, without waiting for what was sent; idempotent."""
        ...
