"""The batches of a partition as the broker keeps them: which producer and epoch wrote what, and how it ended.

Clients show none of it, so this asks in Kafka's own protocol: Fetch version 4, uncommitted records too.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from processor.audit.whole_transactions import TransactionSpan
from processor.ids import SplitId

FETCH, FETCH_VERSION = 1, 4
CORRELATION = 7
MAX_BYTES = 16 * 2**20
TIMEOUT_S = 30.0
ATTRIBUTE_TRANSACTIONAL, ATTRIBUTE_CONTROL = 0x10, 0x20
CONTROL_COMMIT = 1

_BATCH_HEAD = struct.Struct(">qiibIhiqqqhii")
"""base offset, length, leader epoch, magic, checksum, attributes, last offset delta, two timestamps, producer
id, producer epoch, base sequence, records."""
_BATCH_LENGTH_COUNTS_FROM = 12


@dataclass(slots=True, kw_only=True)
class _Span:
    first: int
    last: int
    records: int
    ends: list[tuple[int, bool]] = field(default_factory=list)


def transaction_spans(bootstrap: str, topic: str, partition: int) -> list[TransactionSpan]:
    """Every transaction's part of one partition, aborted and open ones too. One broker only."""
    spans: dict[tuple[int, int], _Span] = {}
    for batch in _batches(bootstrap, topic, partition):
        name = (batch.producer, batch.epoch)
        if batch.control is None:
            if not batch.transactional:
                raise AssertionError(f"{topic}/{partition} offset {batch.first} is outside any transaction")
            span = spans.get(name)
            if span is None:
                spans[name] = _Span(first=batch.first, last=batch.last, records=batch.records)
            else:
                span.last, span.records = batch.last, span.records + batch.records
        else:
            # A mark of a transaction without records here (its rows went to other partitions) ends nothing.
            ended = spans.get(name) or _marked_by_newer_epoch(spans, name)
            if ended is not None:
                ended.ends.append((batch.first, batch.control == CONTROL_COMMIT))
    return [
        TransactionSpan(
            split=SplitId(f"{topic}/{partition}"),
            producer=producer,
            epoch=epoch,
            first=span.first,
            last=span.last,
            records=span.records,
            ends=tuple(span.ends),
        )
        for (producer, epoch), span in spans.items()
    ]


def _marked_by_newer_epoch(spans: dict[tuple[int, int], _Span], name: tuple[int, int]) -> _Span | None:
    """An end mark carries a raised epoch: that of the next owner when it fences, and since transaction
    version 2 at every end. It ends the newest open transaction of its producer."""
    producer, epoch = name
    open_ = [(e, span) for (p, e), span in spans.items() if p == producer and e < epoch and not span.ends]
    return max(open_, key=lambda found: found[0])[1] if open_ else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    first: int
    last: int
    records: int
    producer: int
    epoch: int
    transactional: bool
    control: int | None


def _batches(bootstrap: str, topic: str, partition: int) -> Iterator[_Batch]:
    host, _, port = bootstrap.split(",")[0].rpartition(":")
    with socket.create_connection((host, int(port)), TIMEOUT_S) as connection:
        offset = 0
        while True:
            high_watermark, records = _fetch(connection, topic, partition, offset)
            if offset >= high_watermark:
                return
            reached = offset
            for batch in _parse(records):
                if batch.last >= offset:  # a fetch begins with the batch that the offset lies in
                    yield batch
                reached = max(reached, batch.last + 1)
            if reached == offset:
                raise AssertionError(f"no batch at {topic}/{partition} offset {offset} of {high_watermark}")
            offset = reached
            if offset >= high_watermark:  # asking again would wait for records that do not come
                return


def _fetch(connection: socket.socket, topic: str, partition: int, offset: int) -> tuple[int, bytes]:
    name = topic.encode()
    body = struct.pack(">hhih", FETCH, FETCH_VERSION, CORRELATION, -1)
    body += struct.pack(">iiiib", -1, 1_000, 1, MAX_BYTES, 0)
    body += struct.pack(">ih", 1, len(name)) + name + struct.pack(">iiqi", 1, partition, offset, MAX_BYTES)
    connection.sendall(struct.pack(">i", len(body)) + body)
    answer = _exactly(connection, struct.unpack(">i", _exactly(connection, 4))[0])
    at = 4 + 4 + 4 + 2 + len(name) + 4  # correlation, throttle time, topics, name, partitions
    _, error, high_watermark, _, aborted = struct.unpack_from(">ihqqi", answer, at)
    if error:
        raise AssertionError(f"fetching {topic}/{partition} gave error code {error}")
    at += 26 + 16 * max(0, aborted)
    (length,) = struct.unpack_from(">i", answer, at)
    return high_watermark, answer[at + 4 : at + 4 + max(0, length)]


def _parse(records: bytes) -> Iterator[_Batch]:
    at = 0
    while at + _BATCH_HEAD.size <= len(records):
        head = _BATCH_HEAD.unpack_from(records, at)
        first, length, attributes, last_delta, producer, epoch, count = (
            head[i] for i in (0, 1, 5, 6, 9, 10, 12)
        )
        end = at + _BATCH_LENGTH_COUNTS_FROM + length
        if end > len(records):
            return  # cut off by the size limit; the next fetch brings it
        control = None
        if attributes & ATTRIBUTE_CONTROL:
            control = _control_kind(records[at + _BATCH_HEAD.size : end])
        yield _Batch(
            first=first,
            last=first + last_delta,
            records=count,
            producer=producer,
            epoch=epoch,
            transactional=bool(attributes & ATTRIBUTE_TRANSACTIONAL),
            control=control,
        )
        at = end


def _control_kind(record: bytes) -> int:
    """0 aborts, 1 commits: the second number of the control record's key."""
    at = _skip_varint(record, 0)  # length
    at += 1  # attributes
    for _ in range(3):  # timestamp delta, offset delta, length of the key
        at = _skip_varint(record, at)
    _, kind = struct.unpack_from(">hh", record, at)
    return int(kind)


def _skip_varint(data: bytes, at: int) -> int:
    while data[at] & 0x80:
        at += 1
    return at + 1


def _exactly(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            raise AssertionError("the broker closed the connection")
        parts += part
    return bytes(parts)
