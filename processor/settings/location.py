"""Where checkpoints lie: a local directory, a prefix of a bucket of an object store, a folder of HDFS."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema


class Scheme(StrEnum):
    """What a location begins with."""

    FILE = "file"
    S3 = "s3"
    GS = "gs"
    AZ = "az"
    HDFS = "hdfs"


LOCATION_CHARS_MAX: Final = 512
"""Keys of objects may have 1,024 bytes, and the names of files come behind the location."""

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//)?", re.ASCII)
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9._-]{1,221}[a-z0-9]\Z", re.ASCII)
_PART: Final = re.compile(r"[A-Za-z0-9_\-=][A-Za-z0-9_.\-=]*\Z", re.ASCII)
_HOST: Final = re.compile(r"[a-z0-9]([a-z0-9.\-]{0,251}[a-z0-9])?\Z", re.ASCII)
_WRITTEN: Final = (
    "Write a path, file:/PATH, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or "
    "hdfs://NAME/PATH"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """``path`` is a path of this machine with ``Scheme.FILE``, else a prefix within the bucket, "" for all of it.
    HDFS's ``bucket`` is the name of a NameNode or name service."""

    scheme: Scheme
    bucket: str = ""
    path: str

    @property
    def directory(self) -> Path | None:
        """The local directory; None when it is an object store."""
        return Path(self.path) if self.scheme is Scheme.FILE else None

    def __str__(self) -> str:
        """As it is written in settings; a local directory as a plain path."""
        if self.scheme is Scheme.FILE:
            return self.path
        return f"{self.scheme}://{self.bucket}/{self.path}".rstrip("/")


def local(path: Path) -> Location:
    """The location of a directory."""
    return Location(scheme=Scheme.FILE, path=str(path))


def parse_location(written: object) -> Location:
    """A path, or a URI with one of the schemes.

    Raises: ValueError, in words fit for the person who wrote it; never quoting what may hold a password.
    """
    if isinstance(written, Location):
        return written
    if isinstance(written, Path):
        return local(written)
    if not isinstance(written, str) or not written or len(written) > LOCATION_CHARS_MAX:
        raise ValueError(f"this is no location of 1 to {LOCATION_CHARS_MAX} characters. {_WRITTEN}")
    found = _SCHEME.match(written)
    # `a:b` is a name that a file may have; with slashes, or a scheme of ours, it is meant as a URI.
    if found is None or (found[2] is None and found[1].lower() not in {*Scheme}):
        return local(Path(written))
    if found[1] not in {*Scheme}:
        raise ValueError(f"there is no store for {found[1]}:. {_WRITTEN}")
    rest = written[found.end() :]
    if found[1] == Scheme.FILE:
        # `file://host/path` would name another machine.
        if not rest.startswith("/"):
            raise ValueError(f"behind file: there is no absolute path. {_WRITTEN}")
        return local(Path(os.path.normpath(rest)))
    return _object_location(Scheme(found[1]), rest, slashes=found[2] is not None)


def _object_location(scheme: Scheme, rest: str, *, slashes: bool) -> Location:
    bucket, _, path = rest.partition("/")
    if scheme is Scheme.HDFS:
        if not slashes or not _HOST.match(bucket):
            raise ValueError(
                "behind hdfs:// there is no plain name of a NameNode or name service; ports are set in "
                f"stores.hdfs.endpoints. {_WRITTEN}"
            )
    elif not slashes or not _BUCKET.match(bucket):
        raise ValueError(
            f"behind {scheme}:// there is no plain name of a bucket; credentials do not belong there. {_WRITTEN}"
        )
    path = path.rstrip("/")
    if path and not all(_PART.match(part) for part in path.split("/")):
        raise ValueError(
            "a prefix within a bucket consists of letters, digits and _ - . = between single slashes, no part "
            "beginning with a dot"
        )
    return Location(scheme=scheme, bucket=bucket, path=path)


StoreLocation = Annotated[
    Location,
    BeforeValidator(parse_location),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string"}),
]
"""A setting that names a place for checkpoints."""
