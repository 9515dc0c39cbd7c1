"""What goes over the control socket: one request and one reply, each a line of JSON with a fixed schema."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from processor.contracts.checkpoint_view import CheckpointsView
from processor.contracts.job_control import JobStatus, Outcome
from processor.ids import MAX_PARALLELISM_LIMIT, CheckpointId

REQUEST_BYTES_MAX: Final = 16_384
REPLY_BYTES_MAX: Final = 8 * 2**20
"""The parts of some twenty thousand subtasks in one checkpoint."""
PATH_CHARS_MAX: Final = 4_096

_Directory = Annotated[str, msgspec.Meta(min_length=1, max_length=PATH_CHARS_MAX)]


class _Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="ask"):
    """Base of requests; the field ``ask`` says which one it is."""


class AskStatus(_Message, frozen=True, kw_only=True, tag="status"):
    pass


class AskCheckpoints(_Message, frozen=True, kw_only=True, tag="checkpoints"):
    checkpoint: CheckpointId | None = None
    """Of this one every subtask's part is told too."""


class AskCheckpoint(_Message, frozen=True, kw_only=True, tag="checkpoint"):
    full: bool = False


class AskSavepoint(_Message, frozen=True, kw_only=True, tag="savepoint"):
    directory: _Directory
    native: bool = False


class AskStop(_Message, frozen=True, kw_only=True, tag="stop"):
    savepoint_directory: _Directory | None = None
    drain: bool = False
    native: bool = False


class AskRescale(_Message, frozen=True, kw_only=True, tag="rescale"):
    parallelism: Annotated[int, msgspec.Meta(ge=1, le=MAX_PARALLELISM_LIMIT)]


Request = AskStatus | AskCheckpoints | AskCheckpoint | AskSavepoint | AskStop | AskRescale


class Reply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Exactly one of these is given; ``error`` says why the request itself was no good."""

    status: JobStatus | None = None
    checkpoints: CheckpointsView | None = None
    outcome: Outcome | None = None
    error: str | None = None


_requests = msgspec.json.Decoder(Request)
_replies = msgspec.json.Decoder(Reply)


def encode_line(message: Request | Reply) -> bytes:
    return msgspec.json.encode(message) + b"\n"


def decode_request(line: bytes) -> Request:
    """Raises ValueError saying what is wrong with the request."""
    try:
        return _requests.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise ValueError(f"this is no request: {wrong}") from wrong


def decode_reply(line: bytes) -> Reply:
    """Raises ValueError saying what is wrong with the reply."""
    try:
        return _replies.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise ValueError(f"this is no reply: {wrong}") from wrong
