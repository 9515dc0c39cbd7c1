"""A world for tests of the simulated Kafka in which a test says what becomes of which request."""

from __future__ import annotations

from collections.abc import Callable

from connectors.kafka.cluster import Partition
from connectors.kafka.settings import ClusterSettings
from connectors.kafka.simulated_broker import SimulatedBroker
from connectors.kafka.simulated_cluster import SimulatedCluster
from connectors.kafka.simulated_world import CalmWorld, Fate

MARKERS = "markers"
MARKER_AT = Partition(MARKERS, 0)
NONCE_AT = Partition(MARKERS, 1)


class Killed(BaseException):
    """What a world raises in a process that is killed."""


class UneasyWorld(CalmWorld):
    """``fates`` holds what becomes of the next requests of a name; all others are delivered."""

    def __init__(self) -> None:
        super().__init__()
        self.fates: dict[str, list[Fate | BaseException]] = {}
        self.late_ms: dict[str, int] = {}
        self.stale = 0
        self.marker_ms: dict[str, int] = {}
        self.leader_away: dict[str, int] = {}
        """Taken out when it happens."""
        self.asked: list[str] = []
        self.before: Callable[[str], None] | None = None

    def exchange(self, request: str, client: int) -> Fate:
        self.asked.append(request)
        if self.before is not None:
            self.before(request)
        coming = self.fates.get(request.split()[0])
        fate = coming.pop(0) if coming else Fate.DELIVERED
        super().exchange(request, client)
        if isinstance(fate, BaseException):
            raise fate
        return fate

    def late(self, request: str) -> int | None:
        return self.late_ms.get(request.split()[0])

    def stale_read(self, group: str) -> bool:
        self.stale -= 1
        return self.stale >= 0

    def visible_after_ms(self, partition: str) -> int:
        return self.marker_ms.get(partition, 0)

    def leader_away_ms(self, partition: str) -> int:
        return self.leader_away.pop(partition, 0)

    def times_asked(self, name: str) -> int:
        return sum(1 for request in self.asked if request.split()[0] == name)


class UneasyKafka:
    """A broker in that world, with a topic ``out`` and one of markers."""

    def __init__(self, partitions: int = 1) -> None:
        self.world = UneasyWorld()
        self.broker = SimulatedBroker(self.world)
        self.broker.create_topic("out", partitions)
        self.broker.create_topic(MARKERS, 3)
        self.settings = ClusterSettings(bootstrap_servers="simulated:1")
        self.cluster = SimulatedCluster(self.broker, self.world, self.settings, 1)

    def values(self, partition: int = 0) -> list[bytes | None]:
        """What is committed."""
        return [record.value() for record in self.broker.committed("out")[partition]]

    def state(self, transactional_id: str) -> str:
        found = self.broker.transactions.find(transactional_id)
        return "" if found is None else found.state.name
