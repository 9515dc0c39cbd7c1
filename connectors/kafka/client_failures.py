"""From the client library's exceptions to the engine's errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException

from connectors.kafka.errors import error_for
from processor.errors import ProcessorError


@contextmanager
def failures_of(cluster: str, doing: str) -> Iterator[None]:
    """Raises what Kafka's errors within the block mean to the engine; ``doing`` completes "failed while"."""
    try:
        yield
    except KafkaException as failed:
        raise error_of(failed.args[0], cluster, doing) from failed


def error_of(failure: KafkaError, cluster: str, doing: str) -> ProcessorError:
    """The engine's error for one of the client's."""
    return error_for(failure.name(), failure.str(), doing=doing, cluster=cluster)
