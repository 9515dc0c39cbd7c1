"""Entries of the decision log, and the notes beside it, to and from bytes.

JSON that people can read, keys sorted, with the version of the format and a SHA-256 over version and body.
The frame around the body is fixed to the byte, so there is no byte whose change goes unseen.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any, assert_never

import msgspec

from processor.errors import DamagedFile, JobError
from processor.invariant import invariant
from processor.protocol.entries import CheckpointEntry, Entry, Published, Rewind, Seal

FORMAT_VERSION = 1

MANIFEST_BYTES_MAX = 256 * 2**20
"""Of one entry: about a million files or splits."""

_FRAME = re.compile(
    rb'\{\n"format": (0|[1-9][0-9]{0,8}),\n"sha256": "([0-9a-f]{64})",\n"body": (.*)\n\}\n\Z',
    re.ASCII | re.DOTALL,
)

_SEAL, _REWIND, _CHECKPOINT, _PUBLISHED = "seal", "rewind", "checkpoint", "published"
_TYPES: dict[str, Any] = {
    _SEAL: Seal,
    _REWIND: Rewind,
    _CHECKPOINT: CheckpointEntry,
    _PUBLISHED: Published,
}

_encoder = msgspec.json.Encoder(order="sorted")


class _Body(msgspec.Struct, frozen=True, kw_only=True):
    content: msgspec.Raw
    kind: str


_body_decoder = msgspec.json.Decoder(_Body)
_content_decoders = {kind: msgspec.json.Decoder(shape) for kind, shape in _TYPES.items()}


def encode_entry(entry: Entry) -> bytes:
    """The bytes of an entry. Raises JobError when it exceeds MANIFEST_BYTES_MAX."""
    return _frame(_kind_of(entry), entry)


def decode_entry(content: bytes, place: int) -> Entry:
    """The entry at ``place``. Raises DamagedFile, naming the place, for everything but what was written."""
    found = _open(content, f"the entry at place {place} of the decision log")
    if isinstance(found, Published):
        raise _damaged(f"the entry at place {place} of the decision log", "holds a note and no entry")
    if found.place != place:
        raise _damaged(f"the entry at place {place} of the decision log", f"is that of place {found.place}")
    return found


def encode_published(note: Published) -> bytes:
    """The bytes of the note of R17."""
    return _frame(_PUBLISHED, note)


def decode_published(content: bytes) -> Published:
    """The note of R17. Raises DamagedFile."""
    found = _open(content, "the note 'published'")
    if not isinstance(found, Published):
        raise _damaged("the note 'published'", "holds an entry and no note")
    return found


def _kind_of(entry: Entry) -> str:
    match entry:
        case Seal():
            return _SEAL
        case Rewind():
            return _REWIND
        case CheckpointEntry():
            return _CHECKPOINT
        case _:
            assert_never(entry)


def _frame(kind: str, content: Entry | Published) -> bytes:
    body = msgspec.json.format(_encoder.encode({"kind": kind, "content": content}), indent=1)
    if len(body) > MANIFEST_BYTES_MAX:
        raise JobError(
            f"a {kind} has {len(body)} bytes; the decision log takes up to {MANIFEST_BYTES_MAX}.",
            remedy="Read fewer splits or lower the parallelism.",
        )
    framed = b'{\n"format": %d,\n"sha256": "%s",\n"body": %s\n}\n' % (
        FORMAT_VERSION,
        _checksum(FORMAT_VERSION, body).encode(),
        body,
    )
    invariant(_open(framed, "what is being written") == content, "an entry is read back as it was written")
    return framed


def _open(content: bytes, what: str) -> Entry | Published:
    frame = _FRAME.match(content)
    if frame is None:
        raise _damaged(what, "is cut or was changed")
    version, body = int(frame[1]), frame[3]
    if _checksum(version, body).encode() != frame[2]:
        raise _damaged(what, "fails its checksum")
    if version != FORMAT_VERSION:
        raise DamagedFile(
            f"{what} has format version {version}; this release reads version {FORMAT_VERSION}.",
            remedy="Use the release that wrote it, or a newer one.",
        )
    try:
        outer = _body_decoder.decode(body)
        decoder = _content_decoders.get(outer.kind)
        if decoder is None:
            raise _damaged(what, f"is of unknown kind '{outer.kind}'")
        found: Entry | Published = decoder.decode(outer.content)
    except msgspec.MsgspecError as error:
        raise _damaged(what, f"does not have the fields it should have ({error})") from error
    return found


def _checksum(version: int, body: bytes) -> str:
    return sha256(b"%d\n%s" % (version, body)).hexdigest()


def _damaged(what: str, how: str) -> DamagedFile:
    return DamagedFile(
        f"{what} {how}.",
        remedy="Restore the log from a copy; without it, what was decided after it cannot be known.",
    )
