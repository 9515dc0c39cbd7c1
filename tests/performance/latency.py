"""From the scheduled sending of a record to its visible result, at a steady rate.

    python -m tests.performance.latency [--rate R] [--seconds S] [--interval 1s --interval 100ms]

Counts clicks (W2). Every record carries the moment at which it was due as its timestamp, and so does its
result; a reader of committed records compares that with the clock. A sender that falls behind its schedule
makes latency, it does not hide it. Take half of what the benchmark shows as the rate.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from connectors.kafka import dev_broker
from examples.job_process import JobProcess
from processor.cli.table import aligned
from tests.performance.workloads import PARTITIONS, W2, Distribution
from tests.topics import create_topic, delete_topics
from tests.waiting import wait_until

RATE = 50_000
SECONDS = 20.0
WARM_UP_S = 5.0
"""The first results are not counted: the job starts, caches fill."""
SLICE_S = 0.005
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0
TAIL_TIMEOUT_S = 60.0
CONSUME_RECORDS_MAX = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    interval: str
    rate: int
    records: int
    p50_ms: float
    p99_ms: float
    max_ms: float


class Sender(threading.Thread):
    """Sends on schedule: the n-th record is due n / rate seconds after the start."""

    def __init__(self, bootstrap: str, topic: str, rate: int, seconds: float) -> None:
        super().__init__(name="sender", daemon=True)
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "linger.ms": 5, "queue.buffering.max.messages": 1_000_000}
        )
        self._topic = topic
        self._rate = rate
        self._records = int(rate * seconds)
        self.sent = 0
        self.done = threading.Event()
        self._pause = threading.Event()

    @property
    def records(self) -> int:
        return self._records

    def run(self) -> None:
        records = W2.records(self._records, random.Random(1), Distribution.UNIFORM)
        began, began_ms = time.monotonic(), now_ms()
        for number, (partition, key, value) in enumerate(records):
            due_s = number / self._rate
            while (ahead := due_s - (time.monotonic() - began)) > 0:
                self._producer.poll(0)
                self._pause.wait(max(ahead, SLICE_S))  # nobody sets it: a pause that may be late, not early
            self._producer.produce(self._topic, value, key, partition, timestamp=began_ms + int(due_s * 1e3))
            self.sent = number + 1
        self._producer.flush()
        self.done.set()


def now_ms() -> int:
    """The clock that timestamps are compared with; both ends are on this machine."""
    return time.clock_gettime_ns(time.CLOCK_REALTIME) // 1_000_000


def measure(bootstrap: str, interval: str, rate: int, seconds: float) -> Latency:
    """One run of the job with one checkpoint interval."""
    source = create_topic(bootstrap, "latency-in", partitions=PARTITIONS)
    target = create_topic(bootstrap, "latency-out", partitions=PARTITIONS)
    folder = Path(tempfile.mkdtemp(prefix="latency-"))
    settings = {
        "kafka.main.bootstrap_servers": bootstrap,
        f"kafka.main.topic_map.{W2.source}": source,
        f"kafka.main.topic_map.{W2.target}": target,
        "kafka.main.marker_topic": f"markers-of-{target}",
        "checkpoint.directory": str(folder / "checkpoints"),
        "checkpoint.interval": interval,
    }
    options = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    process = JobProcess(["-m", "processor", "run", W2.job, *options], folder / "job.log")
    process.start()
    try:
        wait_until(lambda: "running from checkpoint" in process.said(), START_TIMEOUT_S, "the job runs")
        latencies = _watch(bootstrap, source, target, rate, seconds)
        code = process.stop(STOP_TIMEOUT_S)
        if code != 0:
            raise RuntimeError(f"the job stopped with exit code {code}; it said:\n{process.said()}")
    finally:
        process.kill()
        shutil.rmtree(folder, ignore_errors=True)
        delete_topics(bootstrap, [source, target])
    latencies.sort()
    return Latency(
        interval=interval,
        rate=rate,
        records=len(latencies),
        p50_ms=latencies[len(latencies) // 2],
        p99_ms=latencies[len(latencies) * 99 // 100],
        max_ms=latencies[-1],
    )


def _watch(bootstrap: str, source: str, target: str, rate: int, seconds: float) -> list[int]:
    """Latencies of every result after the warm-up, in ms."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"latency-{target}",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 5,
        }
    )
    consumer.assign([TopicPartition(target, number, 0) for number in range(PARTITIONS)])
    sender = Sender(bootstrap, source, rate, WARM_UP_S + seconds)
    sender.start()
    latencies: list[int] = []
    skipped = int(rate * WARM_UP_S)
    found, heard = 0, time.monotonic()
    try:
        while found < sender.records:
            messages = consumer.consume(CONSUME_RECORDS_MAX, 0.01)
            seen_ms = now_ms()
            if messages:
                heard = time.monotonic()
            elif time.monotonic() - heard > TAIL_TIMEOUT_S:
                raise RuntimeError(f"only {found:,} of {sender.records:,} results came")
            for message in messages:
                if message.error() is None:
                    found += 1
                    if found > skipped:
                        latencies.append(seen_ms - message.timestamp()[1])
    finally:
        consumer.close()
    return latencies


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measures the time from a record to its visible result.")
    parser.add_argument("--rate", type=int, default=RATE, help="records a second")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="measured time of each run")
    parser.add_argument("--interval", action="append", help="checkpoint interval, may be given again")
    chosen = parser.parse_args(arguments)
    bootstrap = dev_broker.up()
    found = [
        measure(bootstrap, interval, chosen.rate, chosen.seconds)
        for interval in (chosen.interval or ["1s", "100ms"])
    ]
    rows = [("CHECKPOINTS EVERY", "RECORDS/S", "RECORDS", "P50 MS", "P99 MS", "MAX MS")]
    for each in found:
        rows.append(
            (
                each.interval,
                f"{each.rate:,}",
                f"{each.records:,}",
                f"{each.p50_ms:.0f}",
                f"{each.p99_ms:.0f}",
                f"{each.max_ms:.0f}",
            )
        )
    print("\n".join(aligned(rows)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
