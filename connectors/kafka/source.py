"""Topics as a source of records."""

from __future__ import annotations

from collections.abc import Sequence
from re import Pattern
from typing import Any, Generic, TypeVar, cast

from connectors.kafka.bounds import Earliest, Start, Until
from connectors.kafka.cluster import Cluster
from connectors.kafka.described import described
from connectors.kafka.enumerator import KafkaEnumerator, Reading, Topics, lag_group
from connectors.kafka.reader import KafkaReader
from connectors.kafka.settings import ClusterSettings, OutOfRetention, kafka_settings
from processor.contracts.codec import Decoder
from processor.contracts.source import Enumerator, Reader, SourceContext
from processor.errors import JobError

V_co = TypeVar("V_co", covariant=True)
T = TypeVar("T")


class KafkaSource(Generic[V_co]):
    """Reads one topic, several, or all whose whole name a pattern matches.

    Values are decoded by ``value``; Kafka's key, headers and timestamp travel along. A record without value
    (a tombstone) is handled by the step's error policy; ``KafkaSource.with_tombstones`` hands it on as None.

    ``start`` says where a job without a checkpoint begins, ``until`` makes the source bounded,
    ``out_of_retention`` (fail, earliest, latest) what to do when a position is no longer kept; by default the
    setting ``consumer.out_of_retention`` of the cluster says. ``cluster`` names a cluster of the settings.

    Only committed records are read. Positions are kept in the job's checkpoints, never in a consumer group.
    """

    def __init__(
        self,
        topics: Topics,
        value: Decoder[V_co],
        *,
        start: Start | None = None,
        until: Until | None = None,
        out_of_retention: str | OutOfRetention | None = None,
        cluster: str = "main",
    ) -> None:
        self._topics = _checked(topics)
        self._decoder = value
        self._start = Earliest() if start is None else start
        self._until = until
        self._out_of_retention = None if out_of_retention is None else _policy(out_of_retention)
        self._cluster = cluster
        self._tombstones = False

    @classmethod
    def with_tombstones(
        cls,
        topics: Topics,
        value: Decoder[T],
        *,
        start: Start | None = None,
        until: Until | None = None,
        out_of_retention: str | OutOfRetention | None = None,
        cluster: str = "main",
    ) -> KafkaSource[T | None]:
        """A source of ``V | None``: a record without value is None, and the decoder does not see it."""
        source: KafkaSource[Any] = KafkaSource(
            topics,
            value,
            start=start,
            until=until,
            out_of_retention=out_of_retention,
            cluster=cluster,
        )
        source._tombstones = True
        return source

    @property
    def bounded(self) -> bool:
        return self._until is not None

    def value_type(self) -> type[V_co] | None:
        ask = getattr(self._decoder, "value_type", None)  # a format of the author's own may lack it
        kind = None if ask is None else ask()
        if kind is None or not self._tombstones:
            return cast("type[V_co] | None", kind)
        return cast("type[V_co]", kind | None)

    def check(self, context: SourceContext) -> None:
        enumerator = self._enumerator(context)
        try:
            enumerator.check_readable()
        finally:
            enumerator.close()

    def enumerator(self, context: SourceContext) -> Enumerator:
        return self._enumerator(context)

    def reader(self, context: SourceContext) -> Reader[V_co]:
        settings = self._settings(context)
        return KafkaReader(
            self._open(context),
            context,
            group=lag_group(context.job, context.step),
            decode=self._decoder.decode,
            tombstones=self._tombstones,
            out_of_retention=self._out_of_retention or settings.consumer.out_of_retention,
        )

    def __repr__(self) -> str:
        name = "KafkaSource.with_tombstones" if self._tombstones else "KafkaSource"
        return described(
            name,
            self._topics,
            self._decoder,
            start=None if self._start == Earliest() else self._start,
            until=self._until,
            cluster=None if self._cluster == "main" else self._cluster,
        )

    def _enumerator(self, context: SourceContext) -> KafkaEnumerator:
        return KafkaEnumerator(
            lambda: self._open(context),
            self._settings(context),
            Reading(
                job=context.job,
                step=context.step,
                topics=self._topics,
                start=self._start,
                until=self._until,
            ),
        )

    def _settings(self, context: SourceContext) -> ClusterSettings:
        return kafka_settings(context.settings).cluster(self._cluster)

    def _open(self, context: SourceContext) -> Cluster:
        return kafka_settings(context.settings).open(self._cluster)


def _checked(topics: Topics) -> Topics:
    if isinstance(topics, str | Pattern):
        named: Sequence[object] = [topics]
    else:
        named = topics = tuple(topics)
    if not named or "" in named:
        raise JobError("a Kafka source reads no topic.", remedy="Name a topic, several, or a pattern.")
    if len(set(named)) != len(named):
        raise JobError(f"a Kafka source names a topic twice: {list(named)}.", remedy="Name each topic once.")
    return topics


def _policy(name: str | OutOfRetention) -> OutOfRetention:
    try:
        return OutOfRetention(name)
    except ValueError:
        known = ", ".join(each.value for each in OutOfRetention)
        raise JobError(f"out_of_retention={name!r} is not known.", remedy=f"Use one of {known}.") from None
