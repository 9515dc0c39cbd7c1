"""From batches to rows, each checked for what the brokers would refuse for ever (R30)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Generic, TypeVar, assert_never, cast
from uuid import UUID

from connectors.kafka.topic_limits import TopicLimits, largest_row_bytes, row_bytes
from processor.contracts.policy import Fail, Policy, Skip
from processor.contracts.sink import SinkContext
from processor.errors import BadRecord, JobError
from processor.records.batch import NO_HEADERS, NO_TIMESTAMP, Batch, Headers, Key
from processor.records.rows import RowBlock
from processor.records.untouched import AS_IT_IS

V_contra = TypeVar("V_contra", contravariant=True)

SKIPPED: Final = "records_skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns(Generic[V_contra]):
    """How each column of a row is made from a value; None takes it from the stream."""

    value: Callable[[V_contra], bytes]
    key: Callable[[V_contra], Key | None] | None = None
    headers: Callable[[V_contra], Sequence[tuple[str, bytes | None]]] | None = None
    timestamp: Callable[[V_contra], int | datetime] | None = None
    partition: Callable[[V_contra], int | None] | None = None


def key_bytes(key: Key | None) -> bytes | None:
    """A key as other programs read it: text as UTF-8, bytes as they are, int in decimal, UUID and datetime
    as text (ISO 8601), bool as ``true`` or ``false``, tuples as JSON arrays of these. None has no bytes.

    Raises JobError for what cannot be a key.
    """
    match key:
        case None:
            return None
        case str():
            return key.encode()
        case bytes():
            return key
        case bool():
            return b"true" if key else b"false"
        case int():
            return b"%d" % key
        case UUID():
            return str(key).encode()
        case datetime():
            return _moment(key).encode()
        case tuple():
            return json.dumps(
                [_plain(part) for part in key], separators=(",", ":"), ensure_ascii=False
            ).encode()
        case _:
            raise JobError(
                f"a key of type {type(key).__name__} cannot be sent: {key!r:.80}.",
                remedy="Keys are str, bytes, int, bool, UUID, datetime, or tuples of them.",
            )


class KafkaRowEncoder(Generic[V_contra]):
    """See ``processor.contracts.sink.RowEncoder``."""

    def __init__(
        self, context: SinkContext, columns: Columns[V_contra], *, topic: str, limits: TopicLimits
    ) -> None:
        self._context = context
        self._columns = columns
        self._topic = topic
        self._limits = limits

    def encode(self, batch: Batch[V_contra]) -> Sequence[RowBlock]:
        try:
            block = self._block(batch)
            fits = self._fits(block)
        except Exception:
            return self._one_by_one(batch)
        return [block] if fits else self._one_by_one(batch)

    def _block(self, batch: Batch[V_contra]) -> RowBlock:
        """All rows of the batch; raises whatever the author's functions raise, without saying where."""
        columns, values = self._columns, batch.values
        encode = columns.value
        keys: Sequence[bytes | None] | None
        if columns.key is not None:
            made = columns.key
            keys = [key_bytes(made(value)) for value in values]
        elif batch.keys is not None:
            keys = _keys(batch.keys)
        else:
            keys = None
        headers = batch.headers
        if columns.headers is not None:
            headers_of = columns.headers
            headers = [_checked_headers(headers_of(value)) for value in values]
        timestamps = batch.timestamps
        if columns.timestamp is not None:
            time_of = columns.timestamp
            timestamps = [_milliseconds(time_of(value)) for value in values]
        partitions: Sequence[int | None] | None = None
        if columns.partition is not None:
            partition_of = columns.partition
            partitions = [_checked_partition(partition_of(value)) for value in values]
        return RowBlock(
            topic=self._topic,
            values=_encoded(encode, values),
            keys=keys,
            timestamps=timestamps,
            headers=headers,
            partitions=partitions,
        )

    def _fits(self, block: RowBlock) -> bool:
        """Whether the brokers will take every row, by bounds over the whole block; no may still mean yes."""
        limits = self._limits
        if largest_row_bytes(block.values, block.keys, block.headers) > limits.message_bytes_max:
            return False
        if limits.compacted and (block.keys is None or None in block.keys):
            return False
        if block.timestamps is not None:
            oldest, newest = min(block.timestamps), max(block.timestamps)
            if oldest < 0 and newest >= 0:
                return False  # some without a time: each must be looked at
            if not limits.times_fit(oldest, newest, self._context.clock.wall_ms()):
                return False
        if block.partitions is not None:
            return all(limits.partition_problem(partition) is None for partition in block.partitions)
        return True

    def _one_by_one(self, batch: Batch[V_contra]) -> Sequence[RowBlock]:
        """The rare way: finds the rows that cannot be sent, and does with them what the policy says."""
        good: list[RowBlock] = []
        for index in range(len(batch)):
            try:
                row = self._block(batch.slice(index, index + 1))
            except Exception as failed:
                self._bad_row(
                    batch, index, f"it cannot be encoded: {type(failed).__name__}: {failed}", failed
                )
                continue
            problem = self._problem(row)
            if problem is None:
                good.append(row)
            else:
                self._bad_row(batch, index, problem, None)
        return [_joined(good)] if good else []

    def _problem(self, row: RowBlock) -> str | None:
        key = None if row.keys is None else row.keys[0]
        headers = NO_HEADERS if row.headers is None else row.headers[0]
        time_ms = NO_TIMESTAMP if row.timestamps is None else row.timestamps[0]
        partition = None if row.partitions is None else row.partitions[0]
        limits = self._limits
        return (
            limits.size_problem(row_bytes(row.values[0], key, headers))
            or limits.key_problem(key)
            or limits.time_problem(time_ms, self._context.clock.wall_ms())
            or limits.partition_problem(partition)
        )

    def _bad_row(self, batch: Batch[V_contra], index: int, problem: str, failed: Exception | None) -> None:
        policy: Policy = self._context.policy
        match policy:
            case Fail():
                raise BadRecord(
                    f"a record cannot be written to topic '{self._topic}': {problem}.",
                    remedy="Correct the job or the topic's configuration, or let the sink skip: "
                    "on_error=Skip().",
                    where=batch.where(index, self._context.step),
                ) from failed
            case Skip():
                self._context.count(SKIPPED, 1)
            case _:
                assert_never(policy)


def _encoded(encode: Callable[[V_contra], bytes], values: Sequence[V_contra]) -> Sequence[bytes | None]:
    """A value of None is a tombstone, never the text "null" (case 49); the encoder does not see it."""
    if encode is AS_IT_IS:
        with suppress(TypeError):  # some are None, or not bytes
            return list(map(encode, cast(Any, values)))
    if type(None) in set(map(type, values)):
        return [None if value is None else encode(value) for value in values]
    return list(map(encode, values))


def _joined(rows: Sequence[RowBlock]) -> RowBlock:
    """Blocks of one row each, made by one encoder: a column is there in all of them or in none."""
    first = rows[0]
    return RowBlock(
        topic=first.topic,
        values=[row.values[0] for row in rows],
        keys=None if first.keys is None else [cast(Sequence[Any], row.keys)[0] for row in rows],
        timestamps=None
        if first.timestamps is None
        else [cast(Sequence[Any], row.timestamps)[0] for row in rows],
        headers=None if first.headers is None else [cast(Sequence[Any], row.headers)[0] for row in rows],
        partitions=None
        if first.partitions is None
        else [cast(Sequence[Any], row.partitions)[0] for row in rows],
    )


def _checked_headers(headers: Sequence[tuple[str, bytes | None]]) -> Headers:
    for name, content in headers:
        if type(name) is not str or not (content is None or type(content) is bytes):
            raise TypeError(f"a header is a pair of str and bytes or None, not {(name, content)!r:.80}")
    return tuple(headers)


def _checked_partition(partition: int | None) -> int | None:
    if partition is not None and type(partition) is not int:
        raise TypeError(f"a partition is an int or None, not {partition!r:.80}")
    return partition


def _milliseconds(time: int | datetime) -> int:
    if isinstance(time, datetime):
        elapsed = _zoned(time).astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
        return (elapsed.days * 86_400 + elapsed.seconds) * 1_000 + elapsed.microseconds // 1_000
    if type(time) is not int:
        raise TypeError(f"a timestamp is a datetime or milliseconds as int, not {time!r:.80}")
    return time


def _moment(moment: datetime) -> str:
    return _zoned(moment).astimezone(UTC).isoformat(timespec="microseconds")


def _zoned(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise JobError(
            f"{moment!r} is a datetime without a time zone.", remedy="Give it one, such as datetime.UTC."
        )
    return moment


def _plain(part: object) -> object:
    """A part of a tuple key as JSON has it; bytes as text, for which they must be UTF-8."""
    match part:
        case bytes():
            return part.decode()
        case UUID():
            return str(part)
        case datetime():
            return _moment(part)
        case _:
            return part


def _keys(keys: Sequence[Key | None]) -> Sequence[bytes | None]:
    """Keys of a stream as bytes; nearly always they are all of one type."""
    kinds = set(map(type, keys))
    if kinds == {str}:
        return list(map(str.encode, cast(Sequence[str], keys)))
    if kinds <= {bytes, type(None)}:
        return cast(Sequence[bytes | None], keys)
    return [key_bytes(key) for key in keys]
