"""Reads the partitions of one subtask: from messages to batches, one for each partition.

Decoded in columns, with loops only inside comprehensions: at this place every tenth of a microsecond a record
counts. What is rare (skipped records, ends of partitions, lost positions) leaves the fast path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final, Generic, TypeVar, assert_never, cast

from connectors.kafka.cluster import (
    UNKNOWN_EPOCH,
    Cluster,
    Message,
    MessageError,
    OffsetAt,
    Partition,
    RecordConsumer,
    partition_of,
)
from connectors.kafka.errors import Meaning, entry_of, error_for
from connectors.kafka.settings import OutOfRetention
from processor.contracts.policy import Fail, Policy, Skip
from processor.contracts.source import SourceContext
from processor.errors import BadRecord, PositionLost, Where
from processor.ids import Position, SplitId
from processor.invariant import invariant
from processor.records.batch import NO_HEADERS, NO_TIMESTAMP, Batch, Key
from processor.records.untouched import AS_IT_IS

V_co = TypeVar("V_co", covariant=True)

SKIPPED: Final = "records_skipped"
RESET: Final = "positions_reset"
LOST: Final = "records_lost"
TROUBLE: Final = "consumer_errors"


class KafkaReader(Generic[V_co]):
    """See ``processor.contracts.source.Reader``."""

    def __init__(
        self,
        cluster: Cluster,
        context: SourceContext,
        *,
        group: str,
        decode: Callable[[bytes], V_co],
        tombstones: bool,
        out_of_retention: OutOfRetention,
    ) -> None:
        self._cluster = cluster
        self._context = context
        self._decode = decode
        self._tombstones = tombstones
        self._out_of_retention = out_of_retention
        self._consumer: RecordConsumer = cluster.consumer(group)
        self._positions: dict[SplitId, Position] = {}
        self._splits: dict[tuple[str, int], SplitId] = {}
        self._several_topics = False
        self._paused: frozenset[SplitId] = frozenset()
        self._ended: set[SplitId] = set()

    def assign(self, splits: Mapping[SplitId, Position]) -> None:
        invariant(not splits.keys() & self._positions.keys(), "a split is assigned once")
        self._positions.update(splits)
        self._ended.update(split for split, position in splits.items() if position.at_end)
        starts: dict[Partition, tuple[int, int]] = {}
        for split, position in splits.items():
            at = partition_of(split)
            self._splits[at.topic, at.number] = split
            if split not in self._ended:
                starts[at] = (position.next, position.leader_epoch)
        self._several_topics = len({topic for topic, _ in self._splits}) > 1
        if starts:
            self._consumer.assign(starts)

    def pause(self, splits: frozenset[SplitId]) -> None:
        # Ended splits have left the consumer; they may be named all the same.
        stop = [partition_of(split) for split in sorted(splits - self._paused - self._ended)]
        go_on = [partition_of(split) for split in sorted(self._paused - splits - self._ended)]
        self._paused = splits
        if stop:
            self._consumer.pause(stop)
        if go_on:
            self._consumer.resume(go_on)

    def poll(self, records_max: int, wait_ms: int) -> Sequence[tuple[SplitId, Batch[V_co]]]:
        messages = self._consumer.consume(records_max, wait_ms)
        if not messages:
            return ()
        batches: list[tuple[SplitId, Batch[V_co]]] = []
        events: Sequence[Message] = ()
        # The class's own methods, mapped: half the price of calling each message's in a comprehension. An error is
        # true; compared it is never: the client's breaks when it is held against None.
        if any(map(type(messages[0]).error, messages)):
            events = [message for message in messages if message.error() is not None]
            messages = [message for message in messages if message.error() is None]
        for split, records in self._by_split(messages):
            batch = self._batch(split, records)
            if batch is not None:
                batches.append((split, batch))
        # After the records: an event of a partition is about what comes behind them.
        for event in events:
            self._handle_event(event)
        return batches

    def positions(self) -> Mapping[SplitId, Position]:
        return dict(self._positions)

    def close(self) -> None:
        self._consumer.close()
        self._cluster.close()

    def _by_split(self, messages: Sequence[Message]) -> Iterable[tuple[SplitId, Sequence[Message]]]:
        """Messages by partition, in order within each. They come in long runs, often in a single one."""
        if not messages:
            return ()
        kind = type(messages[0])
        numbers = list(map(kind.partition, messages))
        topics = list(map(kind.topic, messages)) if self._several_topics else None
        first = messages[0]
        if numbers.count(numbers[0]) == len(numbers) and (
            topics is None or topics.count(topics[0]) == len(topics)
        ):
            return ((self._split_of(first), messages),)
        groups: dict[SplitId, list[Message]] = {}
        start = 0
        names: Iterable[object] = numbers if topics is None else zip(topics, numbers, strict=True)
        for _, run in groupby(names):
            stop = start + sum(1 for _ in run)
            groups.setdefault(self._split_of(messages[start]), []).extend(messages[start:stop])
            start = stop
        return groups.items()

    def _split_of(self, message: Message) -> SplitId:
        split = self._splits.get((message.topic() or "", -1 if (n := message.partition()) is None else n))
        invariant(split is not None, "only assigned partitions are read")
        return cast(SplitId, split)

    def _batch(self, split: SplitId, records: Sequence[Message]) -> Batch[V_co] | None:
        """The records of a split as a batch, None when nothing is left of them; moves the position."""
        if split in self._ended:
            return None  # fetched ahead before the end was seen
        position = self._positions[split]
        offsets = _offsets_of(records)
        invariant(offsets[0] >= position.next, "no record is read twice")
        reached = offsets[-1] + 1
        if position.end is not None and reached >= position.end:
            within = sum(1 for offset in offsets if offset < position.end)
            records, offsets, reached = records[:within], offsets[:within], position.end
        batch = self._decoded(split, records, offsets) if records else None
        epoch = records[-1].leader_epoch() if records else position.leader_epoch
        self._move(split, reached, UNKNOWN_EPOCH if epoch is None else epoch)
        return batch

    def _decoded(
        self, split: SplitId, records: Sequence[Message], offsets: Sequence[int]
    ) -> Batch[V_co] | None:
        raw = list(map(type(records[0]).value, records))
        try:
            if self._tombstones:
                decode = self._decode
                values = [cast(V_co, None) if data is None else decode(data) for data in raw]
            elif None in raw:
                raise ValueError("a tombstone")  # the slow path finds it and says so
            elif self._decode is AS_IT_IS:
                values = cast(list[V_co], raw)
            else:
                values = list(map(self._decode, cast(list[bytes], raw)))
        except Exception:
            return self._decoded_one_by_one(split, records, offsets)
        return _batch_of(split, records, offsets, values)

    def _decoded_one_by_one(
        self, split: SplitId, records: Sequence[Message], offsets: Sequence[int]
    ) -> Batch[V_co] | None:
        """The rare way: finds what cannot be decoded, and does with it what the policy says."""
        good: list[int] = []
        values: list[V_co] = []
        for index, record in enumerate(records):
            data = record.value()
            if data is None and self._tombstones:
                values.append(cast(V_co, None))
                good.append(index)
                continue
            try:
                if data is None:
                    raise ValueError("it is a tombstone (no value), and the source is of values only")
                value = self._decode(data)
            except Exception as failed:
                self._bad_record(split, offsets[index], failed, tombstone=data is None)
            else:
                values.append(value)
                good.append(index)
        if not good:
            return None
        return _batch_of(split, [records[i] for i in good], [offsets[i] for i in good], values)

    def _bad_record(self, split: SplitId, offset: int, failed: Exception, *, tombstone: bool) -> None:
        policy: Policy = self._context.policy
        match policy:
            case Fail():
                remedy = (
                    "Use KafkaSource.with_tombstones, or let the source skip: on_error=Skip()."
                    if tombstone
                    else "Correct the source's decoder, or let the source skip: on_error=Skip()."
                )
                raise BadRecord(
                    f"the record cannot be decoded: {type(failed).__name__}: {failed}.",
                    remedy=remedy,
                    where=Where(step=self._context.step, split=split, offset=offset),
                ) from failed
            case Skip():
                self._context.count(SKIPPED, 1)
            case _:
                assert_never(policy)

    def _move(self, split: SplitId, reached: int, leader_epoch: int) -> None:
        position = self._positions[split]
        moved = Position(
            next=max(position.next, reached),
            end=position.end,
            identity=position.identity,
            leader_epoch=leader_epoch,
        )
        self._positions[split] = moved
        if moved.at_end and split not in self._ended:
            self._ended.add(split)
            self._consumer.unassign([partition_of(split)])

    def _handle_event(self, event: Message) -> None:
        error = cast(MessageError, event.error())
        topic, number = event.topic() or "", event.partition()
        split = self._splits.get((topic, -1 if number is None else number))
        meaning = entry_of(error.name()).meaning
        if split is not None and split in self._ended:
            return
        match meaning:
            case Meaning.END:
                invariant(split is not None, "only assigned partitions are read")
                self._reached_end(cast(SplitId, split), event.offset())
            case Meaning.LOST:
                invariant(split is not None, "only assigned partitions are read")
                self._position_lost(cast(SplitId, split), error)
            case Meaning.REFUSED | Meaning.ROW:
                raise error_for(
                    error.name(),
                    error.str(),
                    doing=f"reading topic '{topic}'" if topic else "reading",
                    cluster=self._cluster.name,
                    where=Where(step=self._context.step, split=split),
                )
            case Meaning.AGAIN | Meaning.SILENCE | Meaning.TOO_LARGE | Meaning.TAKEN_ALONG:
                self._context.count(TROUBLE, 1)  # the client goes on trying by itself
            case _:
                assert_never(meaning)

    def _reached_end(self, split: SplitId, offset: int | None) -> None:
        """Nothing is behind ``offset`` for now; what lies before it, no reader sees (case 17)."""
        position = self._positions[split]
        if offset is None or offset <= position.next:
            return
        reached = offset if position.end is None else min(offset, position.end)
        self._move(split, reached, position.leader_epoch)

    def _position_lost(self, split: SplitId, error: MessageError) -> None:
        """The cluster does not keep the position any more: fail, or go on elsewhere and count (case 20)."""
        position, at = self._positions[split], partition_of(split)
        where = Where(step=self._context.step, split=split, offset=position.next)
        found = self._cluster.describe([at.topic]).get(at.topic)
        if found is None or (position.identity and found.topic_id != position.identity):
            raise PositionLost(
                f"topic '{at.topic}' was deleted"
                + ("" if found is None else f" and made again (topic id {found.topic_id})")
                + f" on Kafka cluster '{self._cluster.name}'; the position belongs to topic id "
                f"{position.identity}.",
                remedy="Its old records are gone. Start the job afresh (--fresh) to read the new topic.",
                where=where,
            )
        low = self._cluster.offsets([at], OffsetAt.EARLIEST)[at]
        high = self._cluster.offsets([at], OffsetAt.COMMITTED_END)[at]
        match self._out_of_retention:
            case OutOfRetention.FAIL:
                raise PositionLost(
                    f"the cluster keeps offsets {low} to {high} of partition {at.number} of topic "
                    f"'{at.topic}', and the next to read is {position.next} ({error.str()}).",
                    remedy="Go on with what is there by out_of_retention=earliest or latest, in the source "
                    "or in consumer settings of the cluster; what was not read is lost.",
                    where=where,
                )
            case OutOfRetention.EARLIEST:
                reached = low
            case OutOfRetention.LATEST:
                reached = high
            case _:
                assert_never(self._out_of_retention)
        if position.end is not None:
            reached = min(reached, position.end)
        self._context.count(RESET, 1)
        self._context.count(LOST, max(0, reached - position.next))
        self._positions[split] = Position(next=reached, end=position.end, identity=position.identity)
        self._consumer.unassign([at])
        if self._positions[split].at_end:
            self._ended.add(split)
            return
        self._consumer.assign({at: (reached, UNKNOWN_EPOCH)})
        if split in self._paused:
            self._consumer.pause([at])


def _offsets_of(records: Sequence[Message]) -> Sequence[int]:
    """They rise: where the last is as far from the first as there are records, none is missing between."""
    first, last = cast(int, records[0].offset()), cast(int, records[-1].offset())
    if last - first == len(records) - 1:
        return range(first, last + 1)
    return cast(list[int], list(map(type(records[0]).offset, records)))


def _batch_of(
    split: SplitId, records: Sequence[Message], offsets: Sequence[int], values: Sequence[V_co]
) -> Batch[V_co]:
    kind = type(records[0])
    keys = list(map(kind.key, records))
    headers = list(map(kind.headers, records))
    # One pass: the pairs the client makes live for a moment each, where a list of them costs twice as much.
    timestamps = list(map(itemgetter(1), map(kind.timestamp, records)))
    if min(timestamps) <= 0:  # perhaps one that has none, and then the client says 0
        times = map(kind.timestamp, records)
        timestamps = [time_ms if known else NO_TIMESTAMP for known, time_ms in times]
    return Batch(
        values=values,
        timestamps=timestamps,
        # Kafka's keys as they are: a sink that is told no key writes them again. None is one of them.
        keys=None if keys[0] is None and keys.count(None) == len(keys) else cast(Sequence[Key], keys),
        headers=[tuple(each) if each else NO_HEADERS for each in headers] if any(headers) else None,
        split=split,
        offsets=offsets,
    )
