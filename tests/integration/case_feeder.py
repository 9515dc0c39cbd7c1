"""Writes the input of a simulated job into real topics: its own, and further records like it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain, islice
from random import Random

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from processor.simulation.case import Case, Input
from tests.integration.feeding import Feeding
from tests.simulation.jobs import more_like, parts_of
from tests.topics import TOPIC_TIMEOUT_S
from tests.waiting import wait_until

BURST = 50
PAUSE_S = 0.05
GROW_AFTER_RECORDS = 1_000
"""Partitions that come later are added when so much is written: by then the job runs."""


class CaseFeeder(Feeding):
    """As a thread between ``start`` and ``stop``."""

    def __init__(self, bootstrap: str, case: Case, topics: Mapping[str, str], chance: Random) -> None:
        """``topics`` by source step."""
        self._bootstrap, self._case = bootstrap, case
        super().__init__(bootstrap, pause_s=PAUSE_S)
        self._topics = topics
        self._inputs: Iterator[Input] = chain(case.inputs, more_like(case, chance))
        self._written = 0
        self._held_back: list[Input] = []
        """Of partitions that are not there yet."""

    def write(self, records: int) -> None:
        for record in islice(self._inputs, records):
            if self._written < GROW_AFTER_RECORDS and record.part >= self._case.parts[record.step]:
                self._held_back.append(record)
            else:
                self._produce(record)
            self._written += 1
            if self._written == GROW_AFTER_RECORDS:
                self._grow()
        self.producer.poll(0)

    def stop(self) -> None:
        self.halt()
        self._grow()
        self.flush()

    def burst(self) -> None:
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
        known = self.producer.list_topics(topic, timeout=TOPIC_TIMEOUT_S).topics[topic].partitions
        return len(known) == parts

    def _produce(self, record: Input) -> None:
        self.produce(self._topics[record.step], record.value, key=record.key, partition=record.part)
