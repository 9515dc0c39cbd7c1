"""The completion of a cut: the frozen parts go into the store, then the whole store into a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Protocol

from processor.contracts.snapshot_format import SnapshotWriter
from processor.ids import FileRef, KeyGroupRange
from processor.invariant import invariant
from processor.protocol.entries import StateFile
from processor.records.batch import Key
from processor.state.batch_cache import FrozenPart


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Entries on their way into a snapshot."""

    groups: KeyGroupRange
    keys: Sequence[Key]
    values: Sequence[Any]


class BlockSource(Protocol):
    """One table as a snapshot takes it."""

    def blocks(self) -> Iterator[Block]: ...


class SnapshotStore(Protocol):
    """The store as a snapshot takes it. Both calls are C's (``batch_cache``)."""

    def begin_snapshot(self) -> None:
        """Hold on to what is there now: every frozen part is in."""
        ...

    def end_snapshot(self) -> None:
        """Let go of it; without effect when nothing is held."""
        ...


class CompletionLane:
    """What the completions of one keyed state share: their order, and whether the state is closed.

    The lock is held by C for the length of one slice, so that closing a store never pulls it away from
    under a call; S takes it only to close.
    """

    def __init__(self) -> None:
        self.slice_lock = Lock()
        self.closed = False
        self.newest_begun = 0


class SnapshotCompletion:
    """One snapshot of one keyed state.

    ``run`` gives one file, or none when the completion was discarded or the state closed before the end.
    After ``discard`` the frozen part stays where it is until the next completion takes it along. A file that
    was finished before the discard stays too: only files that an entry condemns are deleted (R22), and
    sweeps of orphans find the rest.
    """

    def __init__(
        self,
        *,
        number: int,
        lane: CompletionLane,
        parts: Sequence[FrozenPart],
        store: SnapshotStore,
        tables: Sequence[BlockSource],
        create: Callable[[], SnapshotWriter],
        describe: Callable[[FileRef], StateFile],
    ) -> None:
        self._number = number
        self._lane = lane
        self._parts = parts
        self._store = store
        self._tables = tables
        self._create = create
        self._describe = describe
        self._discarded = False
        self._result: tuple[StateFile, ...] = ()

    def run(self) -> tuple[StateFile, ...]:
        """Raises UserCodeError for a value that is not of its declared type, Unavailable from the files."""
        steps = self.steps()
        while True:
            with self._lane.slice_lock:
                if next(steps, _END) is _END:
                    return self._result

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
        yield from self._write_file()

    def _stopped(self) -> bool:
        return self._discarded or self._lane.closed

    def _write_file(self) -> Iterator[None]:
        writer = self._create()
        self._store.begin_snapshot()
        try:
            for number, table in enumerate(self._tables):
                for block in table.blocks():
                    writer.block(number, block.groups, block.keys, block.values)
                    yield
                    if self._stopped():
                        return
            # Nothing after this line may fail: a finished file is either listed or an orphan.
            self._result = (self._describe(writer.finish()),)
        finally:
            self._store.end_snapshot()
            if not self._result:
                writer.discard()


_END = object()
