"""Whole objects by name, below one prefix: what the stores of files and of the log ask of a network service."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

PART_BYTES: Final = 8 * 2**20
"""Most of a file that one request carries, and that is in memory at once."""


class Objects(Protocol):
    """Safe to use from several threads. Names are relative to the prefix.

    Every method raises Unavailable when an answer stays out, ExternalRefusal when the store refuses for good.
    """

    where: str
    """The location, for people."""

    def below(self, folder: str) -> Objects:
        """The objects whose names begin with ``folder/``."""
        ...

    def path(self, name: str) -> str:
        """The whole location of an object, for people."""
        ...

    def create(self, name: str, content: bytes) -> bool:
        """Put an object if there is none of the name: of all who try, one gets it. Whole at every moment.

        False: it is there. That may be the doing of this very call, for a request whose answer was lost is repeated:
        who has to know reads and compares.
        """
        ...

    def replace(self, name: str, content: bytes) -> None:
        """Put, whatever was there before; whole at every moment."""
        ...

    def upload(self, name: str, parts: Iterator[bytes]) -> None:
        """Put a large object of a name that nobody else uses; nobody sees it before all of it is there. A
        ProcessorError of ``parts`` comes through, and what is there already is given up."""
        ...

    def whole(self, name: str, bytes_max: int) -> tuple[bytes, int] | None:
        """The content, empty if it has more than ``bytes_max``, and its size; None when the object is missing."""
        ...

    def part(self, name: str, start: int, end: int) -> bytes | None:
        """Bytes from ``start`` to ``end``, both within the object; None when it is missing."""
        ...

    def size(self, name: str) -> int | None:
        """Bytes of an object; None when it is missing."""
        ...

    def delete(self, name: str) -> None:
        """Remove an object; a missing one is no error."""
        ...

    def names(self, folder: str) -> list[str]:
        """Names of all objects below a folder, "" for all there are; sorted."""
        ...

    def folders(self) -> list[str]:
        """The first part of the names of all objects that have more than one: "a" for ``a/b/c``; sorted."""
        ...
