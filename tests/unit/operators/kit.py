"""What an operator needs around it to run alone: a context, a clock, files, and ends that record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, get_origin

from processor.contracts.policy import Fail, Policy
from processor.contracts.sink import Guarantee, SinkContext, SinkPlace
from processor.contracts.state_store import StateBackend
from processor.fault_points import FaultHook, no_faults
from processor.ids import CheckpointId, JobName, KeyGroupRange, SplitId, StepName, key_groups_of
from processor.operators.operator import AnyOperator, OperatorContext, OperatorSnapshot, Restored
from processor.protocol.entries import OutboxFile, StateFile
from processor.records.batch import Batch, Headers, Key
from processor.records.rows import RowBlock
from processor.state.backends import MemoryBackend, RocksDbBackend
from processor.storage.outbox import read_outbox
from processor.storage.outbox_files import OutboxFiles
from processor.storage.snapshot_file import SnapshotFiles
from tests.unit.state.fakes import MemoryFiles

MAX_PARALLELISM = 16

Row = tuple[Any, int, Any, Any, Any]
"""Value, timestamp, key, headers, offset."""


@dataclass
class SetClock:
    """A clock that stands where it is put."""

    now_ms: int = 1_000

    def wall_ms(self) -> int:
        return self.now_ms

    def monotonic_ms(self) -> int:
        return self.now_ms


class Recorder:
    """A collector that keeps what it gets, and refuses batches that must not travel."""

    def __init__(self) -> None:
        self.batches: list[Batch[Any]] = []

    def emit(self, batch: Batch[Any]) -> None:
        assert len(batch) > 0, "an empty batch travels"
        for column in (batch.timestamps, batch.keys, batch.headers, batch.offsets):
            assert column is None or len(column) == len(batch), "columns differ in length"
        self.batches.append(batch)

    @property
    def values(self) -> list[Any]:
        return [value for batch in self.batches for value in batch.values]

    @property
    def rows(self) -> list[Row]:
        return [row for batch in self.batches for row in rows_of(batch)]


def rows_of(batch: Batch[Any]) -> list[Row]:
    size = range(len(batch))
    return [
        (
            batch.values[i],
            batch.timestamps[i],
            None if batch.keys is None else batch.keys[i],
            None if batch.headers is None else batch.headers[i],
            None if batch.offsets is None else batch.offsets[i],
        )
        for i in size
    ]


def batch(
    values: Sequence[Any],
    *,
    keys: Sequence[Key] | None = None,
    timestamps: Sequence[int] | None = None,
    headers: Sequence[Headers] | None = None,
    split: str = "lines/0",
    offset: int = 0,
) -> Batch[Any]:
    """Records of one split, from ``offset`` on, with a millisecond between them unless told otherwise."""
    return Batch(
        values=list(values),
        timestamps=list(range(offset, offset + len(values)) if timestamps is None else timestamps),
        keys=keys,
        headers=headers,
        split=SplitId(split),
        offsets=list(range(offset, offset + len(values))),
    )


@dataclass
class Bench:
    """Opens operators with everything around them, one after another over the same files."""

    backend_name: str = "memory"
    files: Any = field(default_factory=MemoryFiles)
    clock: SetClock = field(default_factory=SetClock)
    counted: Counter[str] = field(default_factory=Counter)
    tokens: Any = field(default_factory=count)
    faults: FaultHook = no_faults
    directory: Path | None = None

    def backend(self) -> StateBackend:
        if self.backend_name == "memory":
            return MemoryBackend(snapshots=SnapshotFiles())
        directory = self.directory or Path(mkdtemp(prefix="operators"))
        return RocksDbBackend(snapshots=SnapshotFiles(), directory=directory)

    def context(
        self,
        step: str = "step",
        *,
        policy: Policy | None = None,
        restored: Sequence[StateFile] = (),
        watermarks: Mapping[KeyGroupRange, int] | None = None,
        processing_time_ms: int = 0,
        outbox_bytes_max: int = 2**20,
        operators: Sequence[StateFile] = (),
        subtask: tuple[int, int] = (0, 1),
    ) -> OperatorContext:
        """``subtask``: its index, and how many there are; ``operators``: files of all that there were."""
        index, parallelism = subtask
        return OperatorContext(
            job=JobName("job"),
            step=StepName(step),
            subtask_index=index,
            parallelism=parallelism,
            max_parallelism=MAX_PARALLELISM,
            key_groups=key_groups_of(index, parallelism, MAX_PARALLELISM),
            backend=self.backend(),
            files=self.files,
            outboxes=OutboxFiles(self.files),
            file_prefix=f"1/{step}-0/",
            settings={},
            policy=policy or Fail(),
            clock=self.clock,
            token=lambda: f"{next(self.tokens):08d}",
            count=self._count,
            restored=Restored(keyed=tuple(restored), operators=tuple(operators), watermarks=watermarks or {}),
            processing_time_ms=processing_time_ms,
            outbox_bytes_max=outbox_bytes_max,
            faults=self.faults,
        )

    def _count(self, name: str, by: int) -> None:
        self.counted[name] += by

    def run(self, operator: AnyOperator, *, sides: Sequence[str] = (), **more: Any) -> Running:
        return Running(self, operator, sides, self.context(**more))

    def contents(self, snapshot: OperatorSnapshot, kinds: Mapping[str, Any]) -> dict[str, dict[Any, Any]]:
        """What the files of a snapshot hold, by table; timers included, as sets of times by key. Maps, whose kinds
        are tuples of the entry's encoded key and its value, are dicts by key."""
        found: dict[str, dict[Any, Any]] = {}
        for file in (*snapshot.keyed, *snapshot.operators):
            everything = KeyGroupRange(0, MAX_PARALLELISM)
            codecs = {"timers/event": int, "timers/processing": int, **kinds}
            for block in SnapshotFiles().read(self.files, file.file, everything, codecs):
                table = found.setdefault(block.table, {})
                for key, value in zip(block.keys, block.values, strict=True):
                    if block.table.startswith("timers"):
                        table.setdefault(key, set()).add(value)
                    elif get_origin(kinds[block.table]) is tuple:
                        entries, (entry_key, entry_value) = table.setdefault(key, {}), value
                        assert entry_key not in entries, "an entry is twice in a snapshot"
                        entries[entry_key] = entry_value
                    else:
                        assert key not in table, "a key is twice in a snapshot"
                        table[key] = value
        return {name: entries for name, entries in found.items() if entries}

    def rows(self, outboxes: Sequence[OutboxFile]) -> list[bytes | None]:
        """Values of the rows of outboxes, in the order in which they are numbered."""
        return [
            value
            for box in outboxes
            for part in read_outbox(self.files, box.file)
            for value in part.decode().values
        ]


class Running:
    """One open operator and what it emits."""

    def __init__(
        self, bench: Bench, operator: AnyOperator, sides: Sequence[str], context: OperatorContext
    ) -> None:
        self.bench = bench
        self.operator = operator
        self.out = Recorder()
        self.sides = {tag: Recorder() for tag in sides}
        operator.connect(self.sides)
        operator.open(context)

    def feed(self, fed: Batch[Any], input: int = 0) -> Running:
        self.operator.on_batch(input, fed, self.out)
        return self

    def watermark(self, time_ms: int) -> Running:
        self.operator.on_watermark(time_ms, self.out)
        return self

    def clock(self, now_ms: int) -> Running:
        self.bench.clock.now_ms = now_ms
        self.operator.on_processing_time(now_ms, self.out)
        return self

    def cut(self, checkpoint: int) -> OperatorSnapshot:
        return self.operator.cut(CheckpointId(checkpoint)).run()


class TextSink:
    """A sink of str whose rows stay in the outbox; what it cannot write, ``refuses`` tells."""

    def __init__(
        self,
        refuses: Callable[[Any], bool] = lambda value: False,
        guarantee: Guarantee = Guarantee.EXACTLY_ONCE,
    ) -> None:
        self._refuses = refuses
        self._guarantee = guarantee

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    def accepts(self, value: str, /) -> None: ...

    def value_type(self) -> type[str]:
        return str

    def check(self, context: SinkContext) -> SinkPlace:
        return SinkPlace(cluster="memory", marker_store="memory", targets={"out": "out"})

    def encoder(self, context: SinkContext) -> TextRows:
        return TextRows(self._refuses)

    def publisher(self, context: SinkContext, identity: Any) -> Any:
        raise AssertionError("no operator publishes")

    def __repr__(self) -> str:
        return "TextSink()"


class TextRows:
    def __init__(self, refuses: Callable[[Any], bool]) -> None:
        self._refuses = refuses

    def encode(self, batch: Batch[Any]) -> Sequence[RowBlock]:
        if any(map(self._refuses, batch.values)):
            raise ValueError("refused")
        return [
            RowBlock(
                topic="out",
                values=[None if value is None else str(value).encode() for value in batch.values],
                keys=None if batch.keys is None else [str(key).encode() for key in batch.keys],
                timestamps=batch.timestamps,
                headers=batch.headers,
            )
        ]
