"""The requests to an object store that checkpoints consist of, in one place: below one prefix of one bucket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError

from processor.storage.object_errors import LIBRARY_ERRORS, is_missing, object_error

if TYPE_CHECKING:
    from obstore.store import ObjectStore

PART_BYTES: Final = 8 * 2**20
"""Most of a file that one request carries."""

PARTS_AT_ONCE_MAX: Final = 4
"""Requests of one upload under way; each holds a part in memory."""

LIST_CHUNK: Final = 1_000
"""Names a page of a listing has."""

_ERRORS: Final = (BaseError, *LIBRARY_ERRORS)


class Objects:
    """Whole objects by name. Safe to use from several threads.

    Every method raises Unavailable when an answer stays out, ExternalRefusal when the store refuses for good.
    """

    def __init__(self, store: ObjectStore, where: str, prefix: str = "") -> None:
        """``where`` is the location for people, ``prefix`` the same within the bucket, empty or ending with "/".
        Names are relative to it. ``store`` bounds time and retries."""
        self._store = store
        self._prefix = prefix
        self.where = where

    def below(self, folder: str) -> Objects:
        """The objects whose names begin with ``folder/``."""
        return Objects(self._store, f"{self.where}/{folder}", f"{self._prefix}{folder}/")

    def path(self, name: str) -> str:
        """The whole location of an object, for people."""
        return f"{self.where}/{name}" if name else self.where

    def create(self, name: str, content: bytes) -> bool:
        """Conditional put: of all who try, one gets it.

        False: it is there. That may be the doing of this very call, for the library repeats a request whose answer
        was lost: who has to know reads and compares.
        """
        try:
            obstore.put(self._store, self._prefix + name, content, mode="create", use_multipart=False)
        except AlreadyExistsError:
            return False
        except _ERRORS as error:
            raise object_error("create", self.path(name), error) from None
        return True

    def replace(self, name: str, content: bytes) -> None:
        """Put, whatever was there before; whole at every moment."""
        try:
            obstore.put(self._store, self._prefix + name, content, mode="overwrite", use_multipart=False)
        except _ERRORS as error:
            raise object_error("write", self.path(name), error) from None

    def upload(self, name: str, parts: Iterator[bytes]) -> None:
        """Put a large object; nobody sees it before all of it is there. A ProcessorError of ``parts`` comes through,
        and the parts that are there already are given up."""
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
        """The content, empty if it has more than ``bytes_max``, and its size; None when the object is missing."""
        try:
            found = obstore.get(self._store, self._prefix + name)
            size = found.meta["size"]
            return bytes(found.bytes()) if size <= bytes_max else b"", size
        except _ERRORS as error:
            if is_missing(error):
                return None
            raise object_error("read", self.path(name), error) from None

    def part(self, name: str, start: int, end: int) -> bytes | None:
        """Bytes from ``start`` to ``end``, both within the object; None when it is missing."""
        try:
            return bytes(obstore.get_range(self._store, self._prefix + name, start=start, end=end))
        except _ERRORS as error:
            if is_missing(error):
                return None
            raise object_error("read", self.path(name), error) from None

    def size(self, name: str) -> int | None:
        """Bytes of an object; None when it is missing."""
        try:
            return obstore.head(self._store, self._prefix + name)["size"]
        except _ERRORS as error:
            if is_missing(error):
                return None
            raise object_error("look at", self.path(name), error) from None

    def delete(self, name: str) -> None:
        """Remove an object; a missing one is no error."""
        try:
            obstore.delete(self._store, self._prefix + name)
        except _ERRORS as error:
            if not is_missing(error):
                raise object_error("delete", self.path(name), error) from None

    def names(self, folder: str) -> list[str]:
        """Names of all objects below a folder, "" for all there are; sorted."""
        below = (self._prefix + folder).rstrip("/")
        try:
            pages = obstore.list(self._store, below or None, chunk_size=LIST_CHUNK)
            return sorted(found["path"].removeprefix(self._prefix) for page in pages for found in page)
        except _ERRORS as error:
            raise object_error("list", self.path(folder), error) from None
