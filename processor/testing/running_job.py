"""``run_job``: a job's steps on values that a test feeds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from processor.errors import JobError
from processor.ids import StepName
from processor.operators.lift import Filter
from processor.operators.outbox_sink import OutboxSink
from processor.plan.graph import Edge, JobGraph, Step
from processor.records.batch import Key
from processor.runtime.start_options import StartOptions
from processor.settings.restart import RestartSettings, RestartStrategyName
from processor.simulation.case import Case
from processor.simulation.faults import Faults
from processor.simulation.operator import Operator, run_and_stop
from processor.simulation.simulation import Simulation
from processor.stream.job import Job
from processor.testing.fed import SECTION, Advance, CollectingSink, FedPlugin, FedRecord, FedSource, Kept

SETTLE_MS = 2_000
"""Simulated time after everything fed was read and published: for timers that are due at once."""

ALL_DISORDER_MS = 2**60
"""So much that no record advances event time."""

SAVEPOINTS = "/simulated/savepoints"

_PASSES = " (passes values)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One record that a sink step was given and that was published."""

    value: Any
    key: Key | None
    time_ms: int
    """-1: it carries no time."""


class RunningJob:
    """A job that runs in simulated time. Made by ``run_job``."""

    def __init__(
        self,
        job: Job,
        *,
        seed: int,
        parallelism: int,
        batch_records_max: int | None = None,
        time_is_told: bool = False,
    ) -> None:
        """``time_is_told``: event time advances by ``advance_watermark`` alone, and not by records."""
        bounds = {} if batch_records_max is None else {"batch_records_max": batch_records_max}
        self._kept = Kept()
        self._graph = job.graph()
        self._simulation = Simulation(
            Case(
                graph=_with_fed_ends(self._graph, time_is_told=time_is_told),
                plugins={SECTION: (FedPlugin(self._kept), None)},
                inputs=(),
                script=run_and_stop,
                audits=(),
                parallelism=parallelism,
                runtime={"restart": RestartSettings(strategy=RestartStrategyName.NONE), **bounds},
            ),
            seed,
            Faults.none(),
        )
        self._operator = Operator(self._simulation, self._raise_failure)
        self._restarts = 0

    def feed(self, step: str, *values: Any, key: Key | None = None, time_ms: int | None = None) -> None:
        """Give values to a step made by ``read``, as its decoder would; then let the job run until their output
        is published. ``key`` is the record's own key, ``time_ms`` its timestamp."""
        for value in values:
            self.put(step, FedRecord(value=value, key=key, time_ms=time_ms))
        self.settle()

    def advance_watermark(self, step: str, time_ms: int) -> None:
        """Event time of a step with ``event_time`` has reached this: no earlier record will come."""
        if self._graph.steps[StepName(step)].event_time is None:
            raise JobError(
                f"step '{step}' has no event time.", remedy="Give it one, by event_time behind read."
            )
        self.put(step, FedRecord(value=Advance(time_ms)))
        self.settle()

    def advance_time(self, by_ms: int) -> None:
        """Let processing time pass: timers that become due run, and their output is published."""
        self._simulation.wall.offset_ms += by_ms
        self.settle()

    def restart(self, *, parallelism: int) -> None:
        """Stop with a savepoint, and go on from it with another parallelism (of steps that do not say theirs)."""
        self._restarts += 1

        def restart() -> None:
            origin = self._operator.stop_with_savepoint(f"{SAVEPOINTS}/{self._restarts}")
            self._operator.start(StartOptions(origin=origin), parallelism=parallelism)

        self._simulation.let_run(restart)
        self.settle()

    def written(self, step: str) -> list[Written]:
        """What a step made by ``write`` was given so far and is published, in order for each key."""
        if step not in {name for name, each in self._graph.steps.items() if each.sink is not None}:
            raise JobError(f"the job has no step '{step}' that writes.", remedy="Name a step made by write.")
        return [
            Written(value=record.value, key=record.key, time_ms=record.time_ms)
            for record in self._kept.written.get(step, ())
        ]

    def start(self) -> None:
        self._simulation.begin()
        self._simulation.let_run(self._operator.start)
        self.settle()

    def close(self) -> None:
        self._simulation.end()

    def put(self, step: str, record: FedRecord) -> None:
        """Give one record, and let nothing run yet."""
        self._source(step).append(record)

    def settle(self) -> None:
        """Let the job run until everything that it was given is published."""
        self._simulation.let_run(lambda: self._operator.drain(SETTLE_MS))

    def _source(self, step: str) -> list[FedRecord]:
        if step not in self._kept.fed:
            known = ", ".join(f"'{name}'" for name in self._kept.fed)
            raise JobError(f"the job has no step '{step}' that reads.", remedy=f"Feed one of {known}.")
        return self._kept.fed[step]

    def _raise_failure(self) -> None:
        for unit in self._simulation.chaos.units:
            if unit.errors:
                raise unit.errors[0]


@contextmanager
def run_job(job: Job, *, seed: int = 1, parallelism: int = 1) -> Iterator[RunningJob]:
    """Run a job's own steps, without brokers: sources are fed with values, sinks are looked at.

    Time is simulated; nothing sleeps. The seed chooses how the subtasks take turns.

        def test_a_reminder_comes_after_a_minute():
            with run_job(build()) as running:
                running.feed("orders", Event("order-1", Kind.ORDERED, at_ms=0))
                assert running.written("reminders") == []
                running.advance_watermark("orders", 60_000)
                [reminder] = running.written("reminders")
                assert reminder.value == Reminder("order-1", ordered_at_ms=0)

    Raises what the job's functions raise, wrapped as in a real run (UserCodeError, BadRecord).
    """
    running = RunningJob(job, seed=seed, parallelism=parallelism)
    try:
        running.start()
        yield running
    finally:
        running.close()


def _with_fed_ends(graph: JobGraph, *, time_is_told: bool) -> JobGraph:
    """The same job between sources that are fed and sinks that collect."""
    steps: dict[StepName, Step] = {}
    edges: list[Edge] = []
    for name, step in graph.steps.items():
        if step.source is not None:
            steps[name] = _fed(step, time_is_told=time_is_told)
            passes = StepName(f"{name}{_PASSES}")
            steps[passes] = Step(
                name=passes, kind="filter", make=_passes_values, parallelism=step.parallelism
            )
            edges.append(Edge(origin=name, target=passes))
        elif step.sink is not None:
            steps[name] = _collecting(step)
        else:
            steps[name] = step
    for edge in graph.edges:
        from_source = graph.steps[edge.origin].source is not None
        edges.append(replace(edge, origin=StepName(f"{edge.origin}{_PASSES}")) if from_source else edge)
    return replace(graph, steps=steps, edges=tuple(edges))


def _fed(step: Step, *, time_is_told: bool) -> Step:
    assert step.source is not None
    event_time = step.event_time
    if event_time is not None:
        at, disorder_ms = event_time.at, ALL_DISORDER_MS if time_is_told else event_time.disorder_ms

        def at_or_advance(value: Any) -> Any:
            # The watermark is behind the newest record by the disorder.
            return value.time_ms + disorder_ms if isinstance(value, Advance) else at(value)

        event_time = replace(event_time, at=at_or_advance, disorder_ms=disorder_ms)
    return replace(step, source=FedSource(step.name, step.source.value_type()), event_time=event_time)


def _passes_values() -> Filter[Any]:
    return Filter(lambda value: not isinstance(value, Advance))


def _collecting(step: Step) -> Step:
    sink = CollectingSink(step.name)
    return replace(step, sink=sink, make=lambda: OutboxSink(sink))
