"""Reads whole topics for audits: a plain loop of its own, which shares no code with the source."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from connectors.kafka.cluster import Cluster, Message, OffsetAt, Partition, partition_of, split_of
from connectors.kafka.settings import kafka_settings
from connectors.kafka.sink import KafkaSink
from connectors.kafka.source import KafkaSource
from processor.contracts.topic_reader import TopicChunk
from processor.errors import ExternalRefusal, Unavailable
from processor.ids import SplitId

GROUP: Final = "audit"
"""Only names the reader to the brokers."""

RECORDS_MAX: Final = 10_000
WAIT_MS: Final = 1_000
SILENCE_MAX_S: Final = 60.0
"""Nothing new for so long, though there must be more: the cluster does not answer."""

END_OF_PARTITION: Final = "_PARTITION_EOF"


class KafkaTopicReader:
    """See ``processor.contracts.topic_reader.TopicReader``. Owns the cluster it is given."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def splits(self, target: str) -> tuple[SplitId, ...]:
        found = self._cluster.describe([target])
        if target not in found:
            raise ExternalRefusal(
                f"topic '{target}' is not there in cluster '{self._cluster.name}'.",
                remedy="Without it nothing can be verified; check the cluster's settings.",
            )
        return tuple(split_of(Partition(target, number)) for number in range(found[target].partitions))

    def starts(self, splits: Sequence[SplitId]) -> Mapping[SplitId, int]:
        return self._offsets(splits, OffsetAt.EARLIEST)

    def committed_ends(self, splits: Sequence[SplitId]) -> Mapping[SplitId, int]:
        return self._offsets(splits, OffsetAt.COMMITTED_END)

    def ends(self, splits: Sequence[SplitId]) -> Mapping[SplitId, int]:
        return self._offsets(splits, OffsetAt.END)

    def read(
        self, ends: Mapping[SplitId, int], starts: Mapping[SplitId, int] | None = None
    ) -> Iterator[TopicChunk]:
        first = dict(self.starts(tuple(ends)))
        for split, start in (starts or {}).items():
            first[split] = max(first.get(split, 0), start)
        open_ = {partition_of(split): end for split, end in ends.items() if first[split] < end}
        if not open_:
            return
        consumer = self._cluster.consumer(GROUP)
        try:
            consumer.assign({at: (first[split_of(at)], -1) for at in open_})
            heard = time.monotonic()
            while open_:
                messages = consumer.consume(RECORDS_MAX, WAIT_MS)
                if messages:
                    heard = time.monotonic()
                elif time.monotonic() - heard > SILENCE_MAX_S:
                    missing = ", ".join(f"{at} to offset {end}" for at, end in sorted(open_.items()))
                    raise Unavailable(
                        f"cluster '{self._cluster.name}' sends nothing more of {missing}.",
                        remedy="Look whether a transaction is open there, or a broker away.",
                    )
                for at, chunk in self._sorted(messages, open_).items():
                    if chunk:
                        yield _chunk(at, chunk)
                ended = [at for at in self._reached if at in open_]
                if ended:
                    consumer.unassign(ended)
                    for at in ended:
                        del open_[at]
        finally:
            consumer.close()

    def close(self) -> None:
        self._cluster.close()

    def _sorted(
        self, messages: Sequence[Message], open_: Mapping[Partition, int]
    ) -> Mapping[Partition, list[Message]]:
        """Records by partition, without those behind its end; ``_reached`` are the partitions read to it."""
        found: defaultdict[Partition, list[Message]] = defaultdict(list)
        self._reached: set[Partition] = set()
        partitions: dict[tuple[str | None, int | None], Partition] = {}
        for message in messages:
            name = (message.topic(), message.partition())
            at = partitions.get(name)
            if at is None:
                at = partitions[name] = Partition(str(name[0]), int(name[1] if name[1] is not None else -1))
            end = open_.get(at)
            offset = message.offset()
            if end is None or offset is None:
                continue
            error = message.error()
            if error is not None and error.name() != END_OF_PARTITION:
                raise Unavailable(
                    f"cluster '{self._cluster.name}' cannot be read at {at}: {error.str()}.",
                    remedy="Try again once it can.",
                )
            if error is not None or offset >= end:
                if offset >= end:
                    self._reached.add(at)
                continue
            found[at].append(message)
            if offset == end - 1:
                self._reached.add(at)
        return found

    def _offsets(self, splits: Sequence[SplitId], at: OffsetAt) -> Mapping[SplitId, int]:
        found = self._cluster.offsets([partition_of(split) for split in splits], at)
        return {split: found[partition_of(split)] for split in splits}


def topic_reader(settings: object, endpoint: object) -> KafkaTopicReader | None:
    """A reader of the cluster that a source or a sink uses; None for one that is not Kafka's."""
    if not isinstance(endpoint, KafkaSource | KafkaSink):
        return None
    section = kafka_settings({"kafka": settings})
    return KafkaTopicReader(section.open(endpoint._cluster))


def _chunk(at: Partition, messages: Sequence[Message]) -> TopicChunk:
    return TopicChunk(
        split=split_of(at),
        offsets=[offset for message in messages if (offset := message.offset()) is not None],
        keys=[message.key() for message in messages],
        values=[message.value() for message in messages],
        headers=[message.headers() for message in messages],
        timestamps=[message.timestamp()[1] for message in messages],
    )
