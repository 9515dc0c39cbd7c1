"""A simulated Kafka says the same under every hash seed, and costs little."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from connectors.kafka.cluster import Partition
from connectors.kafka.simulated_partitioner import KeyPartitioner, murmur2
from processor.records.rows import RowBlock
from tests.unit.kafka.uneasy_world import MARKER_AT, UneasyKafka

PROGRAM = """
from tests.unit.kafka.test_simulated_order import trace
print(trace())
"""

BLOCK_US_MAX = 3_000
"""Of a block of 100 rows, with everything around it, on a slow machine that others use too; about 150 here."""


def trace() -> str:
    """All requests and results of some transactions, take-overs and readers."""
    kafka = UneasyKafka(partitions=5)
    reader = kafka.cluster.consumer("g")
    reader.assign({Partition("out", number): (0, -1) for number in range(5)})
    said: list[str] = []
    for number in range(12):
        producer = kafka.cluster.producer(
            f"id-{number % 3}", transaction_timeout_ms=5_000, batch_bytes_max=200
        )
        producer.initialise(10_000)
        producer.begin()
        values = [b"%d" % n for n in range(20)]
        keys = [b"key-%d" % (n * number % 7) for n in range(20)] if number % 2 else None
        producer.produce(RowBlock(topic="out", values=values, keys=keys), 1_000)
        group = kafka.cluster.group(f"id-{number % 3}")
        from connectors.kafka.cluster import GroupOffset

        producer.send_offsets({MARKER_AT: GroupOffset(offset=number)}, group.identity(), 1_000)
        if number % 4 != 3:
            producer.commit(1_000)
        said += [f"{m.partition()}@{m.offset()} {m.value()!r}" for m in reader.consume(1_000, 50)]
        said.append(str(sorted(kafka.cluster.topic_names())))
    return "\n".join([*kafka.world.asked, *said, str(kafka.world.now_ms())])


def test_two_hash_seeds_give_the_same_trace() -> None:
    def under(seed: str) -> str:
        root = str(Path(__file__).parents[3])
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": root}
        return subprocess.run(
            [sys.executable, "-c", PROGRAM],
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
            env=environment,
            cwd=root,
        ).stdout

    first = under("1")
    assert len(first.splitlines()) > 200
    assert first == under("2")


def test_a_block_of_rows_costs_microseconds() -> None:
    kafka = UneasyKafka(partitions=4)
    values = [b"x" * 60] * 100
    keys = [b"key-%d" % (n % 20) for n in range(100)]
    producer = kafka.cluster.producer("id", transaction_timeout_ms=60_000, batch_bytes_max=1_000_000)
    producer.initialise(1_000)
    producer.begin()
    took = []
    for _ in range(200):
        began = time.perf_counter()
        producer.produce(RowBlock(topic="out", values=values, keys=keys), 1_000)
        took.append(time.perf_counter() - began)
    assert sorted(took)[len(took) // 2] * 1e6 < BLOCK_US_MAX
    producer.commit(1_000)
    assert sum(len(kafka.values(number)) for number in range(4)) == 20_000


def test_keys_are_hashed_as_kafka_publishes_it() -> None:
    expected = {
        b"21": -973932308,
        b"foobar": -790332482,
        b"a-little-bit-long-string": -985981536,
        b"abc": 479470107,
    }
    for key, hashed in expected.items():
        assert murmur2(key) == hashed & 0xFFFFFFFF
    partitioner = KeyPartitioner()
    assert [partitioner.partition(b"foobar", 7) for _ in range(2)] == [
        (murmur2(b"foobar") & 0x7FFFFFFF) % 7
    ] * 2
