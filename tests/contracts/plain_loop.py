"""Consume, transform, produce with one transactional producer for all transactions, as manuals show it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

CALL_TIMEOUT_S = 60.0
READ_TIMEOUT_S = 30.0
SOCKET_TIMEOUT_MS = 1_000
"""A request without an answer is given up after so long, and sent again by the client."""


def nothing() -> None:
    return


class PlainLoop:
    """Copies records of one partition into another, so many in a transaction."""

    def __init__(self, bootstrap: str, topic_in: str, topic_out: str, *, batch: int) -> None:
        self.transactional_id = f"plain-loop-of-{topic_out}"
        self._batch = batch
        self._topic_out = topic_out
        self._at = TopicPartition(topic_in, 0, 0)
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": self.transactional_id,
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        self._consumer.assign([self._at])
        self._settings = {
            "bootstrap.servers": bootstrap,
            "transactional.id": self.transactional_id,
            "socket.timeout.ms": SOCKET_TIMEOUT_MS,
            "log_level": 0,
        }
        self._producer = self._opened()
        self.undone: list[str] = []
        """Errors after which the records of a transaction were read and written again."""

    def transaction(
        self, *, half_way: Callable[[], None] = nothing, before_offsets: Callable[[], None] = nothing
    ) -> None:
        """Copy the next records in one transaction; again, from where the last committed one ended, when it fails."""
        while True:
            try:
                self._copy(half_way, before_offsets)
                return
            except KafkaException as failed:
                self.undone.append(failed.args[0].name())
                self._undo(failed.args[0])
                self._rewind()

    def transaction_given_up(self) -> None:
        """Copy the next records, and abort: they are read again by the next one."""
        self._producer.begin_transaction()
        self._produce(self._read())
        self._producer.abort_transaction(CALL_TIMEOUT_S)
        self._rewind()

    def close(self) -> None:
        self._consumer.close()

    def _opened(self) -> Producer:
        producer = Producer(self._settings)
        producer.init_transactions(CALL_TIMEOUT_S)
        return producer

    def _undo(self, error: Any) -> None:
        """Abort, or start anew after what the client calls fatal, as a restarted process would."""
        if error.txn_requires_abort():
            try:
                self._producer.abort_transaction(CALL_TIMEOUT_S)
                return
            except KafkaException as failed:
                if not failed.args[0].fatal():
                    raise
        self._producer = self._opened()

    def _read(self) -> Sequence[Message]:
        records = self._consumer.consume(self._batch, READ_TIMEOUT_S)
        assert len(records) == self._batch, f"{len(records)} records were read"
        return records

    def _rewind(self) -> None:
        [committed] = self._consumer.committed([self._at], CALL_TIMEOUT_S)
        self._consumer.seek(TopicPartition(self._at.topic, 0, max(0, committed.offset)))

    def _copy(self, half_way: Callable[[], None], before_offsets: Callable[[], None]) -> None:
        records = self._read()
        producer, half = self._producer, len(records) // 2
        producer.begin_transaction()
        self._produce(records[:half])
        half_way()
        self._produce(records[half:])
        before_offsets()
        producer.send_offsets_to_transaction(
            self._consumer.position([self._at]), self._consumer.consumer_group_metadata(), CALL_TIMEOUT_S
        )
        self._commit()

    def _commit(self) -> None:
        """Again as long as the client says that it may help."""
        while True:
            try:
                self._producer.commit_transaction(CALL_TIMEOUT_S)
                return
            except KafkaException as failed:
                error: Any = failed.args[0]
                if not error.retriable():
                    raise

    def _produce(self, records: Sequence[Message]) -> None:
        for record in records:
            self._producer.produce(self._topic_out, json.dumps({"n": int(record.value() or b"")}).encode())
        self._producer.flush(CALL_TIMEOUT_S)
