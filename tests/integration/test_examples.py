"""The examples do what they say, on a real broker; the demo passes its own audit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from examples.job_process import PROJECT, JobProcess, reached
from tests.kill_budget import budgeted
from tests.topics import TopicFactory
from tests.waiting import wait_until

DEMO_KILLS = budgeted(1, 2)

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

DEMO_TIMEOUT_S = 150.0
RESULT_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0


def run_example(
    kafka: str, folder: Path, reference: str, topics: Mapping[str, str], enough: Callable[[], bool]
) -> None:
    """Run a job until there is enough, then stop it."""
    settings = {
        "kafka.main.bootstrap_servers": kafka,
        "kafka.main.marker_topic": f"markers-of-{min(topics.values())}",
        "checkpoint.directory": str(folder / "checkpoints"),
        "checkpoint.interval": "100ms",
        **{f"kafka.main.topic_map.{name}": topic for name, topic in topics.items()},
    }
    options = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    process = JobProcess(["-m", "processor", "run", reference, *options], folder / "job.log")
    process.start()
    try:

        def done() -> bool:
            assert process.exit_code() is None, process.said()
            return enough()

        wait_until(done, RESULT_TIMEOUT_S, "the results are there")
        assert process.stop(STOP_TIMEOUT_S) == 0, process.said()
    finally:
        process.kill()


def write(kafka: str, topic: str, records: list[dict[str, object]]) -> None:
    producer = Producer({"bootstrap.servers": kafka})
    for record in records:
        producer.produce(topic, json.dumps(record).encode(), partition=0)
    assert producer.flush(30.0) == 0


class Results:
    """All committed records of one partition so far."""

    def __init__(self, kafka: str, topic: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": kafka,
                "group.id": f"results-{topic}",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
            }
        )
        self._consumer.assign([TopicPartition(topic, 0, 0)])
        self._found: list[dict[str, object]] = []

    def so_far(self) -> list[dict[str, object]]:
        for message in self._consumer.consume(1_000, 0.2):
            error = message.error()
            if error is None:
                self._found.append(json.loads(message.value() or b""))
            elif error.code() != KafkaError._PARTITION_EOF:
                raise AssertionError(str(error))
        return self._found

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture
def results(kafka: str) -> Iterator[Callable[[str], Results]]:
    opened: list[Results] = []

    def open_(topic: str) -> Results:
        opened.append(Results(kafka, topic))
        return opened[-1]

    yield open_
    for each in opened:
        each.close()


def test_the_job_of_ten_lines_counts_clicks(
    kafka: str, topic: TopicFactory, tmp_path: Path, results: Callable[[str], Results]
) -> None:
    clicks, counts = topic("clicks"), topic("counts")
    write(kafka, clicks, [{"user": user, "page": "p"} for user in ("ann", "bob", "ann")])
    found = results(counts)
    topics = {"clicks": clicks, "counts": counts}
    run_example(kafka, tmp_path, "examples.ten_lines:build", topics, lambda: len(found.so_far()) == 3)
    assert found.so_far() == [
        {"key": "ann", "value": 1},
        {"key": "bob", "value": 1},
        {"key": "ann", "value": 2},
    ]


def test_orders_not_paid_in_time_give_a_reminder(
    kafka: str, topic: TopicFactory, tmp_path: Path, results: Callable[[str], Results]
) -> None:
    topics = {"orders": topic("orders"), "paid": topic("paid"), "reminders": topic("reminders")}
    events = [
        {"order": "a", "kind": "ordered", "at_ms": 0},
        {"order": "b", "kind": "ordered", "at_ms": 1_000},
        {"order": "a", "kind": "paid", "at_ms": 20_000},
        {"order": "c", "kind": "ordered", "at_ms": 100_000},  # event time passes the 61 s of b
    ]
    write(kafka, topics["orders"], events)
    paid, reminders = results(topics["paid"]), results(topics["reminders"])
    run_example(
        kafka,
        tmp_path,
        "examples.timers:build",
        topics,
        lambda: bool(paid.so_far()) and bool(reminders.so_far()),
    )
    assert paid.so_far() == [{"order": "a", "after_ms": 20_000}]
    assert reminders.so_far() == [{"order": "b", "ordered_at_ms": 1_000}]
    assert reached(tmp_path / "checkpoints", "orders").published


@pytest.mark.kill(DEMO_KILLS)
def test_the_demo_passes_its_audit(kafka: str) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "examples.demo",
            "--lines",
            "60000",
            "--kills",
            str(DEMO_KILLS),
            "--seed",
            "1",
        ],
        cwd=PROJECT,
        env={**os.environ, "KAFKA_BOOTSTRAP_SERVERS": kafka, "COLUMNS": "120"},
        capture_output=True,
        text=True,
        timeout=DEMO_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = " ".join(done.stdout.split())
    for row in ("lines in │ 60,000", f"kills │ {DEMO_KILLS}", "losses │ 0", "duplicates │ 0"):
        assert row in said, done.stdout
