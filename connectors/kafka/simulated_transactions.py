"""The transaction coordinator of a simulated cluster: who may write under a transactional id, and until when.

Beside ``initialise`` every request names producer id and epoch; which of them are still good is all that
fencing is. A transaction that ends is first decided here, then told to its partitions one after another (R17).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from typing import Final, assert_never

from connectors.kafka.cluster import Partition
from connectors.kafka.simulated_log import PartitionLog
from connectors.kafka.simulated_refusal import BrokerRefusal
from connectors.kafka.simulated_world import BrokerWorld

EPOCH_LAST: Final = 32_766
"""After it an id gets a new producer id, with epoch 0 (one more is kept for fencing)."""


OPERATOR_MS: Final = 100_000
"""After which an operator sees to a transaction that was left open."""


class TransactionState(Enum):
    EMPTY = auto()
    ONGOING = auto()
    PREPARE_COMMIT = auto()
    PREPARE_ABORT = auto()
    COMPLETE_COMMIT = auto()
    COMPLETE_ABORT = auto()


@dataclass(slots=True, kw_only=True)
class TransactionalId:
    name: str
    producer_id: int
    epoch: int
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    begun: int = 0
    """How many transactions were begun; names one to its expiry."""
    partitions: dict[Partition, PartitionLog] = field(default_factory=dict)
    """With their logs: a topic made anew has others."""
    groups: dict[str, None] = field(default_factory=dict)
    markers_left: int = 0


class Transactions:
    """Transactional ids by name."""

    def __init__(
        self,
        world: BrokerWorld,
        *,
        timeout_max_ms: int,
        log_of: Callable[[Partition], PartitionLog],
        end_in_group: Callable[[str, int, bool], None],
    ) -> None:
        self._world = world
        self._timeout_max_ms = timeout_max_ms
        self._log_of = log_of
        self._end_in_group = end_in_group
        self._ids: dict[str, TransactionalId] = {}
        self._producer_ids = 0

    def find(self, name: str) -> TransactionalId | None:
        """What the coordinator knows of an id; tests look at it, and may set its epoch."""
        return self._ids.get(name)

    def initialise(self, name: str, timeout_ms: int) -> tuple[int, int]:
        """InitProducerId: shuts out all earlier producers; returns producer id and epoch. What is open is
        aborted first, a commit already begun completed: until then CONCURRENT_TRANSACTIONS."""
        if not 0 < timeout_ms <= self._timeout_max_ms:
            raise BrokerRefusal("INVALID_TRANSACTION_TIMEOUT")
        known = self._ids.get(name)
        if known is None:
            known = self._ids[name] = TransactionalId(
                name=name, producer_id=self._new_producer_id(), epoch=0, timeout_ms=timeout_ms
            )
            return known.producer_id, known.epoch
        match known.state:
            case TransactionState.ONGOING:
                known.epoch += 1
                self._decide(known, commit=False)
                raise BrokerRefusal("CONCURRENT_TRANSACTIONS")
            case TransactionState.PREPARE_COMMIT | TransactionState.PREPARE_ABORT:
                raise BrokerRefusal("CONCURRENT_TRANSACTIONS")
            case TransactionState.EMPTY | TransactionState.COMPLETE_COMMIT | TransactionState.COMPLETE_ABORT:
                pass
            case _:
                assert_never(known.state)
        if known.epoch >= EPOCH_LAST:
            known.producer_id, known.epoch = self._new_producer_id(), 0
        else:
            known.epoch += 1
        known.timeout_ms = timeout_ms
        known.state = TransactionState.EMPTY
        return known.producer_id, known.epoch

    def add_partitions(
        self, name: str, producer_id: int, epoch: int, partitions: Sequence[Partition]
    ) -> None:
        """AddPartitionsToTxn; the first opens the transaction. Raises BrokerRefusal."""
        known = self._current(name, producer_id, epoch)
        logs = {at: self._log_of(at) for at in partitions}
        self._open(known)
        known.partitions.update(logs)

    def add_group(self, name: str, producer_id: int, epoch: int, group: str) -> None:
        """AddOffsetsToTxn. Raises BrokerRefusal."""
        known = self._current(name, producer_id, epoch)
        self._open(known)
        known.groups[group] = None

    def check_partition(self, name: str, producer_id: int, epoch: int, at: Partition) -> None:
        """Whether rows for a partition belong to the open transaction; brokers ask before the first ones.
        Raises BrokerRefusal."""
        known = self._current(name, producer_id, epoch)
        if known.state is not TransactionState.ONGOING or at not in known.partitions:
            raise BrokerRefusal("INVALID_TXN_STATE")

    def check_group(self, name: str, producer_id: int, epoch: int, group: str) -> None:
        """The same of offsets of a group."""
        known = self._current(name, producer_id, epoch)
        if known.state is not TransactionState.ONGOING or group not in known.groups:
            raise BrokerRefusal("INVALID_TXN_STATE")

    def end(self, name: str, producer_id: int, epoch: int, *, commit: bool) -> None:
        """EndTxn, answered once it is decided. Repeated it does nothing, unless the same producer id and
        epoch have begun the next transaction: that one it ends (R12). Raises BrokerRefusal."""
        known = self._current(name, producer_id, epoch)
        match known.state:
            case TransactionState.ONGOING:
                self._decide(known, commit=commit)
            case TransactionState.PREPARE_COMMIT | TransactionState.PREPARE_ABORT:
                if commit is not (known.state is TransactionState.PREPARE_COMMIT):
                    raise BrokerRefusal("INVALID_TXN_STATE")
                raise BrokerRefusal("CONCURRENT_TRANSACTIONS")
            case TransactionState.COMPLETE_COMMIT | TransactionState.COMPLETE_ABORT:
                if commit is not (known.state is TransactionState.COMPLETE_COMMIT):
                    raise BrokerRefusal("INVALID_TXN_STATE")
            case TransactionState.EMPTY:
                raise BrokerRefusal("INVALID_TXN_STATE")
            case _:
                assert_never(known.state)

    def end_from_outside(self, name: str, *, commit: bool) -> None:
        """What an operator's tool does: EndTxn in the name of the present producer. Raises BrokerRefusal."""
        known = self._ids.get(name)
        if known is None:
            raise BrokerRefusal("INVALID_PRODUCER_ID_MAPPING")
        self.end(name, known.producer_id, known.epoch, commit=commit)

    def forget(self, name: str) -> None:
        """The id has expired: the next producer of it gets a new producer id. Not while one is open."""
        known = self._ids.get(name)
        if known is not None and known.state not in (
            TransactionState.ONGOING,
            TransactionState.PREPARE_COMMIT,
            TransactionState.PREPARE_ABORT,
        ):
            del self._ids[name]

    def drop_topic(self, topic: str) -> None:
        """Transactions need not be told to partitions that are gone."""
        for known in self._ids.values():
            if known.state is TransactionState.ONGOING:
                known.partitions = {at: log for at, log in known.partitions.items() if at.topic != topic}

    def _current(self, name: str, producer_id: int, epoch: int) -> TransactionalId:
        known = self._ids.get(name)
        if known is None or known.producer_id != producer_id:
            raise BrokerRefusal("INVALID_PRODUCER_ID_MAPPING")
        if known.epoch != epoch:
            raise BrokerRefusal("INVALID_PRODUCER_EPOCH")
        return known

    def _open(self, known: TransactionalId) -> None:
        match known.state:
            case TransactionState.ONGOING:
                return
            case TransactionState.PREPARE_COMMIT | TransactionState.PREPARE_ABORT:
                raise BrokerRefusal("CONCURRENT_TRANSACTIONS")
            case TransactionState.EMPTY | TransactionState.COMPLETE_COMMIT | TransactionState.COMPLETE_ABORT:
                pass
            case _:
                assert_never(known.state)
        known.state = TransactionState.ONGOING
        known.partitions, known.groups = {}, {}
        known.begun += 1
        begun = known.begun

        def expire() -> None:
            if known.state is TransactionState.ONGOING and known.begun == begun:
                known.epoch += 1
                self._decide(known, commit=False)

        self._world.later(known.timeout_ms, expire)

    def _decide(self, known: TransactionalId, *, commit: bool) -> None:
        """From here the transaction is ended; its partitions and groups hear of it one after another."""
        known.state = TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT
        producer_id, epoch = known.producer_id, known.epoch
        known.markers_left = len(known.partitions) + len(known.groups) + 1
        for log in known.partitions.values():
            mark = partial(self._mark, known, log, producer_id, epoch, commit)
            self._after(self._world.visible_after_ms(str(log.at)), mark)
        for group in known.groups:

            def end_in_group(group: str = group) -> None:
                self._end_in_group(group, producer_id, commit)
                self._marked(known)

            self._after(self._world.visible_after_ms(f"__consumer_offsets {group}"), end_in_group)
        self._marked(known)

    def _mark(
        self, known: TransactionalId, log: PartitionLog, producer_id: int, epoch: int, commit: bool
    ) -> None:
        if log.has_leader:
            log.mark(self._world.now_ms(), producer_id, epoch, commit=commit)
        else:  # passed over, and never told
            self._operator_ends_later(log, producer_id, epoch, commit=commit)
        self._marked(known)

    def _operator_ends_later(self, log: PartitionLog, producer_id: int, epoch: int, *, commit: bool) -> None:
        """What is still open then, an operator ends the way it was decided, as the README says."""

        def end() -> None:
            if not log.is_left_open(producer_id, epoch):
                return
            if log.has_leader:
                log.mark(self._world.now_ms(), producer_id, epoch, commit=commit)
            else:
                self._operator_ends_later(log, producer_id, epoch, commit=commit)

        self._world.later(OPERATOR_MS, end)

    def _marked(self, known: TransactionalId) -> None:
        known.markers_left -= 1
        if known.markers_left == 0:
            committed = known.state is TransactionState.PREPARE_COMMIT
            known.state = TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT

    def _after(self, delay_ms: int, act: Callable[[], None]) -> None:
        if delay_ms <= 0:
            act()
        else:
            self._world.later(delay_ms, act)

    def _new_producer_id(self) -> int:
        self._producer_ids += 1
        return self._producer_ids
