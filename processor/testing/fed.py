"""A source that a test feeds with values, and a sink that collects values: what ``run_job`` puts in place of a job's
own, so that nothing is encoded and no system is needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict

from processor.contracts.plugin import DoctorFinding
from processor.contracts.simulated import OutsideWorld
from processor.contracts.sink import Guarantee, SinkContext, SinkPlace, TransactionLimits
from processor.contracts.source import SourceContext
from processor.contracts.topic_reader import RawHeaders, TopicChunk, TopicReader
from processor.ids import Marker, Position, PublisherId, SplitId
from processor.records.batch import NO_TIMESTAMP, Batch, Key
from processor.records.rows import RowBlock

SECTION = "fed"
ROWS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Advance:
    """Fed in place of a value: event time has reached this; the value itself goes no further."""

    time_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FedRecord:
    value: Any
    key: Key | None = None
    time_ms: int | None = None
    ends_batch: bool = False
    """No batch goes on behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRecord:
    value: Any
    key: Key | None
    time_ms: int


@dataclass(slots=True)
class Kept:
    """All that was fed and written, by step."""

    fed: dict[str, list[FedRecord]] = field(default_factory=dict)
    encoded: list[WrittenRecord] = field(default_factory=list)
    """What sinks were given; a row is the place in this list."""
    written: dict[str, list[WrittenRecord]] = field(default_factory=dict)
    """What was published."""
    markers: dict[PublisherId, Marker] = field(default_factory=dict)


class FedSettings(BaseModel):
    model_config = ConfigDict(frozen=True)

    kept: Any


def _kept(sections: Mapping[str, object]) -> Kept:
    section = sections[SECTION]
    assert isinstance(section, FedSettings)
    assert isinstance(section.kept, Kept)
    return section.kept


class FedSource:
    """One split for each source step."""

    bounded = False

    def __init__(self, step: str, value_type: type[Any] | None) -> None:
        self.step = step
        self._value_type = value_type

    def value_type(self) -> type[Any] | None:
        return self._value_type

    def check(self, context: SourceContext) -> None:
        return None

    def enumerator(self, context: SourceContext) -> _FedEnumerator:
        return _FedEnumerator(self.step)

    def reader(self, context: SourceContext) -> _FedReader:
        return _FedReader(_kept(context.settings).fed)


class _FedEnumerator:
    def __init__(self, step: str) -> None:
        self._step = step

    def start(self) -> Mapping[SplitId, Position]:
        return {SplitId(f"{self._step}/0"): Position(next=0)}

    def check(self, known: Mapping[SplitId, Position]) -> None:
        return None

    def discover(self, known: Mapping[SplitId, Position]) -> Mapping[SplitId, Position]:
        return {}

    def published(self, positions: Mapping[SplitId, Position]) -> None:
        return None

    def close(self) -> None:
        return None


class _FedReader:
    def __init__(self, fed: Mapping[str, list[FedRecord]]) -> None:
        self._fed = fed
        self._positions: dict[SplitId, Position] = {}

    def assign(self, splits: Mapping[SplitId, Position]) -> None:
        self._positions.update(splits)

    def pause(self, splits: frozenset[SplitId]) -> None:
        return None

    def poll(self, records_max: int, wait_ms: int) -> Sequence[tuple[SplitId, Batch[Any]]]:
        found = []
        for split, at in self._positions.items():
            records = self._fed[split.rpartition("/")[0]][at.next : at.next + records_max]
            ends = next((n for n, record in enumerate(records, 1) if record.ends_batch), len(records))
            if records := records[:ends]:
                self._positions[split] = Position(next=at.next + len(records))
                found.append((split, _batch(split, at.next, records)))
        return found

    def positions(self) -> Mapping[SplitId, Position]:
        return dict(self._positions)

    def close(self) -> None:
        return None


def _batch(split: SplitId, first: int, records: Sequence[FedRecord]) -> Batch[Any]:
    keys: list[Any] | None = [record.key for record in records]
    if keys is not None and keys.count(None) == len(keys):
        keys = None
    return Batch(
        values=[record.value for record in records],
        timestamps=[NO_TIMESTAMP if record.time_ms is None else record.time_ms for record in records],
        keys=keys,
        split=split,
        offsets=list(range(first, first + len(records))),
    )


class CollectingSink:
    """Keeps values as they are; rows are their numbers."""

    def __init__(self, step: str) -> None:
        self.step = step

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee.EXACTLY_ONCE

    def accepts(self, value: Any, /) -> None:
        return None

    def check(self, context: SinkContext) -> SinkPlace:
        return SinkPlace(cluster=SECTION, marker_store=SECTION, targets={self.step: self.step})

    def encoder(self, context: SinkContext) -> _CollectingEncoder:
        return _CollectingEncoder(self.step, _kept(context.settings))

    def publisher(self, context: SinkContext, identity: PublisherId) -> _CollectingPublisher:
        return _CollectingPublisher(identity, _kept(context.settings))


class _CollectingEncoder:
    def __init__(self, step: str, kept: Kept) -> None:
        self._step = step
        self._kept = kept

    def encode(self, batch: Batch[Any]) -> Sequence[RowBlock]:
        first = len(self._kept.encoded)
        self._kept.encoded += [
            WrittenRecord(
                value=batch.values[index],
                key=batch.keys[index] if batch.keys is not None else None,
                time_ms=batch.timestamps[index],
            )
            for index in range(len(batch))
        ]
        return [RowBlock(topic=self._step, values=[b"%d" % (first + index) for index in range(len(batch))])]


class _CollectingPublisher:
    def __init__(self, identity: PublisherId, kept: Kept) -> None:
        self._identity = identity
        self._kept = kept

    @property
    def limits(self) -> TransactionLimits:
        return TransactionLimits(rows_max=ROWS_MAX, bytes_max=2**30)

    def look(self) -> Marker | None:
        return self._kept.markers.get(self._identity)

    def take_over(self) -> Marker | None:
        return self._kept.markers.get(self._identity)

    def send(self, marker: Marker, rows: Iterable[RowBlock]) -> None:
        for block in rows:
            written = self._kept.written.setdefault(block.topic, [])
            written += [self._kept.encoded[int(value or b"")] for value in block.values]
        self._kept.markers[self._identity] = marker

    def wait_visible(self, timeout_ms: int) -> bool:
        return True

    def close(self) -> None:
        return None


class FedSystem:
    """See ``processor.contracts.simulated.SimulatedSystem``; fed by ``Kept`` and not by ``append``."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self.settings = FedSettings(kept=kept)

    def serves(self, endpoint: object) -> bool:
        return isinstance(endpoint, FedSource | CollectingSink)

    def prepare(self, endpoint: object, parts: int) -> None:
        if isinstance(endpoint, FedSource):
            self._kept.fed.setdefault(endpoint.step, [])

    def append(
        self,
        source: object,
        part: int,
        *,
        key: bytes | None,
        value: bytes | None,
        time_ms: int | None = None,
        headers: RawHeaders = (),
    ) -> None:
        raise NotImplementedError("values are fed as they are")

    def ends(self, source: object) -> Mapping[SplitId, int]:
        assert isinstance(source, FedSource)
        return {SplitId(f"{source.step}/0"): len(self._kept.fed[source.step])}

    def reader(self, endpoint: object) -> TopicReader:
        return _NoReader()


class _NoReader:
    """Nothing is audited: there are no bytes."""

    def splits(self, target: str) -> tuple[SplitId, ...]:
        return ()

    def starts(self, splits: Sequence[SplitId]) -> Mapping[SplitId, int]:
        return {}

    def committed_ends(self, splits: Sequence[SplitId]) -> Mapping[SplitId, int]:
        return {}

    def ends(self, splits: Sequence[SplitId]) -> Mapping[SplitId, int]:
        return {}

    def read(
        self, ends: Mapping[SplitId, int], starts: Mapping[SplitId, int] | None = None
    ) -> Iterator[TopicChunk]:
        return iter(())

    def close(self) -> None:
        return None


class FedPlugin:
    """See ``processor.contracts.plugin.Plugin``."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    @property
    def name(self) -> str:
        return SECTION

    def settings_model(self) -> type[BaseModel]:
        return FedSettings

    def dev_commands(self) -> None:
        return None

    def doctor(self, settings: object) -> list[DoctorFinding]:
        return []

    def topic_reader(self, settings: object, endpoint: object) -> TopicReader | None:
        return None

    def replays(self) -> None:
        return None

    def simulated(self, world: OutsideWorld, settings: object) -> FedSystem:
        return FedSystem(self._kept)
