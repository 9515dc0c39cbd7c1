"""The stream of messages between the coordinator and one worker, over a connection of two that know each other."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import Final

from processor.channels.credentials import PeerConnection
from processor.channels.poller import Poller
from processor.errors import AttemptFailed
from processor.runtime.message_codec import MESSAGE_BYTES_MAX, Message, decode_message, encode_message

WAIT_MS: Final = 60_000
"""Longest wait of the thread; whatever happens ends it."""

_LENGTH = Struct(">I")


class ControlLink:
    """One end. A thread reads and writes, so that a side that is busy, stopped or slow keeps nobody waiting.

    Nothing tells whether what was sent has arrived; when the stream has ended, ``ended`` is told why, once.
    """

    def __init__(
        self,
        connection: PeerConnection,
        received: Callable[[Message], None],
        ended: Callable[[str], None],
    ) -> None:
        """Both are called from the link's thread. The connection is ours from here on."""
        self._connection = connection
        self._received = received
        self._ended = ended
        self._poller = Poller()
        self._outgoing: deque[bytes] = deque()
        self._incoming = bytearray()
        self._closing = False
        """Nothing more is to be sent than what waits."""
        self._over = False
        """Nor that."""
        self._thread = threading.Thread(target=self._run, name=f"link with {connection.peer}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def send(self, message: Message) -> None:
        """From any thread. After the end it does nothing."""
        if not self._closing:
            content = encode_message(message)
            self._outgoing.append(_LENGTH.pack(len(content)) + content)
            self._poller.wake()

    def close(self) -> None:
        """End the stream, once what was sent before is written, if the other side still reads; idempotent."""
        self._closing = True
        self._poller.wake()

    def cut(self) -> None:
        """End the stream now, whatever still waits to be written; idempotent."""
        self._over = True
        self.close()

    def _run(self) -> None:
        why = "the connection was ended here"
        self._poller.watch(self._connection)
        try:
            while not self._over:
                closing = self._closing  # before looking at what was sent before it
                waiting = self._write()
                if closing and not waiting:
                    break
                if not self._read():
                    self._poller.wait(WAIT_MS)
        except AttemptFailed as error:
            why = error.message.removesuffix(".")
        finally:
            self._closing = self._over = True
            self._poller.forget(self._connection)
            self._connection.close()
            self._poller.close()
            self._ended(why)

    def _write(self) -> int:
        """How many bytes wait on."""
        while self._outgoing:
            self._connection.send([self._outgoing.popleft()])
        return self._connection.flush()

    def _read(self) -> bool:
        """Whether anything was there. Raises AttemptFailed at the end, and for what is no message."""
        heard = self._connection.receive()
        self._incoming += heard
        while (content := self._next()) is not None:
            self._received(decode_message(content))
        return bool(heard)

    def _next(self) -> bytes | None:
        """The next message, if it is whole."""
        incoming = self._incoming
        if len(incoming) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(incoming)
        if length > MESSAGE_BYTES_MAX:
            raise AttemptFailed(
                f"a message of {length} bytes was announced, where {MESSAGE_BYTES_MAX} are the most."
            )
        end = _LENGTH.size + length
        if len(incoming) < end:
            return None
        content = bytes(memoryview(incoming)[_LENGTH.size : end])
        del incoming[:end]
        return content
