"""Writes the input of a simulated job into real topics: its own, and further records like it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain, islice
from random import Random

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from processor.simulation.case import Case, Input
from tests.integration.scenario import FEED_TIMEOUT_S, FULL_POLL_S, OFFSETS_TIMEOUT_S
from tests.simulation.jobs import more_like, parts_of
from tests.topics import TOPIC_TIMEOUT_S
from tests.waiting import wait_until

BURST = 50
PAUSE_S = 0.05
GROW_AFTER_RECORDS = 1_000
"""Partitions that come later are added when so much is written: by then the job runs."""


class CaseFeeder:
    """As a thread between ``start`` and ``stop``."""

    def __init__(self, bootstrap: str, case: Case, topics: Mapping[str, str], chance: Random) -> None:
        """``topics`` by source step."""
        self._bootstrap, self._case = bootstrap, case
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5}
        )
        self._topics = topics
        self._inputs: Iterator[Input] = chain(case.inputs, more_like(case, chance))
        self._written = 0
        self._held_back: list[Input] = []
        """Of partitions that are not there yet."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feeder", daemon=True)
        self._failures: list[str] = []

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Returns when everything is written; may be called again."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(OFFSETS_TIMEOUT_S)
        self._grow()
        self.flush()

    def write(self, records: int) -> None:
        for record in islice(self._inputs, records):
            if self._written < GROW_AFTER_RECORDS and record.part >= self._case.parts[record.step]:
                self._held_back.append(record)
            else:
                self._produce(record)
            self._written += 1
            if self._written == GROW_AFTER_RECORDS:
                self._grow()
        self._producer.poll(0)

    def flush(self) -> None:
        left = self._producer.flush(FEED_TIMEOUT_S)
        assert not left, f"{left} input records were not written"
        assert not self._failures, self._failures[:3]

    def _run(self) -> None:
        while not self._ended.wait(PAUSE_S):
            self.write(BURST)

    def _grow(self) -> None:
        """Add the partitions that records wait for, and write those."""
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        for step in {record.step for record in self._held_back}:
            topic, parts = self._topics[step], parts_of(self._case, step)
            admin.create_partitions([NewPartitions(topic, parts)])[topic].result(TOPIC_TIMEOUT_S)
            wait_until(partial(self._knows, topic, parts), TOPIC_TIMEOUT_S, f"{topic} has {parts} partitions")
        for record in self._held_back:
            self._produce(record)
        self._held_back.clear()

    def _knows(self, topic: str, parts: int) -> bool:
        """Whether the producer has heard of all of them."""
        known = self._producer.list_topics(topic, timeout=TOPIC_TIMEOUT_S).topics[topic].partitions
        return len(known) == parts

    def _produce(self, record: Input) -> None:
        while True:
            try:
                self._producer.produce(
                    self._topics[record.step],
                    record.value,
                    key=record.key,
                    partition=record.part,
                    on_delivery=self._delivered,
                )
                return
            except BufferError:  # the broker is slower than we
                self._producer.poll(FULL_POLL_S)

    def _delivered(self, error: object, message: object) -> None:
        if error is not None:
            self._failures.append(str(error))
