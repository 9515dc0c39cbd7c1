"""One attempt of a job, as its coordinator runs it: recover, deploy, decide until it ends or fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from processor.contracts.chance import Chance
from processor.contracts.executor import Executor
from processor.contracts.job_control import Outcome
from processor.contracts.source import Enumerator
from processor.errors import ProcessorError, Unavailable, within_step
from processor.ids import Attempt, Incarnation, Position, SplitId, StepName
from processor.plan.execution import Chain, ExecutionPlan
from processor.plan.layout import Layout
from processor.plan.subtasks import subtasks
from processor.protocol.checkpoint_policy import CheckpointPolicy
from processor.protocol.checkpoint_statistics import CheckpointStatistics
from processor.protocol.coordinator import Coordinator
from processor.protocol.entries import CheckpointEntry
from processor.protocol.messages import AssignSplits, CheckpointKind, Report
from processor.protocol.pacing import PacingPolicy
from processor.protocol.recovered import Recovered
from processor.protocol.recovery_request import FRESH, JobIdentity, StartRequest
from processor.protocol.worker_messages import Deploy
from processor.runtime.attempt_resources import AttemptResources, ProcessParts
from processor.runtime.deployment import source_context, source_steps
from processor.runtime.discovery import Discovery
from processor.runtime.driver import LOG_LANE, Driver, DriverParts, Ended
from processor.runtime.entry_writer import EntryWriter
from processor.runtime.local_worker import LocalWorker
from processor.runtime.participants import Participants
from processor.runtime.recovery_driver import RecoveryDriver, RecoveryParts
from processor.runtime.renaming import renamed
from processor.runtime.start_options import StartOptions
from processor.runtime.worker import TICK_MS, idle_ms
from processor.runtime.workers import Workers, WorkersParts
from processor.settings.model import Settings
from processor.storage.retention import Retention

VISIBLE_TIMEOUT_MS = 30_000
"""How long an end waits until its last output can be read (R17)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptParts(ProcessParts):
    """What outlives an attempt where it is coordinated."""

    layout: Layout
    statistics: CheckpointStatistics
    """Of the checkpoints of all attempts."""
    workers: Callable[[WorkersParts], Workers] = LocalWorker
    """Of an attempt."""

    @property
    def plan(self) -> ExecutionPlan:
        return self.layout.plan


class RunningAttempt:
    """Everything of one attempt. ``open`` recovers and deploys, ``turn`` runs one round, ``close`` frees."""

    def __init__(self, parts: AttemptParts) -> None:
        self._parts = parts
        self._resources = AttemptResources(parts.plan, parts)
        self._next_tick_ms = 0
        self._workers: Workers | None = None
        self._deployed = False
        self._discovery: Discovery | None = None
        self._driver: Driver | None = None
        self._coordinator: Coordinator | None = None
        self._recovery: RecoveryDriver | None = None
        self.recovered: Recovered | None = None

    @property
    def executor(self) -> Executor:
        return self._resources.executor

    @property
    def driver(self) -> Driver | None:
        """None while still recovering."""
        return self._driver if self._deployed else None

    @property
    def coordinator(self) -> Coordinator | None:
        return self._coordinator

    @property
    def attempt(self) -> Attempt | None:
        """Its number, once it has sealed the log."""
        return self._recovery.sealed if self._recovery is not None else None

    def superseded(self) -> bool:
        """Whether a newer attempt has sealed the log. Whatever failed then is no trouble of the job: an attempt
        that slept finds files deleted, producers shut out and places taken, in any order."""
        if self.attempt is None:
            return False
        try:
            return self._resources.log.read_all().newest_attempt > self.attempt
        except ProcessorError:
            return False  # not known: the failure speaks for itself

    # --- opening

    def open(self, options: StartOptions, stop_asked: Callable[[], bool]) -> None:
        """Seal, publish, open, restore. Blocks; ``stop_asked`` ends its waits."""
        parts = self._parts
        discovery = self._make_discovery()
        sinks = self._resources.publishers.check()
        tools = self._resources.publish_tools(self._pausing(stop_asked))
        entries = EntryWriter(
            log=self._resources.log,
            chance=parts.chance,
            clock=parts.clock,
            pause=tools.pause,
            timeout_ms=parts.settings.checkpoint.decision_timeout,
        )
        self._workers = workers = parts.workers(
            WorkersParts(
                plan=parts.plan,
                around=self._resources.around,
                publishers=self._resources.publishers,
                publish_tools=tools,
                report=self._reported,
                failed=self._failed,
                stop_asked=stop_asked,
            )
        )
        self._resources.closing.callback(workers.release)
        self._recovery = recovery = RecoveryDriver(
            RecoveryParts(
                store=parts.store,
                log=self._resources.log,
                entries=entries,
                plan=parts.plan,
                publishers=self._resources.publishers,
                publish_tools=tools,
                discovery=discovery,
                clock=parts.clock,
                chance=parts.chance,
                faults=parts.faults,
                say=parts.say,
                dropped=frozenset(map(StepName, options.dropped_state)),
                renamed=options.renamed,
                claim=options.origin if options.claim else None,
            )
        )
        identity = JobIdentity(job=parts.plan.job, shape=parts.plan.shape, sinks=sinks)
        recovered = recovery.run(identity, _start_request(options))
        self.recovered = recovered
        participants = Participants(discovery, parts.plan.hooks(), executor=self.executor, log=parts.say)
        restored = replace(recovered, entry=renamed(recovered.entry, options.renamed))
        participants.restore(restored.entry)
        parts.statistics.restored(recovered.attempt, recovered.checkpoint, parts.clock.monotonic_ms())
        self._deploy(recovered, restored.entry, entries, workers, participants)

    def _pausing(self, stop_asked: Callable[[], bool]) -> Callable[[int], None]:
        def pause(pause_ms: int) -> None:
            if not self._deployed and stop_asked():
                raise Unavailable("asked to stop while still recovering")
            self.executor.pause(pause_ms)

        return pause

    def _make_discovery(self) -> Discovery:
        parts = self._parts
        enumerators: dict[StepName, tuple[Enumerator, Chain]] = {}
        for name, step, chain in source_steps(parts.plan):
            assert step.source is not None
            context = source_context(parts.plan.job, step, self._resources.around)
            with within_step(name):
                step.source.check(context)
            enumerators[name] = (step.source.enumerator(context), chain)
        discovery = Discovery(
            enumerators,
            executor=self.executor,
            interval_ms=parts.settings.runtime.discovery_interval,
            found=self._found_splits,
            log=parts.say,
        )
        self._resources.connections.callback(discovery.close)
        self._discovery = discovery
        return discovery

    def _deploy(
        self,
        recovered: Recovered,
        restored: CheckpointEntry,
        entries: EntryWriter,
        workers: Workers,
        participants: Participants,
    ) -> None:
        """``restored`` is the checkpoint, as the job calls its steps now."""
        parts, discovery = self._parts, self._discovery
        assert discovery is not None
        coordinator = Coordinator(
            attempt=recovered.attempt,
            subtasks=frozenset(subtasks(parts.plan)),
            recovered=recovered,
            policy=checkpoint_policy(parts.settings, parts.chance),
            statistics=parts.statistics,
        )
        retention = self._retention(recovered.attempt)
        say = parts.say.bind(attempt=recovered.attempt)
        driver = Driver(
            coordinator,
            recovered,
            DriverParts(
                job=parts.plan.job,
                shape=parts.plan.shape,
                store=parts.store,
                log=self._resources.log,
                entries=entries,
                retention=retention,
                executor=self.executor,
                clock=parts.clock,
                chance=parts.chance,
                faults=parts.faults,
                send=workers.send,
                participants=participants,
                completed=discovery.published,
                marker_refresh_ms=parts.settings.checkpoint.marker_refresh,
                say=say,
            ),
        )
        self._resources.closing.callback(driver.close)
        self._coordinator, self._driver = coordinator, driver
        deploy = Deploy(
            attempt=recovered.attempt,
            incarnation=recovered.incarnation,
            entry=restored,
            unconfirmed=discovery.unconfirmed(),
            parallelism=parts.layout.parallelism,
            addresses=workers.addresses(),
        )
        workers.deploy(deploy)
        self._deployed = True
        self.executor.submit(LOG_LANE, retention.sweep, lambda _: None, driver.fail)
        discovery.deployed()

    def _retention(self, attempt: Attempt) -> Retention:
        parts = self._parts
        return Retention(
            files=parts.store.files,
            log=self._resources.log,
            view=self._resources.log.read_all(),
            attempt=attempt,
            retained=parts.settings.checkpoint.retained,
            faults=parts.faults,
        )

    # --- running

    def turn(self) -> Ended | None:
        """One round: deliver, tick, step; waits a moment when there is nothing to do. Raises what failed."""
        driver, workers, discovery = self._driver, self._workers, self._discovery
        assert driver is not None
        assert workers is not None
        assert discovery is not None
        worked = self.executor.deliver()
        now_ms = self._parts.clock.monotonic_ms()
        if now_ms >= self._next_tick_ms:
            self._next_tick_ms = now_ms + TICK_MS
            driver.tick(now_ms)
            discovery.tick(now_ms)
            workers.tick(now_ms)
        worked = workers.turn() or worked
        if driver.failure is not None:
            raise driver.failure
        if driver.ended is not None:
            return driver.ended
        if not worked:
            longest_ms = self._parts.settings.runtime.idle_wait
            self.executor.wait(idle_ms(longest_ms, workers.next_processing_time_ms(), self._parts.clock))
        return None

    def request(
        self, kind: CheckpointKind, savepoint: str, answer: Callable[[Outcome], None], *, native: bool = False
    ) -> None:
        """Ask for a checkpoint, in the attempt's thread."""
        driver = self.driver
        if driver is None:
            answer(Outcome(refused="the job is still recovering"))
        else:
            driver.request(kind, savepoint, answer, native=native)

    def grown(self, now_ms: int) -> bool:
        """Whether more workers are there than the attempt has."""
        return self._deployed and self._workers is not None and self._workers.grown(now_ms)

    def wait_visible(self) -> bool:
        """Before the job ends: whether its last output can be read (R17)."""
        return self._workers is None or self._workers.wait_visible(VISIBLE_TIMEOUT_MS)

    def _failed(self, error: BaseException) -> None:
        if self._driver is None:
            raise error
        self._driver.fail(error)

    def _reported(self, report: Report) -> None:
        if self._driver is not None:
            self._driver.report(report)

    def _found_splits(self, step: StepName, splits: Mapping[SplitId, Position]) -> None:
        assert self.recovered is not None
        assert self._workers is not None
        self._workers.send(AssignSplits(attempt=self.recovered.attempt, step=step, splits=splits))

    def close(self) -> None:
        """Free everything; also after a failure half-way. What failed in closing is raised last."""
        self._resources.close()


def checkpoint_policy(settings: Settings, chance: Chance) -> CheckpointPolicy:
    """How an attempt paces its checkpoints; the wait for the first is drawn (A3)."""
    checkpoint = settings.checkpoint
    first_ms = chance.below(min(checkpoint.initial_delay_max, checkpoint.interval) + 1)
    return CheckpointPolicy(
        pacing=PacingPolicy(
            interval_ms=checkpoint.interval,
            min_pause_ms=checkpoint.min_pause,
            initial_delay_ms=first_ms,
            interval_during_backlog_ms=checkpoint.interval_during_backlog,
        ),
        timeout_ms=checkpoint.timeout,
        decision_timeout_ms=checkpoint.decision_timeout,
        publish_timeout_ms=checkpoint.publish_timeout,
        tolerated_failures=checkpoint.tolerated_failures,
        max_concurrent=checkpoint.max_concurrent,
    )


def _start_request(options: StartOptions) -> StartRequest:
    return StartRequest(
        origin=FRESH if options.fresh else options.origin,
        token=options.request,
        take_over=Incarnation(options.take_over) if options.take_over is not None else None,
        accept_duplicates=options.accept_duplicates,
    )
