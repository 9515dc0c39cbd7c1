"""Producing in one transaction: a new librdkafka producer each time (R12)."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import repeat, starmap
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka import Message as ConfluentMessage

from connectors.kafka.client_failures import ClientFailures
from connectors.kafka.cluster import DeliveryFailure, GroupOffset, Partition
from connectors.kafka.errors import Meaning, entry_of
from connectors.kafka.settings import ClusterSettings
from processor.errors import PublishRefused, Retriable
from processor.records.rows import RowBlock

POLL_EVERY_ROWS: Final = 20_000
"""Callbacks are of rows that failed, and may wait. Each poll lets the interpreter go, and beside a busy thread
getting it back takes longer than to hand over a thousand rows."""

ROOM_POLL_S: Final = 0.05
"""How long to wait for reports at a time while the client's buffer is full."""

ABANDON_TIMEOUT_S: Final = 2.0
"""An open transaction is aborted if that goes quickly; else the next one to take over does it."""

MESSAGE_BYTES_MAX: Final = 100_000_000
"""Largest row that the client hands on; the topic's own limit is checked before the decision (R30)."""

SOCKET_TIMEOUT_MAX_MS: Final = 10_000

FAILURES_KEPT_MAX: Final = 100_000

ANY_PARTITION: Final = -1
NOW: Final = 0
"""librdkafka's sign for "the time of sending"."""


class ConfluentProducer:
    """See ``cluster.TransactionalProducer``."""

    def __init__(
        self,
        errors: ClientFailures,
        properties: Mapping[str, Any],
        settings: ClusterSettings,
        transactional_id: str,
        *,
        transaction_timeout_ms: int,
        batch_bytes_max: int,
    ) -> None:
        self._errors = errors
        self._id = transactional_id
        self._failures: list[DeliveryFailure] = []
        self._unpolled_rows = 0
        self._open = False
        with self._errors.within(f"opening producer '{transactional_id}'"):
            self._producer: Producer | None = Producer(
                {
                    "queue.buffering.max.messages": 1_000_000,
                    "queue.buffering.max.kbytes": 1_048_576,
                    **properties,
                    "transactional.id": transactional_id,
                    "transaction.timeout.ms": transaction_timeout_ms,
                    # Without it the coordinator is asked for at random half a second late.
                    "enable.sparse.connections": False,
                    "partitioner": "murmur2_random",
                    "delivery.report.only.error": True,
                    "on_delivery": self._delivered,
                    # Set, because librdkafka changes both silently for transactional producers. Longer than
                    # the publish: its own deadline decides whether rows were too many or nobody answered.
                    "message.timeout.ms": transaction_timeout_ms,
                    "socket.timeout.ms": min(SOCKET_TIMEOUT_MAX_MS, settings.publish_timeout),
                    "message.max.bytes": MESSAGE_BYTES_MAX,
                    "batch.size": min(settings.producer.batch_size, batch_bytes_max),
                    "linger.ms": settings.producer.linger,
                    "compression.type": settings.producer.compression.value,
                }
            )

    def initialise(self, timeout_ms: int) -> None:
        with self._errors.within(f"taking over transactional id '{self._id}'"):
            self._live().init_transactions(timeout_ms / 1_000)

    def begin(self) -> None:
        with self._errors.within(f"beginning a transaction of '{self._id}'"):
            self._live().begin_transaction()
        self._open = True

    def produce(self, block: RowBlock, timeout_ms: int) -> None:
        producer = self._live()
        deadline_s = time.monotonic() + timeout_ms / 1_000
        columns, rows, done = _Columns(block), len(block), 0
        while done < rows:
            try:
                done = columns.produce(producer, done, rows)
            except _BufferFull as full:
                done = full.row
                self._wait_for_room(producer, deadline_s)
            except _RowFailed as failed:
                raise self._row_error(failed.failure, failed.row, block.topic) from failed.failure_cause
        self._unpolled_rows += rows
        if self._unpolled_rows >= POLL_EVERY_ROWS:
            self._unpolled_rows = 0
            self._poll(producer, 0.0)

    def send_offsets(self, offsets: Mapping[Partition, GroupOffset], group: object, timeout_ms: int) -> None:
        with self._errors.within(f"adding the marker to the transaction of '{self._id}'"):
            self._live().send_offsets_to_transaction(
                [
                    TopicPartition(at.topic, at.number, stored.offset, metadata=stored.metadata)
                    for at, stored in offsets.items()
                ],
                group,
                timeout_ms / 1_000,
            )

    def flush(self, timeout_ms: int) -> int:
        with self._serving(f"sending the rows of '{self._id}'"):
            return self._live().flush(timeout_ms / 1_000)

    def failures(self) -> Sequence[DeliveryFailure]:
        return self._failures

    def commit(self, timeout_ms: int) -> None:
        with self._errors.within(f"committing the transaction of '{self._id}'"):
            self._live().commit_transaction(timeout_ms / 1_000)
        self._open = False

    def abandon(self) -> None:
        producer, self._producer = self._producer, None
        if producer is None or not self._open:
            return
        try:
            producer.abort_transaction(ABANDON_TIMEOUT_S)
        except KafkaException:
            # Fenced, committed after all, or nobody answers: whoever takes over next ends it.
            producer.purge()

    @contextmanager
    def _serving(self, doing: str) -> Iterator[None]:
        """Around calls that serve the client's callbacks: a producer that was shut out is told so by an
        exception out of them, which the client library now and then loses on its way, cause and all."""
        with self._errors.within(doing):
            try:
                yield
            except SystemError as lost:
                self._live().begin_transaction()  # refused, and it says why
                raise Retriable(
                    f"the client library failed while {doing}: {lost}.", remedy="Take over again."
                ) from lost

    def _live(self) -> Producer:
        if self._producer is None:
            raise Retriable(f"the producer of '{self._id}' was abandoned.", remedy="Take over again.")
        return self._producer

    def _wait_for_room(self, producer: Producer, deadline_s: float) -> None:
        self._poll(producer, ROOM_POLL_S)
        if time.monotonic() > deadline_s:
            raise Retriable(
                f"Kafka took no more rows of '{self._id}' in time: "
                f"{len(producer)} are waiting in the client.",
                remedy="Look at the brokers, or raise the cluster's publish_timeout.",
            )

    def _poll(self, producer: Producer, timeout_s: float) -> None:
        """Run callbacks. A producer that was fenced meanwhile says so here."""
        with self._serving(f"sending the rows of '{self._id}'"):
            producer.poll(timeout_s)

    def _row_error(self, failure: KafkaError, row: int, topic: str) -> Exception:
        doing = f"sending a row of '{self._id}' to topic '{topic}'"
        error = self._errors.error(failure, doing)
        entry = entry_of(failure.name())
        if entry.meaning in (Meaning.ROW, Meaning.TOO_LARGE):  # of this row alone: it never left the client
            return PublishRefused(error.message, row=row, remedy="Leave it out with `processor outbox skip`.")
        return error

    def _delivered(self, failure: KafkaError | None, message: ConfluentMessage) -> None:
        if failure is None or len(self._failures) >= FAILURES_KEPT_MAX:
            return
        self._failures.append(
            DeliveryFailure(
                name=failure.name(),
                text=failure.str(),
                topic=message.topic() or "",
                key=message.key(),
                value=message.value(),
            )
        )


class _BufferFull(Exception):
    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


class _RowFailed(Exception):
    def __init__(self, row: int, failure: KafkaError, cause: KafkaException) -> None:
        super().__init__(row)
        self.row = row
        self.failure = failure
        self.failure_cause = cause


class _Columns:
    """A block's columns in the client's own spelling, so that no code of ours runs for each row."""

    def __init__(self, block: RowBlock) -> None:
        self._block = block
        self._plain = block.headers is None and block.partitions is None and block.timestamps is None

    def produce(self, producer: Producer, start: int, stop: int) -> int:
        """Hand rows ``start`` to ``stop`` over. Raises _BufferFull or _RowFailed with the row reached."""
        rows = self._arguments(start, stop)
        try:
            deque(starmap(producer.produce, rows), maxlen=0)  # a loop in C
        except BufferError:
            raise _BufferFull(_row_of_the_last(rows, stop)) from None
        except KafkaException as failed:
            raise _RowFailed(_row_of_the_last(rows, stop), failed.args[0], failed) from failed
        return stop

    def _arguments(self, start: int, stop: int) -> Iterator[tuple[Any, ...]]:
        """Of ``Producer.produce``, for each row."""
        block = self._block
        values = block.values[start:stop]
        keys: Iterable[bytes | None] = repeat(None) if block.keys is None else block.keys[start:stop]
        if self._plain:
            return zip(repeat(block.topic), values, keys, strict=False)
        partitions: Iterable[int] = repeat(ANY_PARTITION)
        if block.partitions is not None:
            partitions = [ANY_PARTITION if at is None else at for at in block.partitions[start:stop]]
        timestamps: Iterable[int] = repeat(NOW)
        if block.timestamps is not None:
            timestamps = block.timestamps[start:stop]
            if min(block.timestamps[start:stop], default=1) <= 0:
                timestamps = [_timestamp(time_ms) for time_ms in timestamps]
        callbacks = repeat(None)
        columns = (repeat(block.topic), values, keys, partitions, callbacks, callbacks, timestamps)
        if block.headers is None:
            return zip(*columns, strict=False)
        return zip(*columns, map(list, block.headers[start:stop]), strict=False)


def _row_of_the_last(rows: Iterator[tuple[Any, ...]], stop: int) -> int:
    """The row whose arguments were taken last from what ends before row ``stop``."""
    return stop - 1 - sum(1 for _ in rows)


def _timestamp(time_ms: int) -> int:
    """librdkafka takes 0 for "now": the first millisecond of 1970 is stored as the second (R30)."""
    if time_ms > 0:
        return time_ms
    return 1 if time_ms == 0 else NOW
