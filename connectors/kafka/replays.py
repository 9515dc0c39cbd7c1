"""A stretch of topics, run again into other topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from connectors.kafka.cluster import OffsetAt, partition_of
from connectors.kafka.settings import LEGAL_TOPIC, KafkaSettings, kafka_settings
from connectors.kafka.source import KafkaSource
from processor.errors import SettingsError
from processor.ids import SplitId


class KafkaReplays:
    """See ``processor.contracts.replays.Replays``."""

    def redirected(self, settings: object, targets: Mapping[str, str]) -> KafkaSettings:
        for written, real in targets.items():
            if not LEGAL_TOPIC.fullmatch(real):
                raise SettingsError(f"'{written}' is sent to '{real}', which cannot be a topic's name.")
        section = kafka_settings({"kafka": settings})
        mapped = {
            name: cluster.model_copy(update={"topic_map": {**cluster.topic_map, **targets}})
            for name, cluster in section.clusters().items()
        }
        return section.model_copy(update=mapped)

    def ends(
        self, settings: object, source: object, splits: Sequence[SplitId], time_ms: int | None
    ) -> Mapping[SplitId, int] | None:
        if not isinstance(source, KafkaSource):
            return None
        partitions = {partition_of(split): split for split in splits}
        cluster = kafka_settings({"kafka": settings}).open(source._cluster)
        try:
            ends = dict(cluster.offsets(list(partitions), OffsetAt.COMMITTED_END))
            if time_ms is not None:
                found = cluster.offsets_from(list(partitions), time_ms)
                ends |= {at: offset for at, offset in found.items() if offset is not None}
        finally:
            cluster.close()
        return {split: ends[at] for at, split in partitions.items()}
