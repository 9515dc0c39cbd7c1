"""Between keyed state and the file that keeps a snapshot of it.

State turns entries into blocks of bytes and back; a format frames blocks, checks them and makes the file
durable. The two rooms do not know each other: the runtime hands a format to a state backend.

A block has two parallel columns in msgpack, so that it can be read without the job's code, and so that a
million entries are a few hundred calls rather than a million:

* ``values`` is one array of ``count`` values, each as msgspec encodes the declared type;
* ``keys`` is one array of ``count`` keys, all of the kind that ``key_kind`` names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from processor.contracts.file_store import FileStore
from processor.ids import FileRef, KeyGroupRange, StepName

BLOCK_ENTRIES_MAX = 4_096
"""Entries of one block. Encoding one holds the interpreter for about half a millisecond, no longer."""

TIMERS_TABLE_PREFIX = "timers/"
"""Tables with names that begin so hold timers; no declared state can have such a name."""


class KeyKind(StrEnum):
    """How the keys of one block are written."""

    TEXT = "text"
    """msgpack array of str."""
    NUMBER = "number"
    """msgpack array of int (64 bits)."""
    ENCODED = "encoded"
    """msgpack array of bytes, each made by ``records.key_groups.encode_key``; any mix of types."""
    TIMER = "timer"
    """msgpack array of [time in ms, key made by ``encode_key``]; values are all ``true``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateBlock:
    """Some entries of one table, at most BLOCK_ENTRIES_MAX, in no promised order."""

    table: str
    key_groups: KeyGroupRange
    """Every key of the block belongs to this range; it may be wider than needed."""
    count: int
    key_kind: KeyKind
    keys: bytes
    values: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotHeader:
    """What a snapshot file says about itself, first."""

    step: StepName
    key_groups: KeyGroupRange
    max_parallelism: int
    states: Mapping[str, str]
    """Declared states by name with a description of their type."""


class SnapshotWriter(Protocol):
    """A snapshot file being written. Used by one thread."""

    def append(self, block: StateBlock) -> None: ...

    def finish(self) -> FileRef:
        """Make it durable. Raises Unavailable."""
        ...

    def discard(self) -> None:
        """Give it up; idempotent, and without effect after ``finish``."""
        ...


class SnapshotReader(Protocol):
    """A snapshot file being read."""

    @property
    def header(self) -> SnapshotHeader: ...

    def blocks(self) -> Iterator[StateBlock]:
        """All blocks, in the order written, once. Raises DamagedFile by name for anything that is not as it
        was written; nothing read may be used before the iterator has ended without an error."""
        ...


class SnapshotFormat(Protocol):
    """How snapshots are laid out in a file."""

    def create(self, files: FileStore, name: str, header: SnapshotHeader) -> SnapshotWriter: ...

    def open(self, files: FileStore, ref: FileRef) -> SnapshotReader:
        """Raises DamagedFile by name when it is missing or not a snapshot file."""
        ...
