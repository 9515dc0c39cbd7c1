"""The state store by itself, without a broker: large state over RocksDB, and what its checkpoints cost (W4).

    python -m tests.performance.state_bench [--keys 10000000] [--updates 10000000] [--form files|entries] [--quick]

Loads keys, then updates random ones, with a checkpoint each second that a second thread completes, as in a job. What
it counts: updates per second during and between checkpoints, the longest time that updates stood still, seconds and
bytes of a checkpoint, bytes of new files per byte changed, seconds and bytes of restores at several sizes on the way,
beside what this disk writes and reads in the same run. Writes build/state_bench.json and prints a table.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import secrets
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from processor.cli.table import aligned
from processor.contracts.completion import Completion
from processor.contracts.state_store import KeyedState, KeyedStateRequest, TableSpec
from processor.ids import CheckpointId, KeyGroupRange, StepName
from processor.protocol.entries import StateFile
from processor.settings.model import StateSettings
from processor.state.backends import RocksDbBackend
from processor.state.rocksdb_store import OWN_FILES_MIN_BYTES, RocksDbOptions
from processor.storage.directory_files import DirectoryFiles
from processor.storage.snapshot_file import SnapshotFiles

MIB: Final = 2**20
MAX_PARALLELISM: Final = 128
BATCH: Final = 2_000
INTERVAL_S: Final = 1.0
LOADED_BYTES: Final = 200
UPDATED_BYTES: Final = 100
RESTORE_AT_MIB: Final = (100, 500, 1_000, 2_000)
RESULT = Path(__file__).resolve().parents[2] / "build" / "state_bench.json"
SEED: Final = 7
NOISE_BYTES: Final = 2**20
NOISE: Final = Random(SEED).randbytes(NOISE_BYTES + 2**16)
"""Of which values are pieces: nothing to compress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """One checkpoint, from its cut until its last file was synced."""

    seconds: float
    cut_ms: float
    changed_bytes: int
    new_bytes: int
    new_files: int
    state_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """One restore, until all of the state can be read."""

    state_bytes: int
    seconds: float


@dataclass(slots=True, kw_only=True)
class Phase:
    """Loading, or updating."""

    name: str
    records: int = 0
    seconds: float = 0.0
    during: tuple[int, float] = (0, 0.0)
    """Records and seconds while a checkpoint was being completed."""
    between: tuple[int, float] = (0, 0.0)
    stall_ms: float = 0.0
    """The longest batch."""
    waited_s: float = 0.0
    """For a completion, because the cache was full of what only it may write."""
    checkpoints: list[Checkpoint] = field(default_factory=list)


class Bench:
    """One state, its checkpoints, and what they cost."""

    def __init__(self, root: Path, *, form: str | None, memory_mib: int) -> None:
        """``form``: files or entries, whatever the size; None: by the rule."""
        (root / "checkpoints").mkdir()
        self._root = root / "checkpoints"
        self._files = DirectoryFiles(self._root)
        bytes_min = {"files": 0, "entries": sys.maxsize, None: OWN_FILES_MIN_BYTES}[form]
        settings = StateSettings()
        self._backend = RocksDbBackend(
            snapshots=SnapshotFiles(),
            directory=root / "local",
            options=RocksDbOptions(
                write_buffer_bytes=settings.rocksdb.write_buffer,
                # Of the budget a part; the rest is the cache of values, memtables and the interpreter.
                block_cache_bytes=memory_mib * MIB // 4,
                own_files_min_bytes=bytes_min,
            ),
            cache_entries_max=min(settings.cache_entries_max, memory_mib * 400),
        )
        self.state = self._open(())
        self._number = 0
        self._decided: list[tuple[StateFile, ...]] = []
        self._completing: _Completing | None = None
        self._changed_bytes = 0
        self.restores: list[Restore] = []

    def _open(self, restored: Sequence[StateFile]) -> KeyedState:
        return self._backend.open(
            KeyedStateRequest(
                step=StepName("bench"),
                subtask_index=0,
                max_parallelism=MAX_PARALLELISM,
                key_groups=KeyGroupRange(0, MAX_PARALLELISM),
                tables=[TableSpec(name="value", kind=bytes)],
                described={"value": "bytes"},
                files=self._files,
                file_prefix="a1/bench-0/",
                token=secrets.token_hex,
                restored=restored,
            )
        )

    def run(
        self, phase: Phase, batches: Iterator[list[str]], value_bytes: int, *, restore_at: Sequence[int] = ()
    ) -> None:
        """Read and set the value of each key, and take a checkpoint each second."""
        table = self.state.table("value")
        wanted = list(restore_at)
        begun = due = time.perf_counter()
        due += INTERVAL_S
        paused = 0.0
        for batch in batches:
            at = time.perf_counter()
            completing = self._completing is not None
            for key in batch:
                table.get(key)
                start = int(key[-7:]) % NOISE_BYTES
                table.put(key, NOISE[start : start + value_bytes])
            self._changed_bytes += len(batch) * (len(batch[0]) + value_bytes)
            self._wait_while_pressed(phase)
            now = time.perf_counter()
            phase.records += len(batch)
            phase.stall_ms = max(phase.stall_ms, (now - at) * 1_000)
            records, seconds = phase.during if completing else phase.between
            counted = records + len(batch), seconds + now - at
            if completing:
                phase.during = counted
            else:
                phase.between = counted
            self._look(phase)
            if now >= due and self._completing is None:
                self._cut()
                due = max(due + INTERVAL_S, now)
            if (
                wanted
                and self._decided
                and _bytes(self._decided[-1]) >= wanted[0] * MIB
                and self._completing is None
            ):
                del wanted[0]
                self.measure_restore()
                paused += time.perf_counter() - now
        phase.seconds = time.perf_counter() - begun - paused
        self._finish(phase)
        self._cut()
        self._finish(phase)

    def _wait_while_pressed(self, phase: Phase) -> None:
        at = time.perf_counter()
        while self.state.pressed():
            if self._completing is None:
                self._cut()
            self._finish(phase)
        phase.waited_s += time.perf_counter() - at

    def _cut(self) -> None:
        self._number += 1
        at = time.perf_counter()
        completion = self.state.cut(CheckpointId(self._number))
        cut_ms = (time.perf_counter() - at) * 1_000
        self._completing = _Completing(completion, at, cut_ms, self._changed_bytes)
        self._changed_bytes = 0

    def _finish(self, phase: Phase) -> None:
        if self._completing is not None:
            self._completing.thread.join()
            self._look(phase)

    def _look(self, phase: Phase) -> None:
        """Take notice of a checkpoint that is complete: it is decided, and the one before the last is deleted."""
        done = self._completing
        if done is None or done.thread.is_alive():
            return
        done.thread.join()
        if done.failure is not None:
            raise done.failure
        self._completing = None
        known = {ref.name for files in self._decided for file in files for ref in file.files()}
        new = [ref for file in done.files for ref in file.files() if ref.name not in known]
        phase.checkpoints.append(
            Checkpoint(
                seconds=done.ended - done.begun,
                cut_ms=done.cut_ms,
                changed_bytes=done.changed_bytes,
                new_bytes=sum(ref.bytes for ref in new),
                new_files=len(new),
                state_bytes=_bytes(done.files),
            )
        )
        self.state.decided(CheckpointId(self._number))
        self._decided.append(done.files)
        if len(self._decided) > 2:
            kept = {ref.name for files in self._decided[1:] for file in files for ref in file.files()}
            for file in self._decided.pop(0):
                for ref in file.files():
                    if ref.name not in kept:
                        self._files.delete(ref.name)

    def measure_restore(self) -> None:
        at = time.perf_counter()
        self._open(self._decided[-1]).close()
        self.restores.append(Restore(state_bytes=_bytes(self._decided[-1]), seconds=time.perf_counter() - at))

    def close(self) -> None:
        self.state.close()


class _Completing:
    """A completion on its thread."""

    def __init__(
        self, completion: Completion[tuple[StateFile, ...]], begun: float, cut_ms: float, changed: int
    ) -> None:
        self.begun, self.cut_ms, self.changed_bytes = begun, cut_ms, changed
        self.ended = 0.0
        self.files: tuple[StateFile, ...] = ()
        self.failure: BaseException | None = None
        self._completion = completion
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.files = self._completion.run()
        except BaseException as error:
            self.failure = error
        self.ended = time.perf_counter()


def _bytes(files: Sequence[StateFile]) -> int:
    return sum(ref.bytes for file in files for ref in file.files())


def key_of(number: int) -> str:
    return f"user-{number:010d}"


def loaded(keys: int) -> Iterator[list[str]]:
    """Every key once, in an order of no use to the store."""
    step = 7_919
    while keys % step == 0:
        step += 2
    for start in range(0, keys, BATCH):
        yield [key_of(number * step % keys) for number in range(start, min(start + BATCH, keys))]


def updated(keys: int, updates: int) -> Iterator[list[str]]:
    chance = Random(SEED)
    for start in range(0, updates, BATCH):
        yield [key_of(int(chance.random() * keys)) for _ in range(min(BATCH, updates - start))]


def disk_mib_per_s(root: Path, size: int = 256 * MIB) -> tuple[float, float]:
    """What the disk writes (synced) and reads back, with nothing in between."""
    path, block = root / "disk", os.urandom(MIB)
    at = time.perf_counter()
    with path.open("wb") as file:
        for _ in range(size // MIB):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    written = time.perf_counter() - at
    at = time.perf_counter()
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while file.read(MIB):
            pass
    read = time.perf_counter() - at
    path.unlink()
    return size / MIB / written, size / MIB / read


def rate(counted: tuple[int, float]) -> float:
    records, seconds = counted
    return records / seconds if seconds else 0.0


def lines(phase: Phase) -> list[tuple[str, str]]:
    """The figures of a phase, for people."""
    checkpoints = phase.checkpoints
    changed, new = sum(c.changed_bytes for c in checkpoints), sum(c.new_bytes for c in checkpoints)
    seconds = [c.seconds for c in checkpoints]
    return [
        (f"{phase.name}: records/s", f"{phase.records / phase.seconds:,.0f}"),
        ("  during checkpoints", f"{rate(phase.during):,.0f}"),
        ("  between", f"{rate(phase.between):,.0f}"),
        ("  longest batch of 2,000", f"{phase.stall_ms:.0f} ms"),
        ("  waited for completions", f"{phase.waited_s:.1f} s"),
        ("  checkpoints", f"{len(checkpoints)}"),
        ("  seconds of one, median and longest", f"{statistics.median(seconds):.2f}, {max(seconds):.2f}"),
        ("  cut, longest", f"{max(c.cut_ms for c in checkpoints):.1f} ms"),
        ("  new MiB of one, median", f"{statistics.median(c.new_bytes for c in checkpoints) / MIB:.1f}"),
        ("  new bytes / changed bytes", f"{new / changed:.2f}"),
        ("  state", f"{checkpoints[-1].state_bytes / MIB:,.0f} MiB"),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--keys", type=int, default=10_000_000)
    parser.add_argument("--updates", type=int, default=10_000_000)
    parser.add_argument("--memory", type=int, default=512, help="MiB, of which the store gets its part")
    parser.add_argument(
        "--form", choices=["files", "entries"], help="of all checkpoints; by the rule if not given"
    )
    parser.add_argument("--value-bytes", type=int, default=LOADED_BYTES)
    parser.add_argument("--updated-bytes", type=int, default=UPDATED_BYTES)
    parser.add_argument("--directory", type=Path, help="on the disk to be measured")
    parser.add_argument("--result", type=Path, default=RESULT)
    parser.add_argument("--quick", action="store_true", help="so little that it shows only that it runs")
    given = parser.parse_args(arguments)
    if given.quick:
        given.keys, given.updates, given.form = 20_000, 20_000, given.form or "files"
    with tempfile.TemporaryDirectory(dir=given.directory) as folder:
        root = Path(folder)
        writes, reads = disk_mib_per_s(root, 16 * MIB if given.quick else 256 * MIB)
        bench = Bench(root, form=given.form, memory_mib=given.memory)
        load, update = Phase(name="load"), Phase(name="update")
        try:
            bench.run(load, loaded(given.keys), given.value_bytes, restore_at=RESTORE_AT_MIB)
            bench.run(update, updated(given.keys, given.updates), given.updated_bytes)
            if not bench.restores:
                bench.measure_restore()
        finally:
            bench.close()
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows = [("disk, writes and reads MiB/s", f"{writes:,.0f}, {reads:,.0f}"), *lines(load), *lines(update)]
    for restore in bench.restores:
        speed = restore.state_bytes / MIB / restore.seconds
        rows.append(
            (
                f"restore of {restore.state_bytes / MIB:,.0f} MiB",
                f"{restore.seconds:.2f} s, {speed:,.0f} MiB/s",
            )
        )
    rows.append(("peak memory", f"{peak_mib:,.0f} MiB"))
    print("\n".join(aligned(rows)))
    given.result.parent.mkdir(parents=True, exist_ok=True)
    figures = {
        "disk_mib_per_s": {"writes": writes, "reads": reads},
        "phases": [asdict(load), asdict(update)],
        "restores": [asdict(restore) for restore in bench.restores],
        "peak_mib": peak_mib,
    }
    given.result.write_text(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
