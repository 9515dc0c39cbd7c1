"""History run again: a job from a savepoint to an end, into other targets, and the outcome compared with what came
then."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from processor.audit.outcome import Compared, compared
from processor.contracts.sink import SinkContext
from processor.contracts.topic_reader import TopicChunk, TopicReader
from processor.errors import JobError
from processor.ids import JobName, SplitId, StepName
from processor.plan.graph import JobGraph, Step
from processor.plugins import Plugins
from processor.protocol.entries import CheckpointEntry
from processor.runtime.system import SystemClock
from processor.settings.model import Settings
from processor.storage.decision_log import DecisionLog
from processor.storage.job_store import open_job_store
from processor.storage.places import places_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedSink:
    """Where a sink wrote, and where it writes now."""

    step: Step
    then: frozenset[str]
    now: frozenset[str]


class Replay:
    """A job, as its author wrote it, over settings that send its output elsewhere."""

    def __init__(
        self, graph: JobGraph, settings: Settings, targets: Mapping[str, str], plugins: Plugins
    ) -> None:
        """``targets``: from the name that the job writes to, to the one that is meant. Raises SettingsError."""
        self._graph = graph
        self._then = settings
        self._plugins = plugins
        sections = dict(settings.plugins)
        for name in plugins.names:
            replays = plugins.get(name).replays()
            if replays is not None:
                sections[name] = replays.redirected(sections[name], targets)
        self.settings = replace(settings, plugins=sections)

    @property
    def sources(self) -> tuple[StepName, ...]:
        """Steps that read."""
        return tuple(step.name for step in self._graph.steps.values() if step.source is not None)

    def sinks(self, read: frozenset[str]) -> tuple[ReplayedSink, ...]:
        """Of every sink where it wrote and where it writes now. Raises JobError unless all of it goes elsewhere, and
        not to what is ``read``; and what is wrong with the targets."""
        found = tuple(
            ReplayedSink(step=step, then=_targets(step, self._then), now=_targets(step, self.settings))
            for step in self._graph.steps.values()
            if step.sink is not None
        )
        taken = read.union(*(sink.then for sink in found))
        for sink in found:
            both = sorted(sink.now & taken)
            if both:
                raise JobError(
                    f"step '{sink.step.name}' would write into '{both[0]}', which the job itself reads or writes.",
                    remedy="Send every topic that the job writes to another one: --topic-map OUT=OTHER.",
                )
        return found

    def ends(self, step: StepName, splits: Sequence[SplitId], time_ms: int | None) -> Mapping[SplitId, int]:
        """Where the splits of a source stand, now or at a time. Raises JobError for a source nobody can ask."""
        at = self._graph.steps.get(step)
        source = None if at is None else at.source
        for name in self._plugins.names:
            replays = self._plugins.get(name).replays()
            found = (
                None if replays is None else replays.ends(self._then.plugins[name], source, splits, time_ms)
            )
            if found is not None:
                return found
        raise JobError(
            f"nobody can tell where what step '{step}' reads stood at that time.",
            remedy="Give --until offsets or a savepoint.",
        )

    def compare(self, sink: ReplayedSink) -> Compared:
        """What was written now with what was written then. Raises JobError, and what the readers raise."""
        if len(sink.then) != 1 or len(sink.now) != 1:
            raise JobError(f"step '{sink.step.name}' writes to several targets, which cannot be compared.")
        with (
            self._read(sink, self._then, sink.then) as then,
            self._read(sink, self.settings, sink.now) as now,
        ):
            return compared(then, now)

    @contextmanager
    def _read(
        self, sink: ReplayedSink, settings: Settings, targets: frozenset[str]
    ) -> Iterator[Iterator[TopicChunk]]:
        reader = self._reader(sink.step, settings)
        try:
            splits = [split for target in sorted(targets) for split in reader.splits(target)]
            yield reader.read(reader.committed_ends(splits))
        finally:
            reader.close()

    def _reader(self, step: Step, settings: Settings) -> TopicReader:
        for name in self._plugins.names:
            reader = self._plugins.get(name).topic_reader(settings.plugins[name], step.sink)
            if reader is not None:
                return reader
        raise JobError(f"no installed plugin can read what step '{step.name}' writes.")


def _targets(step: Step, settings: Settings) -> frozenset[str]:
    assert step.sink is not None
    context = SinkContext(
        job=JobName("replay"),
        step=step.name,
        settings=settings.plugins,
        policy=step.policy,
        clock=SystemClock(),
        count=_nobody_counts,
    )
    return frozenset(step.sink.check(context).targets)


def _nobody_counts(name: str, more: int) -> None:
    return None


def newest_checkpoint(settings: Settings, job: JobName) -> CheckpointEntry | None:
    """Of a job that may have none. Raises SettingsError, DamagedFile, Unavailable."""
    store = open_job_store(places_of(settings), job, token=secrets.token_hex, make=False)
    return DecisionLog(store.log).read_all().newest()


def read_targets(written: Sequence[str]) -> Mapping[str, str]:
    """From ``OUT=OTHER`` each. Raises JobError."""
    found: dict[str, str] = {}
    for each in written:
        name, equals, other = each.partition("=")
        if not (name and equals and other) or found.get(name, other) != other:
            raise JobError(
                f"--topic-map {each} does not say what is to be written where.",
                remedy="Write OUT=OTHER, once for each topic that the job writes.",
            )
        found[name] = other
    return found
