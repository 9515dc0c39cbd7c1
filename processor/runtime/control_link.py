"""The stream of messages between the coordinator and one worker, over a connected socket."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from struct import Struct

from processor.errors import AttemptFailed
from processor.runtime.message_codec import MESSAGE_BYTES_MAX, Message, decode_message, encode_message

_LENGTH = Struct(">I")


class ControlLink:
    """One end. A thread reads and another writes, so that a side that is busy, stopped or slow keeps nobody waiting.

    Nothing tells whether what was sent has arrived; when the stream has ended, ``ended`` is told why, once.
    """

    def __init__(
        self,
        stream: socket.socket,
        name: str,
        received: Callable[[Message], None],
        ended: Callable[[str], None],
    ) -> None:
        """Both are called from the reading thread. The socket is ours from here on."""
        self._stream = stream
        self._received = received
        self._ended = ended
        self._outgoing: SimpleQueue[bytes | None] = SimpleQueue()
        self._reader = threading.Thread(target=self._read, name=f"from {name}", daemon=True)
        self._writer = threading.Thread(target=self._write, name=f"to {name}", daemon=True)

    def start(self) -> None:
        self._reader.start()
        self._writer.start()

    def send(self, message: Message) -> None:
        """From any thread. After the end it does nothing."""
        self._outgoing.put(encode_message(message))

    def close(self) -> None:
        """End the stream, once what was sent before is written, if the other side still reads; idempotent."""
        self._outgoing.put(None)

    def _write(self) -> None:
        with suppress(OSError):  # the reader sees the end too, and tells
            while (content := self._outgoing.get()) is not None:
                self._stream.sendall(_LENGTH.pack(len(content)) + content)
        with suppress(OSError):
            self._stream.shutdown(socket.SHUT_RDWR)

    def _read(self) -> None:
        why = "the connection ended"
        try:
            with self._stream.makefile("rb") as incoming:
                while header := incoming.read(_LENGTH.size):
                    content = self._content(header, incoming.read)
                    if content is None:
                        break
                    self._received(decode_message(content))
        except (OSError, AttemptFailed) as error:
            why = str(error)
        finally:
            self._outgoing.put(None)
            self._writer.join()
            self._stream.close()
            self._ended(why)

    def _content(self, header: bytes, read: Callable[[int], bytes]) -> bytes | None:
        """None when the stream ended within the message."""
        if len(header) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack(header)
        if length > MESSAGE_BYTES_MAX:
            raise AttemptFailed(
                f"a message of {length} bytes was announced, where {MESSAGE_BYTES_MAX} are the most."
            )
        content = read(length)
        return content if len(content) == length else None
