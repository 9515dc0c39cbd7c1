"""The person in front of a simulated job: starts it, waits, stops it, starts it again. Never fails, never sleeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from processor.contracts.job_control import JobControl, Outcome
from processor.ids import SplitId
from processor.protocol.entries import CheckpointEntry
from processor.runtime.start_options import StartOptions
from processor.simulation.claims import note_rescaling
from processor.simulation.process import SimulatedProcess
from processor.simulation.unit import Unit
from processor.simulation.world import US_PER_MS

if TYPE_CHECKING:
    from processor.plan.graph import JobGraph
    from processor.settings.model import StateBackendName
    from processor.simulation.daemon import Daemon
    from processor.simulation.simulation import Simulation

LOOK_MS: Final = 50
"""How often the operator looks."""

SETTLE_MS: Final = 1_500
"""After everything was read and published: for timers that are still due."""

QUIET_MS: Final = 3_000
"""After everything has ended: for markers on their way."""

ASK_AGAIN_MS: Final = 400

RESCALE_TRIES: Final = 3
"""So often is a running job asked for another parallelism, while it refuses or dies."""


class Operator:
    """What a script of a case can do. Everything waits in simulated time."""

    def __init__(self, simulation: Simulation, watch: Callable[[], None] = lambda: None) -> None:
        """``watch`` is called at every look; it may raise."""
        self._simulation = simulation
        self._world = simulation.world
        self._watch = watch
        self._keeps_running = False

    # --- waiting

    def wait(self, wait_ms: int) -> None:
        self._world.wait_us(wait_ms * US_PER_MS)

    def until(self, done: Callable[[], bool]) -> None:
        self._watch()
        while not done():
            if self._keeps_running and self._all_over():
                self._simulation.start_another()
            self.wait(LOOK_MS)
            self._watch()

    def after_faults(self) -> None:
        """Wait until faults have stopped and all input is written."""
        simulation = self._simulation
        self.until(lambda: not simulation.injection.active and simulation.fed)

    # --- the job

    def start(
        self,
        options: StartOptions | None = None,
        *,
        parallelism: int | None = None,
        graph: JobGraph | None = None,
        backend: StateBackendName | None = None,
    ) -> None:
        """Start a daemon. The one before has ended. ``graph``: the job's steps in another layout than the case's."""
        self._simulation.start_unit(options or StartOptions(), parallelism, graph=graph, backend=backend)

    def drain(self, settle_ms: int = SETTLE_MS) -> None:
        """Wait until all input is read and its output is published, and timers have had their time: all of it in
        one attempt, for while one ends and another begins no timer fires."""
        while True:
            self.until(self._read_and_published)
            attempt = self._newest_attempt()
            self.wait(settle_ms)
            # What timers have put out since then is in a checkpoint that begins now or later.
            self._until_published_beyond(self._published_id() + 1)
            if self._newest_attempt() == attempt:
                return

    def _until_published_beyond(self, checkpoint: int) -> None:
        self.until(lambda: self._published_id() > checkpoint and self._read_and_published())

    def stop(self) -> None:
        """Stop every unit; again, with a new one, while somebody did not end well: what that one had decided
        may not be published."""
        self._keeps_running = False
        while True:
            units = [unit for unit in self._simulation.chaos.units if not unit.over]
            for unit in units:
                unit.retire()
                if unit.daemon is not None:
                    unit.daemon.signals.ask()
            self.ended()
            if all(unit.exit_code == 0 for unit in units):
                return
            self._simulation.start_another()
            self.until(lambda: self._newest() is not None)

    def ended(self) -> None:
        """Wait until no unit runs; what ends from now on is not started again, unless it fails."""
        self.until(lambda: all(unit.over for unit in self._simulation.chaos.units))

    def stop_with_savepoint(self, path: str, *, native: bool = False) -> str:
        """Ask until a savepoint is written and the job has stopped; returns where it is.

        There is one process then, and nobody starts another: what a second one published behind the savepoint
        could not be taken back.
        """
        simulation = self._simulation
        simulation.chaos.more_units = False
        self.until(self._one_unit)
        [unit] = [unit for unit in simulation.chaos.units if not unit.over]
        tries = 0
        while True:
            self.wait(ASK_AGAIN_MS)
            if unit.over:  # stopped, but its savepoint could not be written (R24): once more
                simulation.start_another()
                unit = simulation.chaos.units[-1]
            daemon = unit.daemon
            if daemon is None or daemon.published is None or daemon.control is None:
                continue
            tries += 1
            answers: list[Outcome] = []
            process = daemon.process

            def answered(outcome: Outcome, unit: Unit = unit, answers: list[Outcome] = answers) -> None:
                if not outcome.refused:
                    unit.retire()  # at once: it is not to be started again if it is killed on its way out
                answers.append(outcome)

            daemon.control.stop(f"{path}-{tries}", answered, native=native)
            self._answered_or_dead(answers, process)
            if answers and not answers[0].refused:
                break
        self.until(lambda: unit.over)
        simulation.chaos.more_units = True
        return f"{path}-{tries}"

    def stop_with_drain(self) -> None:
        """Ask whoever runs to drain, until nobody does: once it is decided, a further start ends by itself too.
        After the first refusal the job has its time: it runs on as if nobody had asked (R24)."""
        patient = True
        while not self._all_over():
            self.wait(ASK_AGAIN_MS)
            for daemon, control in self._askable():
                answers: list[Outcome] = []
                control.stop(None, answers.append, drain=True)
                self._answered_or_dead(answers, daemon.process)
                if patient and answers and answers[0].refused:
                    patient = False
                    self.until(lambda: self._all_over() or self._read_and_published())

    def rescale(self, parallelism: int) -> None:
        """Ask whoever runs to go on at another parallelism. Whether it does is told; if it is refused, or its process
        dies, it is asked a few times more, and the job goes on as it may."""
        for _ in range(RESCALE_TRIES):
            self.wait(ASK_AGAIN_MS)
            for daemon, control in self._askable():
                answers: list[Outcome] = []

                def answered(
                    outcome: Outcome, daemon: Daemon = daemon, answers: list[Outcome] = answers
                ) -> None:
                    note_rescaling(self._simulation, daemon, parallelism, outcome)
                    answers.append(outcome)

                control.rescale(parallelism, answered)
                self._answered_or_dead(answers, daemon.process)
                if answers and not answers[0].refused:
                    return

    def _askable(self) -> Iterator[tuple[Daemon, JobControl]]:
        """Daemons that run and know what is published, each looked at when its turn comes."""
        for unit in self._simulation.chaos.units:
            daemon = unit.daemon
            if unit.over or daemon is None or daemon.published is None or daemon.control is None:
                continue
            yield daemon, daemon.control

    def _all_over(self) -> bool:
        return all(unit.over for unit in self._simulation.chaos.units)

    def replace(self, parallelism: int, *, within_ms: int) -> None:
        """Put new processes in the place of all that run, as who has lost touch with them: some of those are only
        asleep. At a moment when one of them publishes, if there is such a one in time."""
        simulation = self._simulation
        deadline_ms = self._world.now_ms + within_ms
        while self._world.now_ms < deadline_ms and not self._one_publishes():
            self.wait(1)
        simulation.chaos.set_aside()
        self.start(parallelism=parallelism)

    def keep_running(self) -> None:
        """From now on start another process whenever none is left: one that had been replaced may wake, shut out
        those that replaced it, and die."""
        self._keeps_running = True

    def _one_publishes(self) -> bool:
        daemons = [unit.daemon for unit in self._simulation.chaos.units]
        return any(daemon is not None and daemon.publishing for daemon in daemons)

    def kill_and_rescale(self, parallelism: int) -> None:
        """Kill what runs, and start it with another parallelism from where the log is: no savepoint in between,
        and with it whatever was in flight."""
        for unit in self._simulation.chaos.units:
            unit.retire()
            if unit.daemon is not None:
                unit.daemon.process.kill()
        self.ended()
        self.start(parallelism=parallelism)

    def _answered_or_dead(self, answers: Sequence[Outcome], process: SimulatedProcess) -> None:
        self.until(lambda: bool(answers) or not process.alive)

    def _one_unit(self) -> bool:
        return sum(not unit.over for unit in self._simulation.chaos.units) == 1

    def quiet(self) -> None:
        """Wait until everything on its way has arrived."""
        self.wait(QUIET_MS)

    # --- what is published

    def _newest(self) -> CheckpointEntry | None:
        """The newest published checkpoint that a process which runs knows of."""
        known = [
            unit.daemon.published
            for unit in self._simulation.chaos.units
            if unit.daemon is not None and unit.daemon.published is not None
        ]
        return max(known, key=lambda entry: entry.place, default=None)

    def _published_id(self) -> int:
        entry = self._newest()
        return entry.checkpoint if entry is not None else 0

    def _newest_attempt(self) -> int:
        entry = self._newest()
        return entry.attempt if entry is not None else 0

    def _read_and_published(self) -> bool:
        entry = self._newest()
        if entry is None or entry.records_in_flight:
            return False
        reached: Mapping[SplitId, int] = {
            split: position.next
            for subtask in entry.subtasks
            for source in subtask.sources
            for split, position in source.positions.items()
        }
        return all(reached.get(split, -1) >= end for split, end in self._simulation.input_ends().items())


def run_and_stop(operator: Operator) -> None:
    """Start, let things go wrong, wait until all is out, stop."""
    operator.start()
    operator.after_faults()
    operator.drain()
    operator.stop()
    operator.quiet()


def run_and_drain(
    *, before_ms: int | None, rescaled: Sequence[tuple[int, int]] = ()
) -> Callable[[Operator], None]:
    """A script: drain the job after that time, or once all input is read; then start it again, to no effect. Before
    that, for each of ``rescaled``: after so many ms kill everything and start it with that parallelism."""

    def script(operator: Operator) -> None:
        operator.start()
        for wait_ms, parallelism in rescaled:
            operator.wait(wait_ms)
            operator.kill_and_rescale(parallelism)
        if before_ms is None:
            operator.after_faults()
            operator.drain()
        else:
            operator.wait(before_ms)
        operator.stop_with_drain()
        operator.start()
        operator.ended()
        operator.quiet()

    return script


def run_to_the_end(operator: Operator) -> None:
    """Of a bounded job: start, and wait until it has ended by itself."""
    operator.start()
    operator.ended()
    operator.quiet()


def run_and_shrink(parallelism: Sequence[int], *, before_ms: Sequence[int]) -> Callable[[Operator], None]:
    """A script: start with the first parallelism, be replaced by each of the others after that time."""
    first, *others = parallelism

    def script(operator: Operator) -> None:
        operator.start(parallelism=first)
        for each, after_ms in zip(others, before_ms, strict=True):
            operator.wait(after_ms)
            operator.replace(each, within_ms=after_ms)
        operator.after_faults()
        operator.keep_running()
        operator.drain()
        operator.stop()
        operator.quiet()

    return script


def run_stop_and_restore(path: str, *, before_ms: int, parallelism: int) -> Callable[[Operator], None]:
    """A script: stop with a savepoint after that time, start from it with another parallelism."""

    def script(operator: Operator) -> None:
        operator.start()
        operator.wait(before_ms)
        origin = operator.stop_with_savepoint(path)
        operator.start(StartOptions(origin=origin), parallelism=parallelism)
        operator.after_faults()
        operator.drain()
        operator.stop()
        operator.quiet()

    return script


def run_kill_and_rescale(
    *, before_ms: Sequence[int], parallelisms: Sequence[int]
) -> Callable[[Operator], None]:
    """A script: after each of those times, kill everything and start it with the next parallelism."""

    def script(operator: Operator) -> None:
        operator.start()
        for wait_ms, parallelism in zip(before_ms, parallelisms, strict=True):
            operator.wait(wait_ms)
            operator.kill_and_rescale(parallelism)
        operator.after_faults()
        operator.drain()
        operator.stop()
        operator.quiet()

    return script


def run_and_rescale(*, before_ms: Sequence[int], parallelisms: Sequence[int]) -> Callable[[Operator], None]:
    """A script: after each of those times, ask the running job to go on with the next parallelism."""

    def script(operator: Operator) -> None:
        operator.start()
        for wait_ms, parallelism in zip(before_ms, parallelisms, strict=True):
            operator.wait(wait_ms)
            operator.rescale(parallelism)
        operator.after_faults()
        operator.drain()
        operator.stop()
        operator.quiet()

    return script
