"""A database in memory, as a source and a sink: what R20 asks of any outside system, and nothing of Kafka.

A table keeps its rows, and for each identity a row with an epoch and a marker. Taking over raises the epoch and
reads the marker; sending locks the identity's row, compares the epoch, and adds rows and marker in one
transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict

from processor.contracts.simulated import Fate, OutsideWorld
from processor.contracts.sink import Guarantee, SinkContext, SinkPlace, TransactionLimits
from processor.contracts.source import SourceContext
from processor.contracts.topic_reader import RawHeaders, TopicChunk
from processor.errors import Retriable, Unavailable
from processor.ids import Marker, Position, PublisherId, SplitId
from processor.records.batch import Batch
from processor.records.rows import RowBlock

TIMEOUT_MS = 700
PLUGIN = "table"


@dataclass(slots=True)
class Row:
    key: bytes | None
    value: bytes | None
    time_ms: int


@dataclass(slots=True)
class Identity:
    epoch: int = 0
    marker: Marker | None = None


@dataclass(slots=True)
class Database:
    """Everything that is committed."""

    world: OutsideWorld
    logs: dict[str, list[list[Row]]] = field(default_factory=dict)
    tables: dict[str, list[Row]] = field(default_factory=dict)
    identities: dict[PublisherId, Identity] = field(default_factory=dict)

    def identity(self, publisher: PublisherId) -> Identity:
        return self.identities.setdefault(publisher, Identity())

    def ask(self, request: str, act: Callable[[], None]) -> None:
        """One request: raises Unavailable when nothing is heard in time."""
        world = self.world
        fate = world.exchange(request, 0)
        if fate is Fate.REQUEST_LOST:
            late_ms = world.late(request)
            if late_ms is not None:
                world.later(late_ms, act)
        else:
            act()
        if fate in (Fate.REQUEST_LOST, Fate.ANSWER_LOST):
            world.wait(TIMEOUT_MS)
            raise Unavailable(f"the database did not answer: {request}")


class TableSettings(BaseModel):
    """The section of the settings: the database itself, in place of an address."""

    model_config = ConfigDict(frozen=True)

    database: Any = None
    rows_max: int = 5

    def reached(self) -> Database:
        assert isinstance(self.database, Database)
        return self.database


def _settings(sections: Mapping[str, object]) -> TableSettings:
    section = sections[PLUGIN]
    assert isinstance(section, TableSettings)
    return section


# --- the source


class LogSource:
    """Reads a log of records, each a str."""

    def __init__(self, name: str, *, bounded: bool = False) -> None:
        self.name = name
        self.bounded = bounded

    def value_type(self) -> type[str] | None:
        return str

    def check(self, context: SourceContext) -> None:
        return None

    def enumerator(self, context: SourceContext) -> LogEnumerator:
        return LogEnumerator(self, _settings(context.settings).reached())

    def reader(self, context: SourceContext) -> LogReader:
        return LogReader(_settings(context.settings).reached())


class LogEnumerator:
    def __init__(self, source: LogSource, database: Database) -> None:
        self._source = source
        self._database = database

    def start(self) -> Mapping[SplitId, Position]:
        self._database.ask(f"Describe {self._source.name}", lambda: None)
        return {
            SplitId(f"{self._source.name}/{number}"): Position(
                next=0, end=len(rows) if self._source.bounded else None
            )
            for number, rows in enumerate(self._database.logs[self._source.name])
        }

    def check(self, known: Mapping[SplitId, Position]) -> None:
        return None

    def discover(self, known: Mapping[SplitId, Position]) -> Mapping[SplitId, Position]:
        self._database.ask(f"Describe {self._source.name}", lambda: None)
        return {
            split: Position(next=0)
            for number in range(len(self._database.logs[self._source.name]))
            if (split := SplitId(f"{self._source.name}/{number}")) not in known
        }

    def published(self, positions: Mapping[SplitId, Position]) -> None:
        return None

    def close(self) -> None:
        return None


class LogReader:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._positions: dict[SplitId, Position] = {}

    def assign(self, splits: Mapping[SplitId, Position]) -> None:
        self._positions.update(splits)

    def pause(self, splits: frozenset[SplitId]) -> None:
        raise NotImplementedError("nobody pauses yet")

    def poll(self, records_max: int, wait_ms: int) -> Sequence[tuple[SplitId, Batch[str]]]:
        found = []
        for split, at in self._positions.items():
            name, _, number = split.rpartition("/")
            rows = self._database.logs[name][int(number)]
            stop = min(len(rows), at.next + records_max, at.end if at.end is not None else len(rows))
            if stop <= at.next:
                continue
            taken = rows[at.next : stop]
            batch = Batch(
                values=[(row.value or b"").decode() for row in taken],
                timestamps=[row.time_ms for row in taken],
                keys=[row.key or b"" for row in taken],
                split=split,
                offsets=list(range(at.next, stop)),
            )
            self._positions[split] = Position(next=stop, end=at.end)
            found.append((split, batch))
        return found

    def positions(self) -> Mapping[SplitId, Position]:
        return dict(self._positions)

    def close(self) -> None:
        return None


# --- the sink


class TableSink:
    """Writes strs as rows of a table."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee.EXACTLY_ONCE

    def accepts(self, value: str, /) -> None:
        return None

    def check(self, context: SinkContext) -> SinkPlace:
        return SinkPlace(cluster="database", marker_store="identities", targets={self.name: self.name})

    def encoder(self, context: SinkContext) -> TableEncoder:
        return TableEncoder(self.name)

    def publisher(self, context: SinkContext, identity: PublisherId) -> TablePublisher:
        settings = _settings(context.settings)
        return TablePublisher(settings.reached(), identity, settings.rows_max)


class TableEncoder:
    def __init__(self, name: str) -> None:
        self._name = name

    def encode(self, batch: Batch[str]) -> Sequence[RowBlock]:
        keys = None if batch.keys is None else [str(key).encode() for key in batch.keys]
        return [RowBlock(topic=self._name, values=[value.encode() for value in batch.values], keys=keys)]


class TablePublisher:
    def __init__(self, database: Database, identity: PublisherId, rows_max: int) -> None:
        self._database = database
        self._identity = identity
        self._rows_max = rows_max
        self._epoch: int | None = None

    @property
    def limits(self) -> TransactionLimits:
        return TransactionLimits(rows_max=self._rows_max, bytes_max=2**20)

    def look(self) -> Marker | None:
        return self._database.identity(self._identity).marker

    def take_over(self) -> Marker | None:
        taken: list[tuple[int, Marker | None]] = []
        identity = self._database.identity(self._identity)

        def act() -> None:
            identity.epoch += 1
            taken.append((identity.epoch, identity.marker))

        self._ask(f"TakeOver {self._identity}", act)
        self._epoch, marker = taken[0]
        return marker

    def send(self, marker: Marker, rows: Iterable[RowBlock]) -> None:
        epoch, self._epoch = self._epoch, None
        assert epoch is not None, "a send comes after a take_over of its own (R12)"
        database, identity = self._database, self._database.identity(self._identity)
        blocks = list(rows)
        refused: list[int] = []

        def act() -> None:
            if identity.epoch != epoch:
                refused.append(identity.epoch)
                return
            identity.epoch += 1  # this transaction is over: should it come again, it is refused
            identity.marker = marker
            for block in blocks:
                keys = block.keys if block.keys is not None else [None] * len(block)
                table = database.tables.setdefault(block.topic, [])
                table.extend(
                    Row(key, value, database.world.now_ms())
                    for key, value in zip(keys, block.values, strict=True)
                )

        self._ask(f"Transaction {self._identity} {marker.checkpoint}", act)
        if refused:
            raise Retriable(f"{self._identity} was shut out")

    def wait_visible(self, timeout_ms: int) -> bool:
        return True

    def close(self) -> None:
        return None

    def _ask(self, request: str, act: Callable[[], None]) -> None:
        try:
            self._database.ask(request, act)
        except Unavailable as silent:
            raise Retriable(silent.message) from silent


# --- the twin for simulations


class TablePlugin:
    @property
    def name(self) -> str:
        return PLUGIN

    def settings_model(self) -> type[TableSettings]:
        return TableSettings

    def dev_commands(self) -> None:
        return None

    def doctor(self, settings: object) -> list:
        return []

    def topic_reader(self, settings: object, endpoint: object) -> None:
        return None

    def replays(self) -> None:
        return None

    def simulated(self, world: OutsideWorld, settings: object) -> TableSystem:
        return TableSystem(world, settings)


class TableSystem:
    """See ``processor.contracts.simulated.SimulatedSystem``."""

    def __init__(self, world: OutsideWorld, settings: object) -> None:
        assert isinstance(settings, TableSettings)
        self._database = Database(world)
        self.settings = settings.model_copy(update={"database": self._database})

    def serves(self, endpoint: object) -> bool:
        return isinstance(endpoint, LogSource | TableSink)

    def prepare(self, endpoint: object, parts: int) -> None:
        if isinstance(endpoint, LogSource):
            self._database.logs.setdefault(endpoint.name, [[] for _ in range(parts)])
        else:
            assert isinstance(endpoint, TableSink)
            self._database.tables.setdefault(endpoint.name, [])

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
        assert isinstance(source, LogSource)
        at_ms = self._database.world.now_ms() if time_ms is None else time_ms
        self._database.logs[source.name][part].append(Row(key, value, at_ms))

    def ends(self, source: object) -> Mapping[SplitId, int]:
        assert isinstance(source, LogSource)
        return {
            SplitId(f"{source.name}/{number}"): len(rows)
            for number, rows in enumerate(self._database.logs[source.name])
        }

    def reader(self, endpoint: object) -> TableReader:
        return TableReader(self._database)


class TableReader:
    """See ``processor.contracts.topic_reader.TopicReader``; a table is one split."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def splits(self, target: str) -> tuple[SplitId, ...]:
        parts = len(self._database.logs[target]) if target in self._database.logs else 1
        return tuple(SplitId(f"{target}/{number}") for number in range(parts))

    def starts(self, splits: Sequence[SplitId]) -> Mapping[SplitId, int]:
        return dict.fromkeys(splits, 0)

    def committed_ends(self, splits: Sequence[SplitId]) -> Mapping[SplitId, int]:
        return {split: len(self._rows(split)) for split in splits}

    def ends(self, splits: Sequence[SplitId]) -> Mapping[SplitId, int]:
        return self.committed_ends(splits)

    def read(
        self, ends: Mapping[SplitId, int], starts: Mapping[SplitId, int] | None = None
    ) -> Iterator[TopicChunk]:
        for split, end in ends.items():
            start = (starts or {}).get(split, 0)
            rows = self._rows(split)[start:end]
            if rows:
                yield TopicChunk(
                    split=split,
                    offsets=list(range(start, start + len(rows))),
                    keys=[row.key for row in rows],
                    values=[row.value for row in rows],
                    headers=[None] * len(rows),
                    timestamps=[row.time_ms for row in rows],
                )

    def close(self) -> None:
        return None

    def _rows(self, split: SplitId) -> list[Row]:
        name, _, number = split.rpartition("/")
        return (
            self._database.logs[name][int(number)]
            if name in self._database.logs
            else self._database.tables[name]
        )
