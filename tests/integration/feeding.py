"""What writes input into real topics has in common: it waits for room, misses no failure, and runs as a thread."""

from __future__ import annotations

import threading

from confluent_kafka import Producer

FULL_POLL_S = 0.1
STOP_TIMEOUT_S = 30.0
FLUSH_TIMEOUT_S = 150.0
"""A broker asks its controller for producer ids; one that asked a sleeping controller waits its time-out out."""


class Feeding:
    """Calls ``burst`` again and again between ``start`` and ``stop``."""

    def __init__(self, bootstrap: str, *, pause_s: float) -> None:
        self.producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5})
        self._pause_s = pause_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feeder", daemon=True)
        self._failures: list[str] = []

    def burst(self) -> None:
        """Write some records."""
        raise NotImplementedError

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Returns when everything is written; may be called again, and without ``start``."""
        self.halt()
        self.flush()

    def halt(self) -> None:
        """The thread has ended; what it wrote may still be on its way."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(STOP_TIMEOUT_S)

    def produce(self, topic: str, value: bytes | None, *, key: bytes | None = None, partition: int) -> None:
        while True:
            try:
                self.producer.produce(topic, value, key=key, partition=partition, on_delivery=self._delivered)
                return
            except BufferError:  # the brokers are slower than we, or away
                self.producer.poll(FULL_POLL_S)

    def flush(self) -> None:
        left = self.producer.flush(FLUSH_TIMEOUT_S)
        assert not left, f"{left} input records were not written"
        assert not self._failures, self._failures[:3]

    def _run(self) -> None:
        while not self._ended.wait(self._pause_s):
            self.burst()

    def _delivered(self, error: object, message: object) -> None:
        if error is not None:
            self._failures.append(str(error))
