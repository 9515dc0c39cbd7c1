"""What a subtask needs around it, in memory: a clock, background work on demand, a source, an outside system."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from processor.channels.memory import MemoryChannel
from processor.contracts.sink import Guarantee, SinkContext, SinkPlace, TransactionLimits
from processor.contracts.source import SourceContext
from processor.errors import PublishRefused, Retriable, TooLarge
from processor.fault_points import no_faults
from processor.ids import (
    NO_CHECKPOINT,
    Attempt,
    Marker,
    Position,
    PublisherId,
    SplitId,
    StepName,
    SubtaskId,
)
from processor.operators.chain import ChainExit, ChainLink, ChainNode, ChainRunner
from processor.operators.operator import AnyOperator, BaseOperator
from processor.protocol.messages import Acknowledged, Declined, Report
from processor.records.batch import Batch
from processor.records.elements import Barrier, Element, EndOfInput, Idle, Watermark
from processor.records.rows import RowBlock
from processor.task.back_pressure import BackPressure
from processor.task.output_gate import InTurnOutput, Output, OutputGate
from processor.task.processing_clock import ProcessingClock
from processor.task.subtask import Subtask, SubtaskParts
from tests.unit.operators.kit import Bench, SetClock

ATTEMPT = Attempt(1)


# --- time and background work


class OnDemand:
    """An Executor without threads: queued work runs when ``run`` is called, results come with ``deliver``."""

    def __init__(self) -> None:
        self._queued: deque[tuple[str, Callable[[], Any], Callable[[Any], None], Callable]] = deque()
        self._finished: deque[Callable[[], None]] = deque()
        self.lanes: list[str] = []

    def submit(self, lane: str, work: Callable, done: Callable, failed: Callable) -> None:
        self.lanes.append(lane)
        self._queued.append((lane, work, done, failed))

    def run(self, most: int | None = None) -> int:
        """Do queued work, in order; how much was done."""
        did = 0
        while self._queued and (most is None or did < most):
            _, work, done, failed = self._queued.popleft()
            self._finished.append(outcome(work, done, failed))
            did += 1
        return did

    def deliver(self) -> bool:
        worked = bool(self._finished)
        while self._finished:
            self._finished.popleft()()
        return worked

    def settle(self) -> None:
        """Run and deliver until nothing is left."""
        while self.run() or self.deliver():
            pass

    def wake(self) -> None:
        return None

    def wait(self, timeout_ms: int) -> None:
        return None

    def pause(self, pause_ms: int) -> None:
        return None

    def close(self) -> bool:
        self._queued.clear()
        self._finished.clear()
        return True


def outcome(work: Callable, done: Callable, failed: Callable) -> Callable[[], None]:
    try:
        value = work()
    except BaseException as error:
        caught = error
        return lambda: failed(caught)
    return lambda: done(value)


# --- a source


class ListReader:
    """A Reader over lists: split -> values, whose timestamps are the values' places unless given."""

    def __init__(self, records: Mapping[str, Sequence[Any]]) -> None:
        self.records = {SplitId(split): list(values) for split, values in records.items()}
        self.places: dict[SplitId, Position] = {}
        self.paused: frozenset[SplitId] = frozenset()
        self.polls = 0
        self.closed = False

    def assign(self, splits: Mapping[SplitId, Position]) -> None:
        assert not splits.keys() & self.places.keys(), "no split is assigned twice"
        self.places.update(splits)

    def pause(self, splits: frozenset[SplitId]) -> None:
        self.paused = splits

    def poll(self, records_max: int, wait_ms: int) -> Sequence[tuple[SplitId, Batch[Any]]]:
        assert wait_ms == 0, "a subtask never waits"
        self.polls += 1
        found = []
        for split, place in sorted(self.places.items()):
            values = self.records.get(split, [])
            stop = min(len(values), place.next + records_max, place.end if place.end is not None else 2**62)
            if split in self.paused or stop <= place.next:
                continue
            offsets = list(range(place.next, stop))
            batch = Batch(values=values[place.next : stop], timestamps=offsets, split=split, offsets=offsets)
            self.places[split] = Position(next=stop, end=place.end, identity=place.identity)
            found.append((split, batch))
            records_max -= len(batch)
            if records_max <= 0:
                break
        return found

    def positions(self) -> Mapping[SplitId, Position]:
        return dict(self.places)

    def close(self) -> None:
        self.closed = True


@dataclass
class ListSource:
    """A Source over lists that a test may append to while the job runs."""

    records: dict[str, list[Any]]
    bounded: bool = False
    ends: dict[str, int] = field(default_factory=dict)
    kind: type = str
    told: list[Mapping[SplitId, Position]] = field(default_factory=list)
    on_poll: Callable[[], None] = lambda: None

    def value_type(self) -> type[Any] | None:
        return self.kind

    def check(self, context: SourceContext) -> None:
        return None

    def enumerator(self, context: SourceContext) -> ListEnumerator:
        return ListEnumerator(self)

    def reader(self, context: SourceContext) -> ListReader:
        source = self

        class Reader(ListReader):
            def poll(self, records_max: int, wait_ms: int):
                source.on_poll()
                return super().poll(records_max, wait_ms)

        reader = Reader({})
        reader.records = {SplitId(split): values for split, values in self.records.items()}
        return reader


class ListEnumerator:
    def __init__(self, source: ListSource) -> None:
        self._source = source

    def start(self) -> Mapping[SplitId, Position]:
        source = self._source
        return {
            SplitId(split): Position(
                next=0, end=source.ends.get(split, len(values)) if source.bounded else None
            )
            for split, values in source.records.items()
        }

    def check(self, known: Mapping[SplitId, Position]) -> None:
        return None

    def discover(self, known: Mapping[SplitId, Position]) -> Mapping[SplitId, Position]:
        return {SplitId(s): Position(next=0) for s in self._source.records if SplitId(s) not in known}

    def published(self, positions: Mapping[SplitId, Position]) -> None:
        self._source.told.append(dict(positions))

    def close(self) -> None:
        return None


# --- an outside system with transactions


@dataclass
class Outside:
    """Keeps rows and markers of all identities; a transaction is there as a whole or not at all."""

    markers: dict[PublisherId, Marker] = field(default_factory=dict)
    transactions: list[tuple[PublisherId, Marker, list[bytes | None]]] = field(default_factory=list)
    owners: dict[PublisherId, int] = field(default_factory=dict)
    lost_requests: int = 0
    """So many sends to come do nothing, and give no answer."""
    lost_answers: int = 0
    """So many sends to come do everything, and give no answer."""
    down: bool = False
    rows_too_many: int | None = None
    """A transaction of more rows is refused as too large."""
    refused: set[bytes] = field(default_factory=set)
    """Rows that are refused for good."""
    limits: TransactionLimits = field(
        default_factory=lambda: TransactionLimits(rows_max=1_000, bytes_max=2**20)
    )
    sends: list[int] = field(default_factory=list)
    """Rows of every send that was tried."""

    def rows(self, publisher: PublisherId | None = None) -> list[bytes | None]:
        return [
            value
            for who, _, values in self.transactions
            if publisher is None or who == publisher
            for value in values
        ]

    def publisher(self, identity: PublisherId) -> MemoryPublisher:
        return MemoryPublisher(self, identity)


class MemoryPublisher:
    def __init__(self, outside: Outside, identity: PublisherId) -> None:
        self._outside = outside
        self._identity = identity
        self._owner: int | None = None
        self.closed = False

    @property
    def limits(self) -> TransactionLimits:
        return self._outside.limits

    def look(self) -> Marker | None:
        return self._outside.markers.get(self._identity)

    def take_over(self) -> Marker | None:
        outside = self._outside
        if outside.down:
            raise Retriable("nobody answers")
        self._owner = outside.owners.get(self._identity, 0) + 1
        outside.owners[self._identity] = self._owner
        return outside.markers.get(self._identity)

    def send(self, marker: Marker, rows: Iterable[RowBlock]) -> None:
        outside = self._outside
        owner, self._owner = self._owner, None
        assert owner is not None, "a send comes after a take_over of its own (R12)"
        values = [value for block in rows for value in block.values]
        outside.sends.append(len(values))
        if outside.down or outside.owners[self._identity] != owner:
            raise Retriable("shut out by another publisher")
        if outside.rows_too_many is not None and len(values) > outside.rows_too_many:
            raise TooLarge("too large")
        for number, value in enumerate(values):
            if value in outside.refused:
                raise PublishRefused("the broker refuses the row", row=number)
        if outside.lost_requests:
            outside.lost_requests -= 1
            raise Retriable("no answer")
        outside.transactions.append((self._identity, marker, values))
        outside.markers[self._identity] = marker
        if outside.lost_answers:
            outside.lost_answers -= 1
            raise Retriable("no answer")

    def wait_visible(self, timeout_ms: int) -> bool:
        return True

    def close(self) -> None:
        self.closed = True


class TextEncoder:
    def encode(self, batch: Batch[Any]) -> Sequence[RowBlock]:
        return [RowBlock(topic="out", values=[str(value).encode() for value in batch.values])]


@dataclass
class MemorySink:
    """A Sink into an Outside."""

    outside: Outside
    cluster: str = "memory"
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE

    def accepts(self, value: Any, /) -> None:
        return None

    def check(self, context: SinkContext) -> SinkPlace:
        return SinkPlace(cluster=self.cluster, marker_store="markers", targets={"out": "t"})

    def encoder(self, context: SinkContext) -> TextEncoder:
        return TextEncoder()

    def publisher(self, context: SinkContext, identity: PublisherId) -> MemoryPublisher:
        return self.outside.publisher(identity)


# --- subtasks


class PassOn(BaseOperator[Any]):
    """Sends on what it gets, and remembers what happened to it, in order."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.full = False
        self.timer_ms: int | None = None

    def on_batch(self, input: int, batch: Batch[Any], out: Any) -> None:
        self.seen.append((input, list(batch.values)))
        out.emit(batch)

    def on_watermark(self, time_ms: int, out: Any) -> None:
        self.seen.append(("watermark", time_ms))

    def on_processing_time(self, now_ms: int, out: Any) -> None:
        self.seen.append(("timer", now_ms))
        self.timer_ms = None
        out.emit(Batch(values=["timer"], timestamps=[now_ms]))

    def next_processing_time_ms(self) -> int | None:
        return self.timer_ms

    def on_end(self, out: Any) -> None:
        self.seen.append("end")

    def pressed(self) -> bool:
        return self.full


@dataclass
class Rig:
    """One subtask with a chain of operators, one output channel, and everything it reports."""

    operators: Sequence[AnyOperator]
    source: bool = False
    clock: SetClock = field(default_factory=SetClock)
    reached_ms: int = 0
    batches_max: int = 8
    bench: Bench = field(default_factory=Bench)
    outputs: Sequence[Output] | None = None

    def __post_init__(self) -> None:
        self.executor = OnDemand()
        self.reports: list[Report] = []
        self.counted: Counter[str] = Counter()
        self.channel = MemoryChannel(self.batches_max)
        outputs = [InTurnOutput([self.channel])] if self.outputs is None else list(self.outputs)
        names = [StepName(f"step{index}") for index in range(len(self.operators))]
        nodes = [ChainNode(step=name, operator=op) for name, op in zip(names, self.operators, strict=True)]
        if self.source:
            nodes.insert(0, ChainNode(step=StepName("read"), operator=None))
        last = len(nodes) - 1
        chain = ChainRunner(
            nodes,
            [ChainLink(origin=index, target=index + 1) for index in range(last)],
            [ChainExit(origin=last, collector=output) for output in outputs],
        )
        chain.open(self.bench.context)
        self.subtask = Subtask(
            SubtaskParts(
                attempt=ATTEMPT,
                id=SubtaskId(nodes[0].step, 0),
                restored=NO_CHECKPOINT,
                chain=chain,
                outputs=OutputGate(outputs),
                back_pressure=BackPressure(self._counted),
                executor=self.executor,
                report=self.reports.append,
                clock=ProcessingClock(self.clock, self.reached_ms),
                faults=no_faults,
            )
        )

    def _counted(self, name: str, by: int) -> None:
        self.counted[name] += by

    def step(self, *, pressed: bool = False) -> bool:
        return self.subtask.step(pressed=pressed)

    def run(self, *, pressed: bool = False) -> None:
        """Step until there is nothing to do."""
        for _ in range(10_000):
            if not self.step(pressed=pressed):
                return
        raise AssertionError("a subtask never comes to rest")

    def sent(self) -> list[Any]:
        """Everything that has come out, in short form."""
        return drain(self.channel)

    def acknowledged(self) -> list[Acknowledged]:
        self.executor.settle()
        return [report for report in self.reports if isinstance(report, Acknowledged)]

    def declined(self) -> list[Declined]:
        self.executor.settle()
        return [report for report in self.reports if isinstance(report, Declined)]


def drain(channel: MemoryChannel) -> list[Any]:
    taken = []
    while channel.peek() is not None:
        taken.append(short(channel.take()))
    return taken


def short(element: Element) -> Any:
    match element:
        case Batch():
            return list(element.values)
        case Watermark(time_ms=time_ms):
            return time_ms
        case Barrier(checkpoint=checkpoint):
            return f"barrier {checkpoint}"
        case Idle():
            return "idle"
        case EndOfInput():
            return "end"
