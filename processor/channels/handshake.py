"""How two processes of a job make sure of each other before the first frame: pure, bytes in and bytes out.

    who dials                          who is dialled
      magic and version        ->  <-    magic and version
      Hello, or Join           ->
                                   <-    Challenge
      Proof                    ->
                                   <-    Welcome, or Refused

A worker says Hello to another, and Join to the coordinator. Challenge and Proof prove knowledge of the job's secret,
by an HMAC-SHA256 over all that was said before; a side that cannot ends it. The secret is never sent, and neither
side tells what it runs before the other has proved itself. Without a secret, as between processes that only one
user's processes can reach, it is empty.
"""

from __future__ import annotations

import hmac
from struct import Struct
from typing import Annotated, Final

import msgspec

from processor.ids import Attempt, Incarnation, JobName, WorkerId

MAGIC: Final = b"PXPEERS\n"
VERSION: Final = 2
"""Of handshake and frames: both sides have the same."""

MESSAGE_BYTES_MAX: Final = 4_096
REASON_CHARS_MAX: Final = 1_000
NONCE_CHARS: Final = 32

_START = Struct(f"<{len(MAGIC)}sH")
_LENGTH = Struct("<H")
_DIALS, _IS_DIALLED = b"dials", b"is dialled"

_Nonce = Annotated[str, msgspec.Meta(min_length=NONCE_CHARS, max_length=NONCE_CHARS)]


class _Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="say"):
    """Base of what is said; the field ``say`` tells what it is."""


class Hello(_Message, frozen=True, kw_only=True, tag="hello"):
    """Who dials whom, and for what."""

    job: JobName
    incarnation: Incarnation
    attempt: Attempt
    worker: WorkerId
    peer: WorkerId
    nonce: _Nonce


class Join(_Message, frozen=True, kw_only=True, tag="join"):
    """A process that would be a worker of the coordinator it dials."""

    job: JobName
    fingerprint: str
    """Of the job's layout and this release."""
    nonce: _Nonce


class Challenge(_Message, frozen=True, kw_only=True, tag="challenge"):
    nonce: _Nonce
    proof: bytes


class Proof(_Message, frozen=True, kw_only=True, tag="proof"):
    proof: bytes


class Welcome(_Message, frozen=True, kw_only=True, tag="welcome"):
    """The next byte is a frame's."""

    worker: WorkerId
    """As whom the other side is welcome: who it has said it is, or what the coordinator makes it."""


class Refused(_Message, frozen=True, kw_only=True, tag="refused"):
    reason: Annotated[str, msgspec.Meta(max_length=REASON_CHARS_MAX)]


Opening = Hello | Join
Message = Opening | Challenge | Proof | Welcome | Refused

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Message)


class Dialler:
    """The side that dials. Sends ``opening``, then what ``receive`` returns, until it is ``welcome``."""

    def __init__(self, hello: Opening, secret: bytes) -> None:
        self._hello = hello
        self._secret = secret
        self._said = _message(hello)
        self._heard = _Heard()
        self._proved = False
        self.opening = _START.pack(MAGIC, VERSION) + self._said
        self.welcome = False
        self.worker: WorkerId | None = None
        """As whom it is welcome."""
        self.rest = b""
        """What came behind the welcome."""

    def receive(self, data: bytes) -> bytes:
        """Returns what to send now. Raises ValueError, saying why the two do not come together."""
        self._heard.add(data)
        answer = b""
        while not self.welcome and (found := self._heard.next()) is not None:
            message, _ = found
            match message:
                case Challenge(nonce=nonce, proof=proof) if not self._proved:
                    answer += self._prove(nonce, proof)
                case Welcome(worker=worker) if self._proved:
                    if isinstance(self._hello, Hello) and worker != self._hello.worker:
                        raise ValueError(f"it takes worker {self._hello.worker} for worker {worker}")
                    self.welcome, self.worker = True, worker
                    self.rest = self._heard.rest()
                case Refused(reason=reason):
                    raise ValueError(reason)
                case _:
                    raise ValueError(f"it says {type(message).__name__} where nobody does")
        return answer

    def _prove(self, nonce: str, proof: bytes) -> bytes:
        said = self._said + nonce.encode()
        if not hmac.compare_digest(proof, _proof(self._secret, _IS_DIALLED, said)):
            raise ValueError("it does not know the job's secret")
        self._proved = True
        return _message(Proof(proof=_proof(self._secret, _DIALS, said)))


class Dialled:
    """The side that is dialled. Sends ``opening``, then what ``receive`` returns. Once ``hello`` is there, the other
    side has proved itself: it is to be told ``welcome`` or ``refused``."""

    opening: Final = _START.pack(MAGIC, VERSION)

    def __init__(self, nonce: str, secret: bytes) -> None:
        self._nonce = nonce
        self._secret = secret
        self._heard = _Heard()
        self._claimed: Opening | None = None
        self._said = b""
        self.hello: Opening | None = None

    def receive(self, data: bytes) -> bytes:
        """Returns what to send now. Raises ValueError, saying what is wrong with whoever has dialled."""
        self._heard.add(data)
        answer = b""
        while (found := self._heard.next()) is not None:
            message, encoded = found
            match message:
                case Hello() | Join() if self._claimed is None:
                    answer += self._challenge(message, encoded)
                case Proof(proof=proof) if self._claimed is not None and self.hello is None:
                    if not hmac.compare_digest(proof, _proof(self._secret, _DIALS, self._said)):
                        raise ValueError("it does not know the job's secret")
                    self.hello = self._claimed
                case _:
                    raise ValueError(f"it says {type(message).__name__} where nobody does")
        return answer

    def _challenge(self, hello: Opening, encoded: bytes) -> bytes:
        self._claimed = hello
        self._said = encoded + self._nonce.encode()
        proof = _proof(self._secret, _IS_DIALLED, self._said)
        return _message(Challenge(nonce=self._nonce, proof=proof))


def welcome(worker: WorkerId) -> bytes:
    return _message(Welcome(worker=worker))


def refused(reason: str) -> bytes:
    return _message(Refused(reason=reason[:REASON_CHARS_MAX]))


def _proof(secret: bytes, who: bytes, said: bytes) -> bytes:
    return hmac.digest(secret, who + b"\0" + said, "sha256")


def _message(message: Message) -> bytes:
    body = _encoder.encode(message)
    return _LENGTH.pack(len(body)) + body


class _Heard:
    """Finds messages in pieces of any size."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._started = False

    def add(self, data: bytes) -> None:
        self._data += data

    def next(self) -> tuple[Message, bytes] | None:
        """The next message, and as it was encoded, if it is whole. Raises ValueError for what is none."""
        if not self._started:
            if len(self._data) < _START.size:
                return None
            magic, version = _START.unpack_from(self._data)
            if magic != MAGIC:
                raise ValueError("it is no worker of a job")
            if version != VERSION:
                raise ValueError(f"it speaks version {version}, and this release {VERSION}")
            self._started = True
            del self._data[: _START.size]
        if len(self._data) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._data)
        if length > MESSAGE_BYTES_MAX:
            raise ValueError(f"it says something of {length} bytes, and {MESSAGE_BYTES_MAX} is the limit")
        end = _LENGTH.size + length
        if len(self._data) < end:
            return None
        encoded = bytes(self._data[:end])
        del self._data[:end]
        try:
            return _decoder.decode(encoded[_LENGTH.size :]), encoded
        except (msgspec.MsgspecError, RecursionError) as error:
            raise ValueError(f"it says what is no message: {error}") from error

    def rest(self) -> bytes:
        rest = bytes(self._data)
        self._data.clear()
        return rest
