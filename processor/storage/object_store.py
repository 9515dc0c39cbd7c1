"""Objects in a bucket: the requests to an object store that checkpoints consist of, in one place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError

from processor.storage.object_errors import LIBRARY_ERRORS, is_missing, object_error
from processor.storage.objects import PART_BYTES

if TYPE_CHECKING:
    from obstore.store import ObjectStore

PARTS_AT_ONCE_MAX: Final = 4
"""Requests of one upload under way; each holds a part in memory."""

LIST_CHUNK: Final = 1_000
"""Names a page of a listing has."""

_ERRORS: Final = (BaseError, *LIBRARY_ERRORS)


class BucketObjects:
    """Objects below one prefix of one bucket."""

    def __init__(self, store: ObjectStore, where: str, prefix: str = "") -> None:
        """``where`` is the location for people, ``prefix`` the same within the bucket, empty or ending with "/".
        Names are relative to it. ``store`` bounds time and retries."""
        self._store = store
        self._prefix = prefix
        self.where = where

    def below(self, folder: str) -> BucketObjects:
        return BucketObjects(self._store, f"{self.where}/{folder}", f"{self._prefix}{folder}/")

    def path(self, name: str) -> str:
        return f"{self.where}/{name}" if name else self.where

    def create(self, name: str, content: bytes) -> bool:
        """A conditional put, which the library repeats when its answer is lost."""
        try:
            obstore.put(self._store, self._prefix + name, content, mode="create", use_multipart=False)
        except AlreadyExistsError:
            return False
        except _ERRORS as error:
            raise object_error("create", self.path(name), error) from None
        return True

    def replace(self, name: str, content: bytes) -> None:
        try:
            obstore.put(self._store, self._prefix + name, content, mode="overwrite", use_multipart=False)
        except _ERRORS as error:
            raise object_error("write", self.path(name), error) from None

    def upload(self, name: str, parts: Iterator[bytes]) -> None:
        try:
            obstore.put(
                self._store,
                self._prefix + name,
                parts,
                use_multipart=True,
                chunk_size=PART_BYTES,
                max_concurrency=PARTS_AT_ONCE_MAX,
            )
        except _ERRORS as error:
            raise object_error("write", self.path(name), error) from None

    def whole(self, name: str, bytes_max: int) -> tuple[bytes, int] | None:
        try:
            found = obstore.get(self._store, self._prefix + name)
            size = found.meta["size"]
            return bytes(found.bytes()) if size <= bytes_max else b"", size
        except _ERRORS as error:
            if is_missing(error):
                return None
            raise object_error("read", self.path(name), error) from None

    def part(self, name: str, start: int, end: int) -> bytes | None:
        try:
            return bytes(obstore.get_range(self._store, self._prefix + name, start=start, end=end))
        except _ERRORS as error:
            if is_missing(error):
                return None
            raise object_error("read", self.path(name), error) from None

    def size(self, name: str) -> int | None:
        try:
            return obstore.head(self._store, self._prefix + name)["size"]
        except _ERRORS as error:
            if is_missing(error):
                return None
            raise object_error("look at", self.path(name), error) from None

    def delete(self, name: str) -> None:
        try:
            obstore.delete(self._store, self._prefix + name)
        except _ERRORS as error:
            if not is_missing(error):
                raise object_error("delete", self.path(name), error) from None

    def names(self, folder: str) -> list[str]:
        below = (self._prefix + folder).rstrip("/")
        try:
            pages = obstore.list(self._store, below or None, chunk_size=LIST_CHUNK)
            return sorted(found["path"].removeprefix(self._prefix) for page in pages for found in page)
        except _ERRORS as error:
            raise object_error("list", self.path(folder), error) from None

    def folders(self) -> list[str]:
        try:
            found = obstore.list_with_delimiter(self._store, self._prefix.rstrip("/") or None)
            return sorted(path.removeprefix(self._prefix).rstrip("/") for path in found["common_prefixes"])
        except _ERRORS as error:
            raise object_error("list", self.where, error) from None
