"""Publishing for one identity: take over, read the marker, send rows and marker in one transaction (R11).

Every transaction has a producer of its own (R12): librdkafka keeps one producer id and epoch for an
instance, so that a late, repeated EndTxn could end the next transaction half-way. Whatever fails, the
producer is thrown away, and the engine takes over again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final, NoReturn

from connectors.kafka.cluster import Cluster, DeliveryFailure, Partition, TransactionalProducer
from connectors.kafka.errors import Meaning, entry_of, error_for
from connectors.kafka.marker_store import MarkerStore, marker_offset
from connectors.kafka.sent_rows import SentRows
from connectors.kafka.settings import ClusterSettings
from connectors.kafka.settling import Settling, ending_rows
from connectors.kafka.take_over_pace import TakeOverPace
from connectors.kafka.topic_limits import TopicLimits
from processor.contracts.clock import Clock
from processor.contracts.sink import TransactionLimits
from processor.errors import (
    ExternalRefusal,
    HeldUp,
    LogConflict,
    ProcessorError,
    PublishRefused,
    Retriable,
    TooLarge,
    Unavailable,
)
from processor.fault_points import FaultHook, FaultPoint, no_faults
from processor.ids import Marker, PublisherId
from processor.invariant import invariant
from processor.records.rows import RowBlock

FLUSH_SLICE_MS: Final = 100

SKIP_REMEDY: Final = "Leave it out with `processor outbox skip`."


class KafkaPublisher:
    """See ``processor.contracts.sink.Publisher``. Opens its connections when it is first used."""

    def __init__(
        self,
        open_cluster: Callable[[], Cluster],
        settings: ClusterSettings,
        clock: Clock,
        identity: PublisherId,
        *,
        topics: Sequence[str],
        faults: FaultHook = no_faults,
    ) -> None:
        self._open_cluster = open_cluster
        self._settings = settings
        self._clock = clock
        self._identity = str(identity)
        self._faults = faults
        self._topics = topics
        self._cluster: Cluster | None = None
        self._markers: MarkerStore | None = None
        self._producer: TransactionalProducer | None = None
        self._batch_bytes_max: int | None = None
        self._settling: Settling | None = None
        self._sent: Marker | None = None
        """Of the last transaction, if it is known to be committed."""
        self._seen: Marker | None = None
        self._hidden: tuple[Partition, ...] = ()
        """Partitions in which rows of the marker seen last may be open still."""
        self._unshown = False
        """Whether rows were sent that may not be visible yet."""
        self._pace = TakeOverPace()

    @property
    def limits(self) -> TransactionLimits:
        return TransactionLimits(
            rows_max=self._settings.publish_rows_max, bytes_max=self._settings.publish_bytes_max
        )

    def look(self) -> Marker | None:
        with self._again_when_silent("looking at the marker"):
            return self._marker_store().look()

    def take_over(self) -> Marker | None:
        self._abandon()
        markers = self._marker_store()
        with self._again_when_silent("taking over"):
            self._producer = self._initialised_producer()
        self._faults(FaultPoint.TAKEN_OVER_MARKER_NOT_READ)
        with self._again_when_silent("asking who leads the partitions"):
            undisturbed = self._partitions().glance()
        with self._again_when_silent("reading the marker; a transaction of this identity may be open"):
            self._seen = markers.read_fresh(settled=self._sent if undisturbed else None)
        self._faults(FaultPoint.MARKER_READ)
        with self._again_when_silent("looking for what earlier transactions left open"):
            self._settle(undisturbed=undisturbed)
        return self._seen

    def send(self, marker: Marker, rows: Iterable[RowBlock]) -> None:
        producer = self._producer
        invariant(producer is not None, "send comes after take_over, once")
        assert producer is not None  # for type checkers
        try:
            with self._again_when_silent("publishing"):
                if self._hidden and any(len(block) for block in rows):
                    self._wait_unhidden()
                self._sent = None
                self._send(producer, marker, rows)
                self._sent = marker
        finally:
            # Used up, whatever became of it: aborted if it is open still, never committed later.
            self._abandon()

    def wait_visible(self, timeout_ms: int) -> bool:
        if self._unshown or self._hidden:  # whatever else was sent before us, taking over has seen to
            self._unshown = bool(self._partitions().left_open(timeout_ms))
            return not self._unshown
        return True

    def close(self) -> None:
        self._abandon()
        if self._markers is not None:
            self._markers.close()
            self._markers = None
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    def _settle(self, *, undisturbed: bool) -> None:
        """Make sure that nothing of this identity is open in any partition, or note where something may be (R32).

        What is open was aborted if the transaction of the marker is known to have ended everywhere: rows are sent
        only after that is stored. Else it may be part of that one, which is committed, and must not be ended.
        """
        self._hidden = ()
        partitions, markers = self._partitions(), self._marker_store()
        same = undisturbed or (self._seen is not None and partitions.led_by(markers.leaders))
        if not same:
            was_aborted = markers.settled == self._seen
            left = partitions.left_open(self._settings.marker_timeout if was_aborted else 0)
            if left and was_aborted:
                self._end_left_open(left)
            if left:
                self._hidden = left
                return
        markers.settle(self._seen)

    def _end_left_open(self, left: Sequence[Partition]) -> NoReturn:
        """By a transaction that touches these partitions and is aborted. Raises Retriable: then all begins again."""
        producer = self._producer
        assert producer is not None  # for type checkers
        sent = SentRows(ending_rows(left))
        producer.begin()
        try:
            for block in sent.source:
                self._produce(producer, sent, block, self._settings.publish_timeout)
            self._flush(producer, sent, self._settings.publish_timeout)
        except (PublishRefused, TooLarge) as refused:  # of a row that is none of the job's
            raise ExternalRefusal(
                f"an aborted transaction of '{self._identity}' may have been left open in "
                f"{', '.join(map(str, left))}, and the row that would end it is refused: {refused.message}",
                remedy="End it with `kafka-transactions.sh abort`, or let the topic take such a row.",
            ) from refused
        self._partitions().ended()
        self._abandon()
        raise Retriable(
            f"an aborted transaction of '{self._identity}' may have been left open in "
            f"{', '.join(map(str, left))}; it has been ended there.",
            remedy="Look at the brokers, which did not lead these partitions for a while.",
        )

    def _wait_unhidden(self) -> None:
        left = self._partitions().left_open(self._settings.marker_timeout)
        if left:
            raise HeldUp(
                f"'{self._identity}' can't send more: rows that it has committed, up to {self._seen}, may not be "
                f"shown yet in {', '.join(map(str, left))}, where a transaction is open: its own or another's.",
                remedy="It is tried again. If it stays so, see 'When Kafka leaves a transaction open' in the README.",
            )
        self._hidden = ()
        self._marker_store().settle(self._seen)

    def _initialised_producer(self) -> TransactionalProducer:
        """A new producer that has shut out all earlier ones, ended what they left open, and may begin."""
        *quick, last_ms = self._pace.timeouts_ms(self._settings.take_over_timeout)
        for timeout_ms in quick:
            try:
                return self._try_take_over(timeout_ms)
            except (Unavailable, Retriable):
                continue  # a new producer asks again at once; should this one come late, it shuts us out once
        return self._try_take_over(last_ms)

    def _try_take_over(self, timeout_ms: int) -> TransactionalProducer:
        producer = self._live_cluster().producer(
            self._identity,
            transaction_timeout_ms=self._settings.transaction_timeout,
            batch_bytes_max=self._batch_limit(),
        )
        began_ms = self._clock.monotonic_ms()
        try:
            producer.initialise(timeout_ms)
        except BaseException:
            producer.abandon()
            raise
        self._pace.took(self._clock.monotonic_ms() - began_ms)
        return producer

    def _send(self, producer: TransactionalProducer, marker: Marker, rows: Iterable[RowBlock]) -> None:
        deadline_ms = self._clock.monotonic_ms() + self._settings.publish_timeout

        def left_ms() -> int:
            return max(1, deadline_ms - self._clock.monotonic_ms())

        sent = SentRows(rows)
        producer.begin()
        try:
            self._send_rows_and_marker(producer, marker, sent, left_ms)
            self._faults(FaultPoint.ALL_SENT_NOT_COMMITTED)
            producer.commit(left_ms())
        except (PublishRefused, TooLarge):
            raise
        except ProcessorError as failed:
            # Rows that were refused end the transaction, and whatever is called next fails for that: the
            # row is the reason, or the same rows would be tried for ever.
            producer.flush(FLUSH_SLICE_MS)
            if producer.failures():
                raise self._failure(producer.failures(), sent) from failed
            raise
        self._faults(FaultPoint.COMMIT_SENT_ANSWER_NOT_SEEN)
        if sent.rows:
            self._check_marker(marker)

    def _check_marker(self, marker: Marker) -> None:
        """The marker went along with the rows: if it is not there, somebody ended the transaction half-way."""
        found = self._marker_store().read_fresh()
        if found != marker:
            raise LogConflict(
                f"'{self._identity}' has committed rows, but Kafka cluster '{self._settings_name()}' holds "
                f"{found} instead of {marker}: somebody else ended the transaction in the middle, so some rows "
                "may be out and some not.",
                remedy="Compare the topic with 'processor outbox list', and settle it with 'processor outbox'.",
            )

    def _send_rows_and_marker(
        self,
        producer: TransactionalProducer,
        marker: Marker,
        sent: SentRows,
        left_ms: Callable[[], int],
    ) -> None:
        markers = self._marker_store()
        # The marker first. Whoever ends this transaction in our name, without a new epoch, makes what we add
        # afterwards a new one that commits; were the marker added last, it would say that aborted rows are out.
        stored = marker_offset(marker, self._partitions().leaders())
        producer.send_offsets({markers.marker_at: stored}, markers.group(), left_ms())
        for block in sent.source:
            if sent.rows == 0:
                half = len(block) // 2
                self._produce(producer, sent, block.slice(0, half), left_ms())
                self._faults(FaultPoint.HALF_SENT)
                self._produce(producer, sent, block.slice(half, len(block)), left_ms())
            else:
                self._produce(producer, sent, block, left_ms())
        self._partitions().topics.update(sent.topics)
        self._unshown = self._unshown or sent.rows > 0
        self._flush(producer, sent, left_ms())

    def _produce(
        self, producer: TransactionalProducer, sent: SentRows, block: RowBlock, timeout_ms: int
    ) -> None:
        if len(block) == 0:
            return
        before = sent.rows
        sent.add(block)  # first: a row of it may be refused while the others are still handed over
        try:
            producer.produce(block, timeout_ms)
        except PublishRefused as refused:
            raise PublishRefused(
                refused.message, row=before + refused.row, remedy=refused.remedy, where=refused.where
            ) from refused
        if producer.failures():
            raise self._failure(producer.failures(), sent)

    def _flush(self, producer: TransactionalProducer, sent: SentRows, timeout_ms: int) -> None:
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        while True:
            left_ms = deadline_ms - self._clock.monotonic_ms()
            left = producer.flush(max(1, min(left_ms, FLUSH_SLICE_MS)))
            # After a first failure the others stay in the client until their own time-out: no use to wait.
            if producer.failures():
                raise self._failure(producer.failures(), sent)
            if left == 0 or left_ms <= FLUSH_SLICE_MS:
                break
        if left > 0:
            message = (
                f"{left} of {sent.rows} rows of '{self._identity}' were not stored by Kafka cluster "
                f"'{self._settings_name()}' within {self._settings.publish_timeout} ms."
            )
            self._check_topics_exist(sent)  # the client waits half a minute before it believes that
            # Some went through: the cluster works, and fewer rows will do. None did: it does not.
            if left < sent.rows:
                raise TooLarge(
                    message, remedy="Fewer rows are tried; or raise the cluster's publish_timeout."
                )
            raise Retriable(message, remedy="It is tried again; look at the brokers if it stays so.")

    def _check_topics_exist(self, sent: SentRows) -> None:
        topics = sorted(sent.topics)
        missing = [topic for topic in topics if topic not in self._live_cluster().describe(topics)]
        if missing:
            raise ExternalRefusal(
                f"topic '{missing[0]}' does not exist any more on Kafka cluster '{self._settings_name()}'.",
                remedy="Decided output waits for it: make it again, or see `processor outbox list`.",
            )

    def _failure(self, failures: Sequence[DeliveryFailure], sent: SentRows) -> ProcessorError:
        """What rows that were not stored mean (R19, R30): the row to blame where it can be told."""
        doing = f"publishing {sent.rows} rows of '{self._identity}' to topic '{failures[0].topic}'"
        by_meaning: dict[Meaning, list[DeliveryFailure]] = {}
        for failure in failures:
            by_meaning.setdefault(entry_of(failure.name).meaning, []).append(failure)
        refused = by_meaning.get(Meaning.ROW, [])
        too_large = by_meaning.get(Meaning.TOO_LARGE, [])
        blamed = refused or too_large
        if blamed:
            text = f"{blamed[0].text} ({blamed[0].name})"
            row = 0 if sent.rows == 1 else (sent.find(refused[0]) if len(refused) == 1 else None)
            if row is not None:
                return PublishRefused(
                    f"Kafka cluster '{self._settings_name()}' refuses row {row} of what was sent to topic "
                    f"'{blamed[0].topic}': {text}.",
                    row=row,
                    remedy=SKIP_REMEDY,
                )
            # The innocent of its request fail with it: fewer rows at a time single it out.
            return TooLarge(
                f"Kafka cluster '{self._settings_name()}' refused {len(blamed)} of {sent.rows} rows of "
                f"'{self._identity}': {text}.",
                remedy="Fewer rows are tried at a time.",
            )
        first = next(
            (each for each in failures if entry_of(each.name).meaning is Meaning.REFUSED), failures[0]
        )
        return error_for(first.name, first.text, doing=doing, cluster=self._settings_name())

    @contextmanager
    def _again_when_silent(self, doing: str) -> Iterator[None]:
        """Silence is no answer: whether something happened is unknown, and taking over again tells (R11)."""
        try:
            yield
        except Unavailable as silent:
            raise Retriable(
                f"'{self._identity}' got no answer while {doing}: {silent.message}", remedy=silent.remedy
            ) from silent

    def _abandon(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.abandon()

    def _live_cluster(self) -> Cluster:
        if self._cluster is None:
            self._cluster = self._open_cluster()
        return self._cluster

    def _marker_store(self) -> MarkerStore:
        if self._markers is None:
            self._markers = MarkerStore(
                self._live_cluster(),
                self._clock,
                topic=self._settings.marker_topic,
                group=self._identity,
                timeout_ms=self._settings.marker_timeout,
            )
        return self._markers

    def _partitions(self) -> Settling:
        if self._settling is None:
            self._settling = Settling(self._live_cluster(), self._clock, self._topics)
        return self._settling

    def _batch_limit(self) -> int:
        """Largest batch that every topic of the sink takes: a batch over its limit is refused whole."""
        if self._batch_bytes_max is None:
            cluster = self._live_cluster()
            configs: list[Mapping[str, str] | None] = []
            # The topic may be gone: a removed sink's identity is opened all the same, by markers alone (R14).
            with suppress(ExternalRefusal):
                configs = [cluster.topic_config(topic) for topic in self._topics]
            self._batch_bytes_max = min(
                (TopicLimits.of(config).message_bytes_max for config in configs),
                default=self._settings.producer.batch_size,
            )
        return self._batch_bytes_max

    def _settings_name(self) -> str:
        return self._live_cluster().name
