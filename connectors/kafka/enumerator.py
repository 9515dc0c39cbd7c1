"""Finds the partitions of a source and resolves where a fresh job starts (runs beside the coordinator)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from re import Pattern
from typing import Final, assert_never

from connectors.kafka.bounds import (
    Earliest,
    FromGroup,
    FromOffsets,
    FromTime,
    Latest,
    Start,
    Until,
    UntilEnd,
    UntilOffsets,
    UntilTime,
)
from connectors.kafka.cluster import (
    Cluster,
    GroupOffset,
    OffsetAt,
    OffsetsOfGroup,
    Partition,
    TopicDescription,
    partition_of,
    split_of,
)
from connectors.kafka.known_topics import describe_when_known
from connectors.kafka.settings import ClusterSettings
from processor.errors import ExternalRefusal, JobError, PositionLost, ProcessorError, Where
from processor.ids import JobName, Position, SplitId, StepName, escape_name

LOG: Final = logging.getLogger("connectors.kafka.source")

Topics = str | Sequence[str] | Pattern[str]


def lag_group(job: JobName, step: StepName) -> str:
    """The consumer group under which a source's positions are shown to lag tools."""
    return f"{escape_name(job)}.{escape_name(step)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one source step reads."""

    job: JobName
    step: StepName
    topics: Topics
    start: Start
    until: Until | None


class KafkaEnumerator:
    """See ``processor.contracts.source.Enumerator``."""

    def __init__(
        self, open_cluster: Callable[[], Cluster], settings: ClusterSettings, reading: Reading
    ) -> None:
        self._open_cluster = open_cluster
        self._settings = settings
        self._reading = reading
        self._cluster: Cluster | None = None
        self._lag_offsets: OffsetsOfGroup | None = None

    def start(self) -> Mapping[SplitId, Position]:
        described = self._described()
        partitions = _partitions(described)
        starts = self._starts(partitions)
        ends = self._ends(partitions)
        return {
            split_of(at): Position(next=starts[at], end=ends.get(at), identity=described[at.topic].topic_id)
            for at in partitions
        }

    def check(self, known: Mapping[SplitId, Position]) -> None:
        topics = sorted({partition_of(split).topic for split in known})
        self._check_same(known, self._live_cluster().describe(topics))

    def discover(self, known: Mapping[SplitId, Position]) -> Mapping[SplitId, Position]:
        described = self._described()
        self._check_same(known, described)
        if self._reading.until is not None:
            return {}
        new = [at for at in _partitions(described) if split_of(at) not in known]
        earliest = self._live_cluster().offsets(new, OffsetAt.EARLIEST)
        return {
            split_of(at): Position(next=earliest[at], identity=described[at.topic].topic_id) for at in new
        }

    def published(self, positions: Mapping[SplitId, Position]) -> None:
        if not self._settings.consumer.group_offsets or not positions:
            return
        try:
            if self._lag_offsets is None:
                group = lag_group(self._reading.job, self._reading.step)
                self._lag_offsets = self._live_cluster().group(group)
            self._lag_offsets.begin_commit(
                {partition_of(split): GroupOffset(offset=at.next) for split, at in positions.items()}
            )
        except ProcessorError as failed:
            # Lag tools show an older position until the next checkpoint; nothing else depends on it.
            LOG.debug("group offsets of step '%s' were not written: %s", self._reading.step, failed)

    def close(self) -> None:
        if self._lag_offsets is not None:
            self._lag_offsets.close()
            self._lag_offsets = None
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    def check_readable(self) -> None:
        """Do the topics exist, may we read them? Raises with name and remedy."""
        for topic, found in self._described().items():
            if found.may is not None and "READ" not in found.may:
                raise ExternalRefusal(
                    f"topic '{topic}' of Kafka cluster '{self._live_cluster().name}' may not be read.",
                    remedy="Grant the principal Read and Describe on it.",
                    where=Where(step=self._reading.step),
                )
        self._check_named(_partitions(self._described()))

    def _live_cluster(self) -> Cluster:
        if self._cluster is None:
            self._cluster = self._open_cluster()
        return self._cluster

    def _described(self) -> Mapping[str, TopicDescription]:
        cluster, reading = self._live_cluster(), self._reading
        if isinstance(reading.topics, Pattern):
            names = sorted(name for name in cluster.topic_names() if reading.topics.fullmatch(name))
            return cluster.describe(names)
        written = [reading.topics] if isinstance(reading.topics, str) else list(reading.topics)
        names = [self._settings.real_topic(topic) for topic in written]
        described = describe_when_known(cluster, names)
        for topic, name in zip(written, names, strict=True):
            if name not in described:
                mapped = (
                    "" if topic == name else f" (which kafka.{cluster.name}.topic_map gives for '{topic}')"
                )
                raise ExternalRefusal(
                    f"topic '{name}'{mapped} does not exist on Kafka cluster '{cluster.name}'.",
                    remedy="Make it, or correct its name.",
                    where=Where(step=reading.step),
                )
        return described

    def _check_same(
        self, known: Mapping[SplitId, Position], described: Mapping[str, TopicDescription]
    ) -> None:
        for split, position in known.items():
            at = partition_of(split)
            found = described.get(at.topic)
            where = Where(step=self._reading.step, split=split, offset=position.next)
            if found is None or at.number >= found.partitions:
                raise PositionLost(
                    f"partition {at.number} of topic '{at.topic}' is not there any more on Kafka cluster "
                    f"'{self._live_cluster().name}'.",
                    remedy="Start the job afresh, or make the source read what is there.",
                    where=where,
                )
            if position.identity and found.topic_id != position.identity:
                raise PositionLost(
                    f"topic '{at.topic}' was deleted and made again: the position belongs to topic id "
                    f"{position.identity}, the topic there now has {found.topic_id}.",
                    remedy="Its old records are gone. Start the job afresh (--fresh) to read the new topic.",
                    where=where,
                )

    def _starts(self, partitions: Sequence[Partition]) -> Mapping[Partition, int]:
        start, cluster = self._reading.start, self._live_cluster()
        match start:
            case Earliest():
                return cluster.offsets(partitions, OffsetAt.EARLIEST)
            case Latest():
                return cluster.offsets(partitions, OffsetAt.COMMITTED_END)
            case FromTime():
                found = cluster.offsets_from(partitions, start.time_ms)
                missing = [at for at in partitions if found[at] is None]
                ends = cluster.offsets(missing, OffsetAt.COMMITTED_END)
                return {at: _first(found[at], ends.get(at)) for at in partitions}
            case FromGroup():
                return self._with_otherwise(
                    partitions, self._group_starts(partitions, start), start.otherwise
                )
            case FromOffsets():
                self._check_named(partitions)
                given = self._mapped(start.offsets)
                return self._with_otherwise(partitions, given, start.otherwise)
            case _:
                raise JobError(
                    f"step '{self._reading.step}' starts at {start!r}, which is no place to start.",
                    remedy="Use Earliest, Latest, FromTime, FromGroup or FromOffsets.",
                )

    def _with_otherwise(
        self, partitions: Sequence[Partition], given: Mapping[Partition, int], otherwise: Earliest | Latest
    ) -> Mapping[Partition, int]:
        missing = [at for at in partitions if at not in given]
        match otherwise:
            case Earliest():
                rest = self._live_cluster().offsets(missing, OffsetAt.EARLIEST)
            case Latest():
                rest = self._live_cluster().offsets(missing, OffsetAt.COMMITTED_END)
            case _:
                assert_never(otherwise)
        return {at: _first(given.get(at), rest.get(at)) for at in partitions}

    def _group_starts(self, partitions: Sequence[Partition], start: FromGroup) -> Mapping[Partition, int]:
        group = self._live_cluster().group(start.group)
        try:
            stored = group.read(partitions, self._settings.request_timeout) if partitions else {}
        finally:
            group.close()
        return {at: found.offset for at, found in stored.items() if found is not None}

    def _ends(self, partitions: Sequence[Partition]) -> Mapping[Partition, int]:
        until, cluster = self._reading.until, self._live_cluster()
        if until is None:
            return {}
        # The high watermark and not the last stable offset: that one lags behind commits that were already
        # confirmed (R17), and the bounded job would leave them out.
        ends = cluster.offsets(partitions, OffsetAt.END)
        match until:
            case UntilEnd():
                return ends
            case UntilOffsets():
                self._check_named(partitions)
                return {**ends, **self._mapped(until.offsets)}
            case UntilTime():
                found = cluster.offsets_from(partitions, until.time_ms)
                return {at: _first(found[at], ends[at]) for at in partitions}
            case _:
                raise JobError(
                    f"step '{self._reading.step}' ends at {until!r}, which is no place to end.",
                    remedy="Use UntilEnd, UntilOffsets or UntilTime.",
                )

    def _mapped(self, offsets: Mapping[tuple[str, int], int]) -> Mapping[Partition, int]:
        return {
            Partition(self._settings.real_topic(topic), number): offset
            for (topic, number), offset in offsets.items()
        }

    def _check_named(self, partitions: Sequence[Partition]) -> None:
        """Offsets given for partitions that the source does not read are slips."""
        given: dict[Partition, int] = {}
        if isinstance(self._reading.start, FromOffsets):
            given.update(self._mapped(self._reading.start.offsets))
        if isinstance(self._reading.until, UntilOffsets):
            given.update(self._mapped(self._reading.until.offsets))
        for at in sorted(given.keys() - set(partitions)):
            raise JobError(
                f"step '{self._reading.step}' is given an offset for partition {at.number} of topic "
                f"'{at.topic}', which it does not read.",
                remedy="Correct the topic's name or the partition's number.",
            )


def _partitions(described: Mapping[str, TopicDescription]) -> list[Partition]:
    return [
        Partition(topic, n) for topic, found in sorted(described.items()) for n in range(found.partitions)
    ]


def _first(offset: int | None, otherwise: int | None) -> int:
    found = otherwise if offset is None else offset
    return 0 if found is None else found
