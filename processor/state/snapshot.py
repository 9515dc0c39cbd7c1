"""The completion of a cut: the frozen parts go into the store; then what changed, or the whole store, into a file, or
the store's own files into the checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice
from threading import Lock
from typing import Any, Protocol

import msgspec

from processor.contracts.file_store import FileStore
from processor.contracts.snapshot_format import BLOCK_ENTRIES_MAX, SnapshotFormat, SnapshotWriter
from processor.ids import FileRef, KeyGroupRange, StepName
from processor.invariant import invariant
from processor.protocol.entries import StateFile
from processor.records.batch import Key
from processor.state.front import Entries, FrozenPart
from processor.state.stored_keys import StoredKey, author_keys


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Entries on their way into a snapshot."""

    groups: KeyGroupRange
    keys: Sequence[Key]
    values: Sequence[Any]


class BlockSource(Protocol):
    """One table as a snapshot takes it."""

    def blocks(self) -> Iterator[Block]:
        """All entries."""
        ...

    def changes(self, entries: Entries) -> Iterator[tuple[bool, Block]]:
        """These entries; True with those that are no longer there."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotTarget:
    """Where a snapshot in a store's own files goes, and what is there already."""

    files: FileStore
    format: SnapshotFormat
    name: str
    """Of the file that describes the others; what is before its last dot begins their names."""
    step: StepName
    states: Mapping[str, str]
    tables: Sequence[tuple[str, str]]
    """Names with descriptions of the type of their values."""
    max_parallelism: int
    key_groups: KeyGroupRange
    known: Mapping[str, FileRef]
    """Files of a decided checkpoint of this very store, by their local names."""


class OwnFiles(Protocol):
    """A snapshot in a store's own files. ``steps`` to the end gives ``outcome``; ``close`` comes last, whatever
    happened, and takes away what is listed nowhere."""

    outcome: StateFile | None

    def steps(self) -> Iterator[None]: ...

    def close(self) -> None: ...


class SnapshotStore(Protocol):
    """The store as a snapshot takes it. All calls are C's (``front``)."""

    def begin_snapshot(self) -> None:
        """Hold on to what is there now: every frozen part is in."""
        ...

    def end_snapshot(self) -> None:
        """Let go of it; without effect when nothing is held."""
        ...

    def own_files(self, target: SnapshotTarget) -> OwnFiles | None:
        """A snapshot of what is there now in files of the store's own, which a restore finds cheaper than entries;
        None where entries are better."""
        ...


class CompletionLane:
    """What the completions of one keyed state share: their order, and whether the state is closed.

    The lock is held by C for the length of one slice, so that closing a store never pulls it away from
    under a call; S takes it only to close.
    """

    def __init__(self, lock: Callable[[], AbstractContextManager[object]] = Lock) -> None:
        self.slice_lock = lock()
        self.closed = False
        self.newest_begun = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Files that together hold the state of one decided checkpoint, each on top of the ones before."""

    files: tuple[StateFile, ...] = ()
    whole_entries: int = 0
    """In the first file."""
    changed_entries: int = 0
    """In the others."""

    @property
    def known(self) -> Mapping[str, FileRef]:
        """A store's own files, by their local names."""
        return {each.local_name: each.file for state in self.files for each in state.database or ()}

    def bears(self, more: int) -> bool:
        """Whether another file of changes goes on top. With twice as many changes as entries a restore reads three
        times what a whole file would have, and writing one costs half of what was saved since the last."""
        if not self.files or self.files[0].database is not None:
            return False
        return self.changed_entries + more <= max(CHANGES_PER_ENTRY_MAX * self.whole_entries, CHANGES_MIN)


CHANGES_PER_ENTRY_MAX = 2
CHANGES_MIN = 10_000
"""Small states are not written whole just because most of them changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What changed since the checkpoint whose files are ``chain``: the frozen parts of each table, oldest first."""

    chain: Chain
    parts: Sequence[Sequence[FrozenPart]]

    def entries(self) -> int:
        return sum(len(part.entries) for table in self.parts for part in table)

    def of_table(self, table: int) -> Entries:
        """Later parts over earlier ones."""
        parts = self.parts[table]
        if len(parts) == 1:
            return parts[0].entries
        merged: Entries = {}
        for part in parts:
            merged.update(part.entries)
        return merged


class SnapshotCompletion:
    """One snapshot of one keyed state.

    ``run`` gives the files that hold it, or none when the completion was discarded or the state closed before
    the end. After ``discard`` the frozen part stays where it is until the next completion takes it along. A file
    that was finished before the discard stays too: only files that an entry condemns are deleted (R22), and
    sweeps of orphans find the rest.
    """

    def __init__(
        self,
        *,
        number: int,
        lane: CompletionLane,
        parts: Sequence[FrozenPart],
        changes: Changes,
        store: SnapshotStore,
        tables: Sequence[BlockSource],
        create: Callable[[bool], SnapshotWriter],
        target: SnapshotTarget,
        describe: Callable[[FileRef], StateFile],
    ) -> None:
        """``changes``: what a file on top of decided ones would hold. ``create`` begins a file, told whether it
        is to be whole."""
        self._number = number
        self._lane = lane
        self._parts = parts
        self._changes = changes
        self._store = store
        self._tables = tables
        self._create = create
        self._target = target
        self._describe = describe
        self._discarded = False
        self.chain: Chain | None = None
        """The outcome; set once, by C."""

    def run(self) -> tuple[StateFile, ...]:
        """Raises UserCodeError for a value that is not of its declared type, Unavailable from the files."""
        steps = self.steps()
        while True:
            with self._lane.slice_lock:
                if next(steps, _END) is _END:
                    return self.files

    @property
    def files(self) -> tuple[StateFile, ...]:
        """What ``run`` gives."""
        return self.chain.files if self.chain is not None else ()

    def discard(self) -> None:
        """May be called from another thread while ``run`` is under way, which then ends at its next slice."""
        self._discarded = True

    def steps(self) -> Iterator[None]:
        """The work of ``run`` in slices of about a millisecond."""
        lane = self._lane
        if self._stopped():
            return
        invariant(self._number > lane.newest_begun, "completions run one after another, in order of cuts")
        lane.newest_begun = self._number
        for part in self._parts:
            if part.written:
                continue  # an earlier completion took it along
            for _ in part.write_in_steps():
                yield
                if self._stopped():
                    return
        changes = self._changes
        if changes.chain.files and not changes.entries():
            self.chain = changes.chain
        elif changes.chain.bears(changes.entries()):
            yield from self._write_changes(changes)
        elif (own := self._store.own_files(self._target)) is not None:
            yield from self._upload(own)
        else:
            yield from self._write_whole()

    def _stopped(self) -> bool:
        return self._discarded or self._lane.closed

    def _write_changes(self, changes: Changes) -> Iterator[None]:
        chain, more = changes.chain, changes.entries()
        writer = self._create(False)
        try:
            for number, table in enumerate(self._tables):
                for removed, block in table.changes(changes.of_table(number)):
                    at = number + len(self._tables) if removed else number
                    writer.block(at, block.groups, block.keys, block.values)
                    yield
                    if self._stopped():
                        return
            # Nothing after this line may fail: a finished file is either listed or an orphan.
            self.chain = Chain(
                files=(*chain.files, self._describe(writer.finish())),
                whole_entries=chain.whole_entries,
                changed_entries=chain.changed_entries + more,
            )
        finally:
            if self.chain is None:
                writer.discard()

    def _upload(self, own: OwnFiles) -> Iterator[None]:
        try:
            for _ in own.steps():
                yield
                if self._stopped():
                    return
            if own.outcome is not None:
                self.chain = Chain(files=(own.outcome,))
        finally:
            own.close()

    def _write_whole(self) -> Iterator[None]:
        writer = self._create(True)
        entries = 0
        self._store.begin_snapshot()
        try:
            for number, table in enumerate(self._tables):
                for block in table.blocks():
                    entries += len(block.keys)
                    writer.block(number, block.groups, block.keys, block.values)
                    yield
                    if self._stopped():
                        return
            self.chain = Chain(files=(self._describe(writer.finish()),), whole_entries=entries)
        finally:
            self._store.end_snapshot()
            if self.chain is None:
                writer.discard()


def changed_values(
    entries: Entries, key_groups: KeyGroupRange, *, shared: bool
) -> Iterator[tuple[bool, Block]]:
    """``BlockSource.changes`` of a table of values; ``shared``: they are objects, not bytes (``value_types``)."""

    def block(keys: list[StoredKey], values: list[Any]) -> Block:
        return Block(groups=key_groups, keys=author_keys(keys), values=values)

    keys, values = iter(entries.keys()), iter(entries.values())
    while some := list(islice(keys, BLOCK_ENTRIES_MAX)):
        found = list(islice(values, BLOCK_ENTRIES_MAX))
        gone: list[StoredKey] = []
        if type(None) in set(map(type, found)):
            gone = [key for key, value in zip(some, found, strict=True) if value is None]
            some = [key for key, value in zip(some, found, strict=True) if value is not None]
            found = [value for value in found if value is not None]
        if some:
            yield False, block(some, found if shared else list(map(msgspec.Raw, found)))
        if gone:
            yield True, block(gone, [0] * len(gone))


_END = object()
