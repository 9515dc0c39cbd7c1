"""Settings whose clusters are simulated: what a simulation hands to sources and sinks in place of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import PrivateAttr

from connectors.kafka.cluster import Cluster
from connectors.kafka.settings import ClusterSettings, KafkaSettings


class SimulatedKafkaSettings(KafkaSettings):
    """A ``kafka`` section with the same clusters, opened otherwise."""

    _open: Callable[[str, ClusterSettings], Cluster] = PrivateAttr()

    @classmethod
    def opening(
        cls,
        open_cluster: Callable[[str, ClusterSettings], Cluster],
        section: KafkaSettings | Mapping[str, object] | None = None,
    ) -> SimulatedKafkaSettings:
        """``section`` as a job has it; ``open_cluster`` is given a cluster's name and its settings."""
        if isinstance(section, KafkaSettings):
            section = dict(section.clusters())
        made = cls.model_validate(section or {})
        made._open = open_cluster
        return made

    def open(self, name: str) -> Cluster:
        return self._open(name, self.cluster(name))
