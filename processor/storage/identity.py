"""Whose checkpoints these are: a small file beside them, written once."""

from __future__ import annotations

from typing import Final

import msgspec

from processor.errors import SettingsError
from processor.ids import JobName

IDENTITY: Final = "job.json"
IDENTITY_VERSION: Final = 1
IDENTITY_BYTES_MAX: Final = 64 * 1024


class _Identity(msgspec.Struct, frozen=True, kw_only=True):
    format: int
    job: str


def encode_identity(job: JobName) -> bytes:
    """The content of the file."""
    content = msgspec.json.encode(_Identity(format=IDENTITY_VERSION, job=job))
    return msgspec.json.format(content, indent=2) + b"\n"


def decode_identity(content: bytes, path: str) -> str:
    """The job that the file at ``path`` names. Raises SettingsError."""
    try:
        found = msgspec.json.decode(content, type=_Identity)
    except msgspec.MsgspecError as error:
        raise _foreign(path, f"is none ({error})") from error
    if found.format != IDENTITY_VERSION:
        raise _foreign(path, f"has format version {found.format}; this release reads {IDENTITY_VERSION}")
    if content != encode_identity(JobName(found.job)):  # it is written once, and by us
        raise _foreign(path, "is not as it was written")
    return found.job


def _foreign(path: str, what: str) -> SettingsError:
    return SettingsError(
        f"'{path}' says whose checkpoints these are, but it {what}.",
        remedy="Restore it, or set checkpoint.directory to another location.",
    )
