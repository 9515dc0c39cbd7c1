"""From the client library's exceptions to the engine's errors."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from confluent_kafka import KafkaError, KafkaException

from connectors.kafka.errors import Meaning, entry_of, error_for
from processor.errors import ProcessorError

CLIENT_LOG: Final = logging.getLogger("connectors.kafka.client")

CAUSES_MAX: Final = 10
"""How far the causes of an exception are followed."""

HEARD_FOR_S: Final = 60.0
"""How long a refusal heard on the side explains silence; the client repeats it at every new connection."""


class ClientFailures:
    """The failures of all clients of one cluster.

    A refused password or certificate closes connections, and the request that waits for one only runs out of
    time. The client says why on the side, by its error callback: that is remembered and told instead.
    """

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._lock = threading.Lock()
        self._heard: KafkaError | None = None
        self._heard_at_s = 0.0

    def heard(self, failure: KafkaError) -> None:
        """The error callback of every client: troubles without a request of ours."""
        CLIENT_LOG.info("%s (%s)", failure.str(), failure.name())
        if entry_of(failure.name()).meaning is Meaning.REFUSED:
            with self._lock:
                self._heard, self._heard_at_s = failure, time.monotonic()

    @contextmanager
    def within(self, doing: str) -> Iterator[None]:
        """Raises what Kafka's errors in the block mean to the engine; ``doing`` completes "failed while"."""
        try:
            yield
        except KafkaException as failed:
            raise self.error(failed.args[0], doing) from failed
        except SystemError as torn:
            # A producer that is fenced while it flushes or polls: the client library has raised the fatal
            # error, and calls back for logs and deliveries all the same; Python finds the error in the way.
            failure = _first_kafka_error(torn)
            if failure is None:
                raise
            raise self.error(failure, doing) from torn

    def error(self, failure: KafkaError, doing: str) -> ProcessorError:
        """The engine's error for one of the client's."""
        cause = failure
        if entry_of(failure.name()).meaning is Meaning.SILENCE:
            cause = self.reason_of_silence() or failure
        return error_for(cause.name(), cause.str(), doing=doing, cluster=self._cluster)

    def reason_of_silence(self) -> KafkaError | None:
        """A refusal heard lately; it explains why nobody answers."""
        with self._lock:
            fresh = self._heard is not None and time.monotonic() - self._heard_at_s < HEARD_FOR_S
            return self._heard if fresh else None


def _first_kafka_error(raised: BaseException) -> KafkaError | None:
    """The client's error that an exception came from; None when there is none."""
    at: BaseException | None = raised
    for _ in range(CAUSES_MAX):
        if at is None:
            return None
        if isinstance(at, KafkaException):
            found: KafkaError = at.args[0]
            return found
        at = at.__cause__ or at.__context__
    return None
