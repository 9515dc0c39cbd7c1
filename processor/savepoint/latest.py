"""The entries that are left when files of changes are put on top of each other, in bounded memory.

A few entries are put together in memory. Of many each goes into one of several temporary files, by its key, and then
one of those after the other is put together.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import IO, Any, NamedTuple
from zlib import crc32

import msgspec

from processor.contracts.snapshot_format import BLOCK_ENTRIES_MAX
from processor.storage.folder_tree import os_error

TOGETHER_BYTES_MAX = 64 * 2**20
"""Of the files whose entries are put together in memory at once; in Python they take several times that."""

PARTS_MAX = 256
"""Temporary files that are open at once."""

_LENGTH_BYTES = 4

_encode = msgspec.msgpack.encode


class Left(NamedTuple):
    """Some entries that are left, in columns."""

    keys: list[bytes]
    places: list[Any]
    """Second part of what an entry is known by: an entry's key, a time, or None."""
    values: list[msgspec.Raw]


class _Some(msgspec.Struct, array_like=True):
    """A piece of a temporary file."""

    keys: list[bytes]
    places: list[bytes | int | None]
    values: list[bytes] | None
    """None: the entries are removed."""


_decode = msgspec.msgpack.Decoder(_Some).decode


class Latest:
    """Takes entries in the order in which they were written; a later one replaces the one before."""

    def __init__(self, file_bytes: int, *, together_bytes_max: int = TOGETHER_BYTES_MAX) -> None:
        """``file_bytes``: of all the files that the entries come from."""
        self._closing = ExitStack()
        count = min(PARTS_MAX, 1 + file_bytes // together_bytes_max)
        self._together: dict[tuple[bytes, Any], bytes] = {}
        self._parts: list[IO[bytes]] = []
        if count > 1:
            with ExitStack() as opening:
                self._parts = [opening.enter_context(tempfile.TemporaryFile()) for _ in range(count)]
                self._closing = opening.pop_all()

    def __enter__(self) -> Latest:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def add(self, keys: list[bytes], places: Sequence[Any], values: Sequence[msgspec.Raw]) -> None:
        """Entries that are there. Raises Unavailable."""
        # Each is copied: what was decoded would keep all of its block in memory.
        self._put(_Some(keys, list(places), list(map(bytes, values))))

    def remove(self, keys: list[bytes], places: Sequence[Any]) -> None:
        """Entries that are gone. Raises Unavailable."""
        self._put(_Some(keys, list(places), None))

    def _put(self, some: _Some) -> None:
        if not self._parts:
            self._take(some)
            return
        by_part: dict[int, list[int]] = {}
        count = len(self._parts)
        for at, key in enumerate(some.keys):
            by_part.setdefault(crc32(key) % count, []).append(at)
        for number, chosen in by_part.items():
            piece = _Some(
                [some.keys[at] for at in chosen],
                [some.places[at] for at in chosen],
                None if some.values is None else [some.values[at] for at in chosen],
            )
            data = _encode(piece)
            try:
                self._parts[number].write(len(data).to_bytes(_LENGTH_BYTES, "big") + data)
            except OSError as error:
                raise os_error("write", tempfile.gettempdir(), error) from error

    def left(self) -> Iterator[Left]:
        """What is left, once, in no order to rely on. Raises Unavailable."""
        if not self._parts:
            yield from self._all()
        for part in self._parts:
            try:
                part.seek(0)
                while head := part.read(_LENGTH_BYTES):
                    self._take(_decode(part.read(int.from_bytes(head, "big"))))
            except OSError as error:
                raise os_error("read", tempfile.gettempdir(), error) from error
            yield from self._all()

    def _take(self, some: _Some) -> None:
        entries = zip(some.keys, some.places, strict=True)
        if some.values is None:
            for entry in entries:
                self._together.pop(entry, None)
        else:
            self._together.update(zip(entries, some.values, strict=True))

    def _all(self) -> Iterator[Left]:
        entries, self._together = self._together, {}
        rest = iter(entries.items())
        while some := list(islice(rest, BLOCK_ENTRIES_MAX)):
            yield Left(
                [key for (key, _), _ in some],
                [place for (_, place), _ in some],
                [msgspec.Raw(value) for _, value in some],
            )
