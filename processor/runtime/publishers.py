"""The publishers of a job's identities, made when first needed and kept for the attempt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from processor.contracts.clock import Clock
from processor.contracts.sink import Publisher, SinkContext, SinkPlace
from processor.errors import JobError, within_step
from processor.fault_points import FaultHook
from processor.ids import JobName, PublisherId, StepName
from processor.plan.execution import ExecutionPlan
from processor.plan.graph import Step
from processor.protocol.entries import SinkRecord
from processor.telemetry.metrics import Metrics


class Publishers:
    """By identity. An identity whose step is gone is served by any sink on the same cluster (R18)."""

    def __init__(
        self,
        plan: ExecutionPlan,
        *,
        settings: Mapping[str, object],
        clock: Clock,
        metrics: Metrics,
        faults: FaultHook,
    ) -> None:
        self._job: JobName = plan.job
        self._sinks: dict[StepName, tuple[Step, int]] = {
            step.name: (step, parallelism) for step, parallelism in plan.sinks()
        }
        self._settings = settings
        self._clock = clock
        self._metrics = metrics
        self._faults = faults
        self._publishers: dict[PublisherId, Publisher] = {}
        self._places: dict[StepName, SinkPlace] = {}
        self._former: dict[StepName, str] = {}

    def check(self) -> tuple[SinkRecord, ...]:
        """Ask every sink whether it can be published to; raises with its name and the remedy (R31)."""
        records = []
        for name, (step, parallelism) in self._sinks.items():
            assert step.sink is not None
            with within_step(name):
                place = step.sink.check(self._context(step))
            self._places[name] = place
            records.append(
                SinkRecord(
                    sink=name,
                    parallelism=parallelism,
                    cluster=place.cluster,
                    marker_store=place.marker_store,
                    targets=dict(place.targets),
                )
            )
        return tuple(records)

    def remember(self, sinks: Iterable[SinkRecord]) -> None:
        """Sinks of earlier seals: on which cluster a step that is gone has published."""
        for sink in sinks:
            self._former[sink.sink] = sink.cluster

    def of(self, identity: PublisherId) -> Publisher:
        """The identity's publisher. Raises JobError when nothing in the job reaches its cluster."""
        publisher = self._publishers.get(identity)
        if publisher is None:
            step = self._step_for(identity)
            assert step.sink is not None
            publisher = step.sink.publisher(self._context(step), identity)
            self._publishers[identity] = publisher
        return publisher

    def _step_for(self, identity: PublisherId) -> Step:
        found = self._sinks.get(identity.sink)
        if found is not None:
            return found[0]
        cluster = self._former.get(identity.sink)
        for name, place in self._places.items():
            if place.cluster == cluster:
                return self._sinks[name][0]
        raise JobError(
            f"the job no longer has the sink '{identity.sink}', and none of its sinks writes to the same cluster, "
            f"so {identity} can't be shut out and what it decided can't be published.",
            remedy="Keep the sink until its output is published: stop the old job with 'processor stop', then take "
            "the sink away.",
        )

    def _context(self, step: Step) -> SinkContext:
        return SinkContext(
            job=self._job,
            step=step.name,
            settings=self._settings,
            policy=step.policy,
            clock=self._clock,
            count=self._metrics.counter_of(step.name),
            faults=self._faults,
        )

    def wait_visible(self, timeout_ms: int) -> bool:
        """Whether everything sent can be read (R17); waits for it."""
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        return all(
            publisher.wait_visible(max(0, deadline_ms - self._clock.monotonic_ms()))
            for _, publisher in sorted(self._publishers.items())
        )

    def close(self) -> None:
        for publisher in self._publishers.values():
            publisher.close()
        self._publishers.clear()
