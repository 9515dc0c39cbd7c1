"""A producer for one transaction in a simulated cluster; errors come where librdkafka's come."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from connectors.kafka.cluster import DeliveryFailure, GroupOffset, Partition
from connectors.kafka.simulated_broker import SimulatedBroker
from connectors.kafka.simulated_client import ANSWER_WAIT_MS, FENCED, TIMED_OUT, SimulatedClient
from connectors.kafka.simulated_group import GroupIdentity
from connectors.kafka.simulated_refusal import BrokerRefusal
from connectors.kafka.simulated_row_queue import NOWHERE, QueuedRows, RowQueue
from processor.errors import ProcessorError, Retriable
from processor.invariant import invariant
from processor.records.rows import RowBlock

CONCURRENT: Final = "CONCURRENT_TRANSACTIONS"

INITIALISE_RETRY: Final[Mapping[str, int]] = MappingProxyType({CONCURRENT: 500})
"""librdkafka asks again half a second after the coordinator was busy."""

TRANSACTION_RETRY: Final[Mapping[str, int]] = MappingProxyType({CONCURRENT: 20})
OFFSETS_RETRY: Final[Mapping[str, int]] = MappingProxyType({CONCURRENT: 20, "UNKNOWN_TOPIC_OR_PART": 100})

PURGED: Final = "_PURGE_QUEUE"

ABANDON_TIMEOUT_MS: Final = 2_000

UNKNOWN_TOPIC_MS: Final = 30_000
"""How long a client goes on looking for a topic that is not there."""

FLUSH_POLL_MS: Final = 20


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why nothing more can be done in this transaction."""

    name: str
    text: str
    fatal: bool
    """Of the whole producer: it was shut out."""


class SimulatedProducer:
    """See ``cluster.TransactionalProducer``. Rows are sent when they are handed over; flush sends again what
    was not answered. How long a request is on its way, the world decides by its ``exchange``."""

    def __init__(
        self,
        broker: SimulatedBroker,
        client: SimulatedClient,
        transactional_id: str,
        *,
        transaction_timeout_ms: int,
        batch_bytes_max: int,
    ) -> None:
        self._broker = broker
        self._client = client
        self._id = transactional_id
        self._timeout_ms = transaction_timeout_ms
        self._queue = RowQueue(broker, batch_bytes_max)
        self._producer_id = -1
        self._epoch = -1
        self._added: dict[Partition, None] = {}
        self._groups: dict[str, None] = {}
        self._failures: list[DeliveryFailure] = []
        self._trouble: Trouble | None = None
        self._open = False
        self._committing = False
        self._abandoned = False
        self._next_try_ms = 0

    def initialise(self, timeout_ms: int) -> None:
        doing = f"taking over transactional id '{self._id}'"
        self._check_live()
        try:
            self._producer_id, self._epoch = self._client.ask(
                f"InitProducerId {self._id}",
                lambda: self._broker.transactions.initialise(self._id, self._timeout_ms),
                timeout_ms,
                doing=doing,
                retry=INITIALISE_RETRY,
            )
        except BrokerRefusal as refused:
            raise self._client.error(refused.name, refused.text, doing) from refused

    def begin(self) -> None:
        doing = f"beginning a transaction of '{self._id}'"
        self._check_usable(doing)
        if self._open or self._producer_id < 0:
            raise self._client.error("_STATE", "the producer is not ready to begin", doing)
        self._open, self._committing = True, False

    def produce(self, block: RowBlock, timeout_ms: int) -> None:
        self._check_live()
        if self._trouble is not None or not self._open:
            fatal = self._trouble is not None and self._trouble.fatal
            raise self._client.error(
                "_FATAL" if fatal else "_STATE",
                "Unable to produce message",
                f"sending a row of '{self._id}' to topic '{block.topic}'",
            )
        self._failures += self._queue.put(block, self._client.world.now_ms())
        self._send()

    def send_offsets(self, offsets: Mapping[Partition, GroupOffset], group: object, timeout_ms: int) -> None:
        doing = f"adding the marker to the transaction of '{self._id}'"
        self._check_in_transaction(doing)
        invariant(isinstance(group, GroupIdentity), "a group's identity comes from its cluster")
        name = group.name if isinstance(group, GroupIdentity) else ""
        deadline_ms = self._client.world.now_ms() + timeout_ms
        if name not in self._groups:
            self._ask(
                f"AddOffsetsToTxn {self._id}",
                lambda: self._broker.transactions.add_group(self._id, self._producer_id, self._epoch, name),
                timeout_ms,
                doing,
                TRANSACTION_RETRY,
            )
            self._groups[name] = None
        epoch = self._epoch
        self._ask(
            f"TxnOffsetCommit {self._id}",
            lambda: self._broker.send_offsets(self._id, self._producer_id, epoch, name, offsets),
            max(0, deadline_ms - self._client.world.now_ms()),
            doing,
            OFFSETS_RETRY,
        )

    def flush(self, timeout_ms: int) -> int:
        world = self._client.world
        deadline_ms = world.now_ms() + timeout_ms
        waited_ms = 0
        while True:
            self._check_live()
            self._send()
            if self._trouble is not None and self._trouble.fatal:
                raise self._troubled(f"sending the rows of '{self._id}'", self._trouble)
            left_ms = min(deadline_ms - world.now_ms(), timeout_ms - waited_ms)
            if not self._queue.rows or self._trouble is not None or left_ms <= 0:
                return self._queue.rows
            pause_ms = min(left_ms, max(1, self._next_try_ms - world.now_ms()))
            world.wait(pause_ms)
            waited_ms += pause_ms

    def failures(self) -> Sequence[DeliveryFailure]:
        return self._failures

    def commit(self, timeout_ms: int) -> None:
        doing = f"committing the transaction of '{self._id}'"
        self._check_in_transaction(doing)
        deadline_ms = self._client.world.now_ms() + timeout_ms
        if self.flush(timeout_ms):
            raise self._client.error(TIMED_OUT, "rows are still on their way", doing)
        self._check_in_transaction(doing)
        if self._failures:
            # Of rows that never left the client: it refuses to commit without them.
            text = f"{len(self._failures)} message(s) failed delivery"
            self._trouble = Trouble("_INCONSISTENT", text, fatal=False)
            raise self._troubled(doing, self._trouble)
        if self._added or self._groups:
            self._committing = True
            self._end(commit=True, timeout_ms=max(1, deadline_ms - self._client.world.now_ms()), doing=doing)
        self._ended()

    def abandon(self) -> None:
        if self._abandoned:
            return
        self._abandoned = True
        self._queue.take_all()
        # A commit without an answer is left as it is: it may arrive yet, and the client does not contradict it.
        if not self._open or self._committing or (self._trouble is not None and self._trouble.fatal):
            return
        if self._added or self._groups:
            try:
                self._end(commit=False, timeout_ms=ABANDON_TIMEOUT_MS, doing=f"aborting '{self._id}'")
            except ProcessorError:
                return  # whoever takes over next ends it

    def _send(self) -> None:
        """Send what waits, in order, each once; what is not answered keeps the others waiting."""
        world = self._client.world
        while self._trouble is None and world.now_ms() >= self._next_try_ms:
            if (expired := self._queue.expired(world.now_ms() - UNKNOWN_TOPIC_MS)) is not None:
                self._refused(expired, BrokerRefusal("UNKNOWN_TOPIC_OR_PART"))
                return
            waiting = self._queue.first()
            if waiting is None:
                if self._queue.rows:
                    self._next_try_ms = world.now_ms() + FLUSH_POLL_MS
                return
            if not self._try(waiting):
                return

    def _try(self, waiting: QueuedRows) -> bool:
        """Whether the rows are done with: stored, or refused."""
        at, producer_id, epoch = waiting.at, self._producer_id, self._epoch
        pause_ms = ANSWER_WAIT_MS
        try:
            if at not in self._added:
                new = [each for each in self._queue.partitions() if each not in self._added]
                added = self._client.once(
                    f"AddPartitionsToTxn {self._id} {' '.join(map(str, new))}",
                    lambda: self._broker.transactions.add_partitions(self._id, producer_id, epoch, new),
                )
                if added is None:
                    self._next_try_ms = self._client.world.now_ms() + pause_ms
                    return False
                self._added.update(dict.fromkeys(new))
            stored = self._client.once(
                f"Produce {self._id} {at}",
                lambda: self._broker.produce(
                    self._id, producer_id, epoch, at, waiting.sequence, waiting.rows
                ),
            )
        except BrokerRefusal as refused:
            if refused.name in TRANSACTION_RETRY:
                pause_ms = TRANSACTION_RETRY[refused.name]
                stored = None
            elif refused.name in ("UNKNOWN_TOPIC_OR_PART", "LEADER_NOT_AVAILABLE"):
                pause_ms, stored = FLUSH_POLL_MS, None
            else:
                self._refused(waiting, refused)
                return True
        if stored is None:
            self._next_try_ms = self._client.world.now_ms() + pause_ms
            return False
        self._queue.done(waiting)
        return True

    def _refused(self, waiting: QueuedRows, refused: BrokerRefusal) -> None:
        """The broker refuses a request for good: the transaction can only be aborted."""
        if waiting.at in self._added or waiting.at.number == NOWHERE:
            self._queue.done(waiting)
            self._failures += waiting.failures(refused.name, refused.text)
        trouble = self._learn(refused, f"{len(waiting.rows)} message(s) for {waiting.at} failed: ")
        if trouble.fatal or waiting.at not in self._added:
            for purged in self._queue.take_all():
                self._failures += purged.failures(PURGED, "Local: Purged in queue")

    def _ask(
        self,
        request: str,
        act: Callable[[], None],
        timeout_ms: int,
        doing: str,
        retry: Mapping[str, int],
    ) -> None:
        """A request of the open transaction; a refusal is the end of it."""
        try:
            self._client.ask(
                request,
                act,
                timeout_ms,
                doing=doing,
                retry=retry,
                retry_for_good="UNKNOWN_TOPIC_OR_PART",
            )
        except BrokerRefusal as refused:
            raise self._troubled(doing, self._learn(refused)) from refused

    def _end(self, *, commit: bool, timeout_ms: int, doing: str) -> None:
        producer_id, epoch = self._producer_id, self._epoch
        self._ask(
            f"EndTxn {self._id} {'commit' if commit else 'abort'}",
            lambda: self._broker.transactions.end(self._id, producer_id, epoch, commit=commit),
            timeout_ms,
            doing,
            TRANSACTION_RETRY,
        )

    def _ended(self) -> None:
        self._open = self._committing = False
        self._added.clear()
        self._groups.clear()

    def _learn(self, refused: BrokerRefusal, before: str = "") -> Trouble:
        fenced = refused.name == "INVALID_PRODUCER_EPOCH"
        self._trouble = Trouble(FENCED if fenced else refused.name, before + refused.text, fatal=fenced)
        return self._trouble

    def _troubled(self, doing: str, trouble: Trouble) -> ProcessorError:
        return self._client.error(trouble.name, trouble.text, doing)

    def _check_live(self) -> None:
        if self._abandoned:
            raise Retriable(f"the producer of '{self._id}' was abandoned.", remedy="Take over again.")

    def _check_usable(self, doing: str) -> None:
        self._check_live()
        if self._trouble is not None:
            raise self._troubled(doing, self._trouble)

    def _check_in_transaction(self, doing: str) -> None:
        self._check_usable(doing)
        if not self._open:
            raise self._client.error("_STATE", "Operation not valid: no transaction is open", doing)
