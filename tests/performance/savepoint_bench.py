"""Canonical savepoints by themselves, beside a bare loop of fastavro over the same schema in the same run.

    python -m tests.performance.savepoint_bench [--keys 5000000] [--rounds 3]

A snapshot of so many keys is converted into the canonical format and back, as a savepoint and a start from it do; the
bare loops write the same records to a file, from memory, and read them. Each round measures all four, interleaved.
Writes build/savepoint_bench.json and prints a table; the target is 60 % of the bare loop, both ways.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any, Final

import fastavro
import msgspec

from processor.cli.table import aligned
from processor.ids import (
    NO_CHECKPOINT,
    Attempt,
    CheckpointId,
    FileRef,
    Incarnation,
    JobName,
    KeyGroupRange,
    Place,
    StepName,
    SubtaskId,
)
from processor.protocol.entries import CheckpointEntry, JobShape, StateFile, SubtaskSnapshot
from processor.savepoint.canonical import from_canonical, to_canonical
from processor.state.value_types import describe_type
from processor.storage.directory_files import DirectoryFiles
from processor.storage.snapshot_file import SnapshotFiles

RESULT: Final = Path(__file__).resolve().parents[2] / "build" / "savepoint_bench.json"
TARGET: Final = 0.6
BLOCK: Final = 4_000
RECORDS: Final = 100_000
MAX_PARALLELISM: Final = 128
EVERYWHERE: Final = KeyGroupRange(0, MAX_PARALLELISM)
STEP: Final = StepName("count")


class Seen(msgspec.Struct, frozen=True):
    """A small record, as jobs keep it."""

    count: int
    total: float
    last: str


VALUES: Final[dict[str, tuple[Any, Callable[[int], Any]]]] = {
    "int": (int, lambda at: at),
    "record": (Seen, lambda at: Seen(at, at / 3, f"page-{at % 1_000}")),
}


def keys(number: int) -> Iterator[list[str]]:
    """In blocks."""
    for start in range(0, number, BLOCK):
        yield [f"user-{at:09d}" for at in range(start, min(number, start + BLOCK))]


def snapshot(files: DirectoryFiles, number: int, kind: Any, value: Callable[[int], Any]) -> CheckpointEntry:
    """A checkpoint with so many keys in one file."""
    schema = describe_type(kind)
    writer = SnapshotFiles().create(
        files.create("a1/count-0/state.state"),
        step=STEP,
        max_parallelism=MAX_PARALLELISM,
        key_groups=EVERYWHERE,
        tables=[("state", schema)],
    )
    at = count()
    for some in keys(number):
        writer.block(0, EVERYWHERE, some, [value(next(at)) for _ in some])
    held = StateFile(step=STEP, file=writer.finish(), key_groups=EVERYWHERE, states={"state": schema})
    return CheckpointEntry(
        place=Place(1),
        attempt=Attempt(1),
        nonce="",
        incarnation=Incarnation("bench"),
        job=JobName("bench"),
        checkpoint=CheckpointId(1),
        parent=NO_CHECKPOINT,
        taken_ms=0,
        shape=JobShape(max_parallelism=MAX_PARALLELISM, parallelism={}, stateful={STEP: {"state": schema}}),
        subtasks=(SubtaskSnapshot(subtask=SubtaskId(STEP, 0), keyed=(held,)),),
        expected=(),
    )


def one_round(root: Path, number: int, kind: Any, value: Callable[[int], Any]) -> dict[str, float]:
    """Entries per second of each way."""
    files = DirectoryFiles(root)
    entry = snapshot(files, number, kind, value)
    names = count()

    def timed(act: Callable[[], Any]) -> tuple[float, Any]:
        began = time.perf_counter()
        made = act()
        return number / (time.perf_counter() - began), made

    ours_write, subtasks = timed(
        lambda: to_canonical(entry, files, files, lambda: f"t{next(names)}", lambda _: None)
    )
    (held,) = subtasks[0].keyed
    bare = root / "bare.avro"
    records = bare_records(number, value)
    bare_write, _ = timed(lambda: write_bare(bare, root / held.file.name, number, records))
    bare_read, found = timed(lambda: read_bare(bare))
    assert found == number
    canonical = CheckpointEntry(
        **{name: getattr(entry, name) for name in entry.__dataclass_fields__} | {"subtasks": subtasks}
    )
    ours_read, back = timed(
        lambda: from_canonical(
            canonical,
            files,
            files,
            lambda _: f"a2/count-0/t{next(names)}.state",
            MAX_PARALLELISM,
            lambda _: None,
        )
    )
    assert same_entries(files, entry.subtasks[0].keyed[0].file, back[0].keyed[0].file)
    return {
        "ours_write": ours_write,
        "bare_write": bare_write,
        "ours_read": ours_read,
        "bare_read": bare_read,
    }


def bare_records(number: int, value: Callable[[int], Any]) -> list[dict[str, Any]]:
    """Some of the records, made beforehand: the bare loop writes them over and over."""
    some = [key for chunk in keys(min(number, RECORDS)) for key in chunk]
    return [{"key": key, "value": msgspec.to_builtins(value(at))} for at, key in enumerate(some)]


def write_bare(path: Path, like: Path, number: int, records: list[dict[str, Any]]) -> None:
    """So many records of the very schema."""
    with like.open("rb") as file:
        schema = fastavro.parse_schema(fastavro.reader(file).writer_schema)
    with path.open("wb") as file:
        fastavro.writer(file, schema, islice(cycle(records), number), sync_interval=256 * 1024)
        file.flush()
        os.fsync(file.fileno())


def read_bare(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in fastavro.reader(file))


def same_entries(files: DirectoryFiles, one: FileRef, other: FileRef) -> bool:
    """What came back is what went in."""
    both = [
        SnapshotFiles().read(files, ref, EVERYWHERE, {"state": msgspec.Raw}, others=True)
        for ref in (one, other)
    ]
    return all(
        list(a.keys) == list(b.keys) and list(map(bytes, a.values)) == list(map(bytes, b.values))
        for a, b in zip(*both, strict=True)
    )


def measure(number: int, rounds: int) -> dict[str, Any]:
    """Medians over rounds, by type of value."""
    result: dict[str, Any] = {"keys": number, "rounds": rounds, "target": TARGET, "values": {}}
    for name, (kind, value) in VALUES.items():
        found = []
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as root:
                found.append(one_round(Path(root), number, kind, value))
        rates = {what: statistics.median(each[what] for each in found) for what in found[0]}
        rates["write_share"] = statistics.median(each["ours_write"] / each["bare_write"] for each in found)
        rates["read_share"] = statistics.median(each["ours_read"] / each["bare_read"] for each in found)
        result["values"][name] = rates
    return result


def table(result: dict[str, Any]) -> str:
    rows = [("VALUE", "WRITTEN /S", "BARE /S", "SHARE", "READ /S", "BARE /S", "SHARE")]
    for name, rates in result["values"].items():
        rows.append(
            (
                name,
                f"{rates['ours_write']:,.0f}",
                f"{rates['bare_write']:,.0f}",
                f"{rates['write_share']:.2f}",
                f"{rates['ours_read']:,.0f}",
                f"{rates['bare_read']:,.0f}",
                f"{rates['read_share']:.2f}",
            )
        )
    return "\n".join(aligned(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--keys", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    result = measure(given.keys, given.rounds)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(table(result))


if __name__ == "__main__":
    main()
