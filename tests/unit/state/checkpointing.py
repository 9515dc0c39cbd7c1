"""A process that does nothing but checkpoints of keyed state into a directory, to be killed at any moment.

    python -m tests.unit.state.checkpointing DIRECTORY SEED CHECKPOINTS

It starts as an attempt does: seals the log, sweeps, restores the newest decided checkpoint, at a parallelism and over
a backend of the seed's choice. Then it goes through updates and checkpoints; some overlap, some come to nothing;
and retention deletes. A byte on standard output tells of each change of the disk and each file it opens. With
CHECKPOINTS it ends well after so many; with 0 it goes on until it is killed.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

from processor.contracts.state_store import KeyedState, KeyedStateRequest, StateBackend, TableSpec
from processor.ids import (
    NO_CHECKPOINT,
    Attempt,
    CheckpointId,
    Incarnation,
    JobName,
    Place,
    Position,
    SplitId,
    StepName,
    SubtaskId,
    key_groups_of,
    owner_of,
)
from processor.protocol.decisions import LogView
from processor.protocol.entries import (
    CheckpointEntry,
    JobShape,
    Seal,
    SourceState,
    StateFile,
    SubtaskSnapshot,
)
from processor.records.key_groups import key_group
from processor.state.backends import MemoryBackend, RocksDbBackend
from processor.state.rocksdb_store import RocksDbOptions
from processor.storage.decision_log import DecisionLog, Taken
from processor.storage.directory import JobDirectory, open_job_directory
from processor.storage.disk import Disk
from processor.storage.layout import file_prefix
from processor.storage.retention import Retention
from processor.storage.snapshot_file import SnapshotFiles

JOB: Final = JobName("checkpointing")
STEP: Final = StepName("count")
SPLIT: Final = SplitId("numbers")
MAX_PARALLELISM: Final = 16
RETAINED: Final = 3
KEYS: Final = 500
UPDATES: Final = 150
"""Between two checkpoints."""

TABLES: Final = (
    TableSpec(name="last", kind=int),
    TableSpec(name="text", kind=str),
    TableSpec(name="seen", kind=int, mapped=True),
)

Fold = Mapping[tuple[str, Any], Any]


def fold(updates: int) -> Fold:
    """What the state is after so many updates, computed without it: (table, key or place) to value."""
    found: dict[tuple[str, Any], Any] = {}
    for number in range(updates):
        key = key_at(number)
        if number % 7 == 3:
            found.pop(("last", key), None)
            found.pop(("text", key), None)
        else:
            found["last", key] = number
            found["text", key] = text_at(number)
        place = (key, number % 5)
        if number % 11 == 5:
            found.pop(("seen", place), None)
        else:
            found["seen", place] = number
        found["timer", (key, number % 40)] = True
        if number % 13 == 0:
            for due in [at for at in found if at[0] == "timer" and at[1][1] <= number % 20]:
                del found[due]
    return found


def key_at(number: int) -> str:
    return f"k{number * 7919 % KEYS}"


def text_at(number: int) -> str:
    """Of some length, so that files are of some size."""
    return f"{number} " * (number % 60)


class States:
    """The state of all subtasks."""

    def __init__(
        self, backend: StateBackend, directory: JobDirectory, attempt: Attempt, parallelism: int
    ) -> None:
        self._backend = backend
        self._directory = directory
        self._attempt = attempt
        self.subtasks = [SubtaskId(STEP, index) for index in range(parallelism)]
        self.each: list[KeyedState] = []

    def open(self, restored: Sequence[StateFile]) -> None:
        for subtask in self.subtasks:
            mine = key_groups_of(subtask.index, len(self.subtasks), MAX_PARALLELISM)
            self.each.append(
                self._backend.open(
                    KeyedStateRequest(
                        step=STEP,
                        subtask_index=subtask.index,
                        max_parallelism=MAX_PARALLELISM,
                        key_groups=mine,
                        tables=TABLES,
                        described={table.name: "of the test" for table in TABLES},
                        files=self._directory.files,
                        file_prefix=file_prefix(self._attempt, subtask),
                        token=secrets.token_hex,
                        restored=[file for file in restored if file.key_groups.intersects(mine)],
                    )
                )
            )

    def update(self, number: int) -> None:
        key = key_at(number)
        state = self.each[owner_of(key_group(key, MAX_PARALLELISM), len(self.each), MAX_PARALLELISM)]
        if number % 7 == 3:
            state.table("last").remove(key)
            state.table("text").remove(key)
        else:
            state.table("last").put(key, number)
            state.table("text").put(key, text_at(number))
        state.map_table("seen").keep((key, number % 5), None if number % 11 == 5 else number)
        state.timers.add_event(key, number % 40)
        if number % 13 == 0:
            for each in self.each:
                list(each.timers.due_event(number % 20))

    def content(self) -> Fold:
        """All there is. Timers are taken out: nothing comes after it."""
        found: dict[tuple[str, Any], Any] = {}
        for state in self.each:
            for key in (f"k{number}" for number in range(KEYS)):
                for table in ("last", "text"):
                    if (value := state.table(table).get(key)) is not None:
                        found[table, key] = value
                for of_entry, value in state.map_table("seen").entries(key):
                    found["seen", (key, of_entry)] = value
            for time_ms, of in state.timers.due_event(10**6):
                found["timer", (of, time_ms)] = True
        return found

    def close(self) -> None:
        for state in self.each:
            state.close()


class TellingDisk(Disk):
    """Says a byte before each change, and before each file that is opened."""

    def open(self, folder: int, name: str) -> tuple[int, int]:
        self._tell()
        return super().open(folder, name)

    def create(self, folder: int, name: str) -> int:
        self._tell()
        return super().create(folder, name)

    def write(self, file: int, data: bytes | memoryview) -> int:
        self._tell()
        return super().write(file, data)

    def sync(self, descriptor: int) -> None:
        self._tell()
        super().sync(descriptor)

    def link(self, folder: int, name: str, new_name: str) -> None:
        self._tell()
        super().link(folder, name, new_name)

    def link_in(self, path: str, folder: int, name: str) -> None:
        self._tell()
        super().link_in(path, folder, name)

    def link_out(self, folder: int, name: str, path: str) -> None:
        self._tell()
        super().link_out(folder, name, path)

    def remove(self, folder: int, name: str) -> None:
        self._tell()
        super().remove(folder, name)

    def _tell(self) -> None:
        os.write(1, b".")


def backend_of(name: str, root: Path) -> StateBackend:
    if name == "memory":
        return MemoryBackend(snapshots=SnapshotFiles(), scratch=root / "local")
    return RocksDbBackend(
        snapshots=SnapshotFiles(),
        directory=root / "local",
        cache_entries_max=50,
        # Small, so that compaction is always at work and files go as fast as they come.
        options=RocksDbOptions(own_files_min_bytes=0, write_buffer_bytes=64 * 1024),
    )


def look_into(root: Path, disk: Disk | None = None) -> JobDirectory:
    return open_job_directory(root / "checkpoints", JOB, token=secrets.token_hex, disk=disk)


@dataclass(kw_only=True)
class Life:
    """One attempt."""

    chance: Random
    directory: JobDirectory
    log: DecisionLog
    attempt: Attempt
    states: States
    retention: Retention
    parent: CheckpointEntry | None
    place: Place
    updates: int
    checkpoint: CheckpointId

    def run(self, checkpoints: int) -> None:
        decided = 0
        while not checkpoints or decided < checkpoints:
            overlapping = [self._cut() for _ in range(self.chance.choice((1, 1, 2)))]
            for checkpoint, updates, completions in overlapping:
                if self.chance.random() < 0.15:
                    for completion in completions:
                        completion.discard()
                    continue
                files = [completion.run() for completion in completions]
                if self.chance.random() < 0.15:  # acknowledged, and given up
                    self.retention.give_up(ref.name for of in files for file in of for ref in file.files())
                    continue
                self._decide(checkpoint, updates, files)
                decided += 1
        self.retention.forget()

    def _cut(self) -> tuple[CheckpointId, int, list[Any]]:
        for number in range(self.updates, self.updates + UPDATES):
            self.states.update(number)
            for state in self.states.each:
                state.pressed()
        self.updates += UPDATES
        self.checkpoint = CheckpointId(self.checkpoint + 1)
        return self.checkpoint, self.updates, [state.cut(self.checkpoint) for state in self.states.each]

    def _decide(self, checkpoint: CheckpointId, updates: int, files: Sequence[tuple[StateFile, ...]]) -> None:
        decided = self.parent.checkpoint if self.parent is not None else NO_CHECKPOINT
        entry = CheckpointEntry(
            place=self.place,
            attempt=self.attempt,
            nonce=secrets.token_hex(),
            incarnation=Incarnation("only"),
            job=JOB,
            checkpoint=checkpoint,
            parent=decided,
            taken_ms=0,
            shape=JobShape(max_parallelism=MAX_PARALLELISM, parallelism={}, stateful={}),
            subtasks=tuple(
                SubtaskSnapshot(
                    subtask=subtask,
                    keyed=keyed,
                    sources=(SourceState(step=STEP, positions={SPLIT: Position(next=updates)}),),
                )
                for subtask, keyed in zip(self.states.subtasks, files, strict=True)
            ),
            expected=(),
        )
        whole = self.retention.complete(entry, None, needed_from=decided)
        assert isinstance(self.log.take(whole), Taken)
        self.retention.decided(whole)
        self.parent, self.place = whole, Place(self.place + 1)
        for state in self.states.each:
            state.decided(checkpoint)
        self.retention.forget()


def position(entry: CheckpointEntry) -> int:
    return entry.subtasks[0].sources[0].positions[SPLIT].next


def keyed(entry: CheckpointEntry) -> Iterator[StateFile]:
    for subtask in entry.subtasks:
        yield from subtask.keyed


def begin(root: Path, chance: Random) -> Life:
    """What a recovery does, as far as state and files are concerned."""
    directory = look_into(root, TellingDisk())
    log = DecisionLog(directory.log)
    before = log.read_all()
    place = Place(before.entries[-1].place + 1 if before.entries else 1)
    attempt = Attempt(max((entry.attempt for entry in before.entries), default=0) + 1)
    seal = Seal(
        place=place,
        attempt=attempt,
        nonce=secrets.token_hex(),
        incarnation=Incarnation("only"),
        job=JOB,
        sinks=(),
    )
    assert isinstance(log.take(seal), Taken)
    view: LogView = log.read_all()
    newest = view.newest()
    backend = backend_of(chance.choice(("memory", "rocksdb", "rocksdb", "rocksdb")), root)
    states = States(backend, directory, attempt, chance.choice((1, 1, 2, 3)))
    retention = Retention(files=directory.files, log=log, view=view, attempt=attempt, retained=RETAINED)
    retention.sweep()
    states.open([] if newest is None else list(keyed(newest)))
    return Life(
        chance=chance,
        directory=directory,
        log=log,
        attempt=attempt,
        states=states,
        retention=retention,
        parent=newest,
        place=Place(place + 1),
        updates=0 if newest is None else position(newest),
        checkpoint=CheckpointId(max((e.checkpoint for e in view.checkpoints()), default=NO_CHECKPOINT)),
    )


def main(root: Path, seed: int, checkpoints: int) -> None:
    life = begin(root, Random(seed))
    life.run(checkpoints)
    life.states.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
