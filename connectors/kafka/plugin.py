"""What the engine finds by entry point; nothing of Kafka is imported before it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer
    from pydantic import BaseModel

    from processor.contracts.plugin import DoctorFinding
    from processor.contracts.replays import Replays
    from processor.contracts.simulated import OutsideWorld, SimulatedSystem
    from processor.contracts.topic_reader import TopicReader


class KafkaPlugin:
    """See ``processor.contracts.plugin.Plugin``."""

    @property
    def name(self) -> str:
        return "kafka"

    def settings_model(self) -> type[BaseModel]:
        from connectors.kafka.settings import KafkaSettings

        return KafkaSettings

    def dev_commands(self) -> typer.Typer | None:
        from connectors.kafka.dev_commands import kafka

        return kafka

    def doctor(self, settings: object) -> list[DoctorFinding]:
        from connectors.kafka.doctor import examine
        from connectors.kafka.settings import KafkaSettings

        section = settings if isinstance(settings, KafkaSettings) else KafkaSettings.model_validate(settings)
        return list(examine(section))

    def topic_reader(self, settings: object, endpoint: object) -> TopicReader | None:
        from connectors.kafka.audit_reader import topic_reader

        return topic_reader(settings, endpoint)

    def replays(self) -> Replays:
        from connectors.kafka.replays import KafkaReplays

        return KafkaReplays()

    def simulated(self, world: OutsideWorld, settings: object) -> SimulatedSystem:
        from connectors.kafka.simulated_system import SimulatedKafka

        return SimulatedKafka(world, settings)


plugin = KafkaPlugin()
