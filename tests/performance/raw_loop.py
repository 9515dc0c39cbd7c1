"""The yardstick: a plain, tuned loop of the client library, transactional, one commit a second.

Run in a process of its own by the benchmark. It says when it begins to read and when all is
committed. Its counts are a dict: nothing of it would survive its death.

    python -m tests.performance.raw_loop W1|W2 BOOTSTRAP TOPIC_IN TOPIC_OUT RECORDS
"""

from __future__ import annotations

import gc
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from confluent_kafka import Consumer, Producer, TopicPartition

from examples.keyed_count import Click, UserCount
from tests.performance.workloads import PARTITIONS

RUNNING, DONE = "running", "done"
CONSUME_RECORDS_MAX = 2_000
COMMIT_INTERVAL_S = 1.0
TIMEOUT_S = 30.0
ANY_PARTITION = -1


def _consumer(bootstrap: str, topic: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"raw-{topic}",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            # By default a full read-ahead is looked at again a second later.
            "fetch.queue.backoff.ms": 5,
            "queued.min.messages": 1_000_000,
            "queued.max.messages.kbytes": 262_144,
            "fetch.message.max.bytes": 4 * 2**20,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    return consumer


def _producer(bootstrap: str, topic: str) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": f"raw-{topic}",
            "linger.ms": 20,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 2_000_000,
            "queue.buffering.max.kbytes": 1_048_576,
            "partitioner": "murmur2_random",
            "delivery.report.only.error": True,
        }
    )
    producer.init_transactions(TIMEOUT_S)
    return producer


def _passing(producer: Producer, topic: str) -> Callable[[Sequence[Any]], None]:
    """What is passed on is the record: key, value, timestamp."""
    produce = producer.produce

    def handle(messages: Sequence[Any]) -> None:
        for message in messages:
            while True:
                try:
                    produce(
                        topic,
                        message.value(),
                        message.key(),
                        ANY_PARTITION,
                        None,
                        None,
                        message.timestamp()[1],
                    )
                    break
                except BufferError:
                    producer.poll(0.01)

    return handle


def _counting(producer: Producer, topic: str) -> Callable[[Sequence[Any]], None]:
    produce = producer.produce
    decode, encode = msgspec.json.Decoder(Click).decode, msgspec.json.Encoder().encode
    counts: dict[str, int] = {}
    get = counts.get

    def handle(messages: Sequence[Any]) -> None:
        for message in messages:
            user = decode(message.value()).user
            count = counts[user] = get(user, 0) + 1
            value = encode(UserCount(user, count))
            while True:
                try:
                    produce(topic, value, user)
                    break
                except BufferError:
                    producer.poll(0.01)

    return handle


def main(arguments: Sequence[str]) -> int:
    workload, bootstrap, source, target, wanted = arguments
    gc.set_threshold(50_000, 50, 100)
    consumer, producer = _consumer(bootstrap, source), _producer(bootstrap, target)
    handle = (_passing if workload == "W1" else _counting)(producer, target)
    group = consumer.consumer_group_metadata()

    def commit() -> None:
        producer.flush(TIMEOUT_S)
        producer.send_offsets_to_transaction(consumer.position(consumer.assignment()), group, TIMEOUT_S)
        producer.commit_transaction(TIMEOUT_S)

    print(RUNNING, flush=True)
    producer.begin_transaction()
    left, committed = int(wanted), time.monotonic()
    while left:
        messages = consumer.consume(CONSUME_RECORDS_MAX, 0.5)
        if not messages:
            continue
        error = messages[0].error()
        if error is not None:
            raise RuntimeError(f"reading {source}: {error}")
        handle(messages)
        producer.poll(0)
        left -= len(messages)
        if time.monotonic() - committed > COMMIT_INTERVAL_S:
            commit()
            producer.begin_transaction()
            committed = time.monotonic()
    commit()
    # Stays until it is told to go, so that it can be looked at.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    print(DONE, flush=True)
    signal.pause()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
