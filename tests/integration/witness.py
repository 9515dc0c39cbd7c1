"""A second reader that reads read_committed all the time, and remembers how far it could see."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaError, TopicPartition

from processor.audit.whole_transactions import Sample
from processor.ids import SplitId

RECORDS_MAX = 5_000
WAIT_S = 0.05
STOP_TIMEOUT_S = 30.0


class CommittedWitness:
    """Reads a topic from its beginning in a thread of its own, between ``start`` and ``stop``."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"witness-of-{topic}",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 10,
            }
        )
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        self._samples: set[Sample] = set()
        self._seen: Counter[tuple[int, int]] = Counter()
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="witness", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Raises what the thread met."""
        self._ended.set()
        self._thread.join(STOP_TIMEOUT_S)
        if self._failure is not None:
            raise self._failure
        self._consumer.close()

    @property
    def samples(self) -> Sequence[Sample]:
        """Every end it reached: there the last stable offset was at that moment."""
        return sorted(self._samples, key=lambda sample: (sample.split, sample.stable))

    @property
    def records(self) -> int:
        return len(self._seen)

    @property
    def seen_twice(self) -> int:
        return sum(times - 1 for times in self._seen.values())

    def _run(self) -> None:
        try:
            quiet = False
            while not (quiet and self._ended.is_set()):  # what is there at the end is read too
                messages = self._consumer.consume(RECORDS_MAX, WAIT_S)
                quiet = not messages
                for message in messages:
                    at = (message.partition() or 0, message.offset() or 0)
                    error = message.error()
                    if error is None:
                        self._seen[at] += 1
                    elif error.code() == KafkaError._PARTITION_EOF:
                        self._samples.add(Sample(split=SplitId(f"{message.topic()}/{at[0]}"), stable=at[1]))
                    elif not error.retriable():
                        raise AssertionError(f"the witness met {error}")
        except BaseException as failure:
            self._failure = failure
