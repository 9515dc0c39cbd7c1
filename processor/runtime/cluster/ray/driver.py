"""Runs a job on the nodes of a Ray cluster, from a process that may be on none of them."""

from __future__ import annotations

import secrets
from typing import Final

from processor.runtime.cluster.ray.fleet import Fleet, FleetParts
from processor.runtime.cluster.ray.member import Member
from processor.runtime.cluster.ray.nodes import Nodes, Room
from processor.runtime.cluster.ray.shipped import Shipped
from processor.runtime.cluster.shared_places import require_shared_places
from processor.runtime.signals import StopSignals
from processor.runtime.system import SystemClock
from processor.settings.model import Settings
from processor.telemetry.log import Log

SECRET_BYTES: Final = 32


def run_on_ray(shipped: Shipped, settings: Settings, log: Log) -> int:
    """Until the job has ended, or is stopped by a signal; returns its exit code. When this process ends, so does all
    of the job.

    Raises SettingsError and Unavailable for a cluster that cannot be used.
    """
    cluster = settings.runtime.cluster
    require_shared_places(settings, "the nodes of a Ray cluster")
    # Settings with a secret of their own, or certificates, name files that are on the nodes.
    own = cluster.secret_file is not None or cluster.certificate_file is not None
    secret = "" if own else secrets.token_hex(SECRET_BYTES)
    of_coordinator = Room(cpus=cluster.ray.coordinator_cpus, resources=cluster.ray.coordinator_resources)
    of_worker = Room(cpus=cluster.ray.worker_cpus, resources=cluster.ray.worker_resources)
    with Nodes(cluster.ray) as nodes, StopSignals(lambda: None) as signals:

        def coordinator() -> Member:
            return Member(nodes, of_coordinator, shipped.coordinator, shipped.environment, secret)

        def worker(number: int, address: str) -> Member:
            return Member(nodes, of_worker, lambda _: shipped.worker(address), shipped.environment, secret)

        log.info("places the job on nodes", cluster=cluster.ray.address, workers=settings.runtime.workers)
        fleet = Fleet(
            FleetParts(
                coordinator=coordinator,
                worker=worker,
                workers=settings.runtime.workers,
                clock=SystemClock(),
                pause=signals.pause,
                log=log,
            )
        )
        return fleet.run(signals)
