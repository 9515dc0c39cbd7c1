"""The workloads of the benchmark: seeded records, how a plain client would handle them, and their audits.

W1 passes records of 100 bytes through. W2 counts the clicks of a million users and puts every count out.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

import msgspec
from confluent_kafka import Producer

from examples.keyed_count import Click, UserCount
from processor.audit import Audit, keyed_count, pass_through

PARTITIONS = 6
USERS = 1_000_000
W1_KEYS = 10_000
W1_VALUE_BYTES = 100
FLUSH_TIMEOUT_S = 120.0
START_MS = 1_700_000_000_000


class Distribution(StrEnum):
    UNIFORM = "uniform"
    ZIPF = "zipf"
    """Exponent 1: the most frequent user has 7 % of a million users' clicks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One workload; ``job`` is the product's job for it, between topics ``source`` and ``target``."""

    name: str
    job: str
    job_name: str
    source: str
    target: str
    records: Callable[[int, random.Random, Distribution], Iterator[tuple[int, bytes, bytes]]]
    """(partition, key, value) of so many records."""
    audit: Audit


def _w1_records(
    count: int, chance: random.Random, distribution: Distribution
) -> Iterator[tuple[int, bytes, bytes]]:
    draw = _drawn(W1_KEYS, chance, distribution)
    padding = b"x" * (W1_VALUE_BYTES - 14)
    for number in range(count):
        partition = number % PARTITIONS
        yield partition, b"%08d" % draw(), b"%02d%012d%b" % (partition, number, padding)


def _w2_records(
    count: int, chance: random.Random, distribution: Distribution
) -> Iterator[tuple[int, bytes, bytes]]:
    draw, amount = _drawn(USERS, chance, distribution), chance.randrange
    for number in range(count):
        user = draw()
        value = b'{"user":"u%07d","ts":%d,"amount":%d,"page":"p%03d"}' % (
            user,
            START_MS + number // 100,
            amount(10_000),
            number % 997,
        )
        # Any stable spread will do: a user's clicks are in one partition, as a keyed producer would have it.
        yield user % PARTITIONS, b"u%07d" % user, value


def _drawn(among: int, chance: random.Random, distribution: Distribution) -> Callable[[], int]:
    if distribution is Distribution.UNIFORM:
        return lambda: chance.randrange(among)
    totals = list(accumulate(1 / rank for rank in range(1, among + 1)))
    order = list(range(among))
    chance.shuffle(order)  # the frequent ones are not all in one partition
    return lambda: order[min(among - 1, bisect_left(totals, chance.random() * totals[-1]))]


_click = msgspec.json.Decoder(Click)
_count = msgspec.json.Decoder(UserCount)


def _user(key: bytes | None, value: bytes | None) -> list[str]:
    return [_click.decode(value or b"").user]


def _counted(key: bytes | None, value: bytes | None) -> tuple[Hashable, int]:
    said = _count.decode(value or b"")
    return said.user, said.count


W1 = Workload(
    name="W1",
    job="examples.pass_through:build",
    job_name="pass-through",
    source="records",
    target="copies",
    records=_w1_records,
    # Key and input partition: what has both went into one output partition, in order.
    audit=pass_through(
        group=lambda key, value: (key, (value or b"")[:2]), item=lambda key, value: int((value or b"")[2:14])
    ),
)
W2 = Workload(
    name="W2",
    job="examples.keyed_count:build",
    job_name="keyed-count",
    source="clicks",
    target="counts",
    records=_w2_records,
    audit=keyed_count(keys=_user, counted=_counted),
)


def fill(
    bootstrap: str, topic: str, workload: Workload, count: int, seed: int, distribution: Distribution
) -> None:
    """Write the input of a workload."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 50,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 1_000_000,
            "enable.idempotence": True,
            "delivery.report.only.error": True,
        }
    )
    for number, (partition, key, value) in enumerate(
        workload.records(count, random.Random(seed), distribution)
    ):
        while True:
            try:
                producer.produce(topic, value, key, partition)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 1_000 == 0:
            producer.poll(0)
    if producer.flush(FLUSH_TIMEOUT_S):
        raise RuntimeError(f"topic {topic} could not be filled within {FLUSH_TIMEOUT_S:.0f} s")
