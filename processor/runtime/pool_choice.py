"""Which worker processes a job has, by its settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import assert_never

from processor.channels.credentials import credentials_of
from processor.contracts.chance import Chance
from processor.contracts.clock import Clock
from processor.errors import SettingsError
from processor.plan.execution import ExecutionPlan
from processor.runtime.cluster.joining_pool import JoiningPool
from processor.runtime.cluster.network_address import network_address
from processor.runtime.cluster.shared_places import require_shared_places
from processor.runtime.fingerprint import fingerprint
from processor.runtime.launch import Launch, worker_processes
from processor.runtime.local_worker import LocalWorker
from processor.runtime.remote_workers import RemoteWorkers
from processor.runtime.worker_pool import WorkerPool
from processor.runtime.workers import Workers, WorkersParts
from processor.settings.cluster import WorkersFrom
from processor.settings.model import Settings
from processor.telemetry.log import Log


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolParts:
    """What workers are started with, or let in by."""

    plan: ExecutionPlan
    settings: Settings
    launch: Launch | None
    """How another process finds the job; None: it was handed over as an object."""
    clock: Clock
    chance: Chance
    log: Log

    @property
    def fingerprint(self) -> str:
        """Of the layout that workers must have."""
        return fingerprint(self.plan, self.settings)


@contextmanager
def workers_of(parts: PoolParts) -> Iterator[Callable[[WorkersParts], Workers]]:
    """What makes the workers of an attempt; their processes are there in between. Raises SettingsError."""
    with _pool(parts) as pool:
        if pool is None:
            yield LocalWorker
        else:
            same = parts.fingerprint
            yield lambda given: RemoteWorkers(given, pool, same, parts.log)


@contextmanager
def _pool(parts: PoolParts) -> Iterator[WorkerPool | None]:
    """None: this process does without others."""
    settings = parts.settings
    match settings.runtime.cluster.workers:
        case WorkersFrom.PROCESSES:
            if settings.runtime.workers == 1:
                yield None
                return
            with worker_processes(settings, parts.launch) as pool:
                yield pool
        case WorkersFrom.JOINING:
            with _door(parts) as door:
                parts.log.info("waits for workers", address=door.address, workers=len(door.workers))
                yield door
        case WorkersFrom.RAY:
            raise SettingsError(
                "runtime.cluster.workers is ray, and this process is to run the job itself.",
                remedy="Start the job with 'processor run MODULE:BUILD'.",
            )
        case _:
            assert_never(settings.runtime.cluster.workers)


@contextmanager
def _door(parts: PoolParts) -> Iterator[JoiningPool]:
    settings = parts.settings
    cluster = settings.runtime.cluster
    require_shared_places(settings, "workers of other machines")
    door = JoiningPool(
        network_address(cluster.listen, "runtime.cluster.listen"),
        settings.runtime.workers,
        job=parts.plan.job,
        fingerprint=parts.fingerprint,
        credentials=credentials_of(cluster),
        clock=parts.clock,
        chance=parts.chance,
        log=parts.log,
    )
    try:
        yield door
    finally:
        door.close()
