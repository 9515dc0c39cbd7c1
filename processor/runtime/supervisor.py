"""Runs attempts one after another: what fails is followed by the next, as its error's response says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from processor.contracts.job_control import Outcome
from processor.errors import Fenced, JobError, ProcessorError, Response
from processor.ids import Attempt, CheckpointId
from processor.plan.layout import Layout
from processor.protocol.entries import CheckpointEntry
from processor.protocol.failure_history import AttemptFailure, FailureHistory, failure_of
from processor.protocol.job_status import JobState, JobStatus
from processor.protocol.messages import CheckpointKind
from processor.protocol.restart_strategy import DRAWN_BELOW, AttemptEnd, RestartStrategy
from processor.runtime.attempt import AttemptParts, RunningAttempt
from processor.runtime.control import Asked, Control
from processor.runtime.driver import Ended
from processor.runtime.progress import ProgressTeller
from processor.runtime.restart_policy import restart_policy
from processor.runtime.start_options import StartOptions

EXIT_GRACE_PASSED = 75
"""Asked to stop, but the last checkpoint was not published within the grace period. Nothing is lost."""

EXIT_NOT_READABLE = 75
"""All is published, but the last output could not be read in time (R17). The next start looks again."""

STOP_AGAIN_MS = 500
"""Between two last checkpoints that a signal asks for, when one could not be taken."""

_RESTARTED = (Response.RESTART_FROM_CHECKPOINT, Response.RETRY_IN_PLACE, Response.DEAD_LETTER)


class AskedToStop(Protocol):
    """Whether somebody wants the process to end (``runtime.signals``)."""

    @property
    def asked(self) -> bool: ...

    def wait(self, timeout_ms: int) -> None:
        """Wait that long, or until somebody asks, or has called ``look_up`` since the last wait."""
        ...

    def look_up(self) -> None:
        """From any thread: end the wait, the next one if there is none now."""
        ...


class Listening(Protocol):
    """How a running job can be reached (``service.control_socket``)."""

    def start(self) -> None:
        """Raises OSError when it cannot be."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failed:
    error: BaseException
    failure: AttemptFailure
    """What is kept of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rescaling:
    """The job is to go on like this."""

    layout: Layout
    answer: Callable[[Outcome], None]


class Supervisor:
    """One job in this process, from its first attempt to its end."""

    def __init__(self, parts: AttemptParts, state: JobState, control: Control) -> None:
        self._parts = parts
        self._say = parts.say
        self._state = state
        self._control = control
        self._strategy = RestartStrategy(restart_policy(parts.settings.runtime.restart))
        self._failures = FailureHistory()
        self._stop_deadline_ms: int | None = None
        self._stop_again_ms = 0
        self._attempts: set[Attempt] = set()
        """The attempts of this run that have failed: one may have decided to stop (R24)."""
        self._socket_started = False
        self._rescaling: _Rescaling | None = None
        """From when it is asked for until the job runs at the new parallelism, or is known not to."""

    def wake(self) -> None:
        """From any thread: look up from waiting."""
        attempt = self._control.attempt
        if attempt is not None:
            attempt.executor.wake()

    def run(self, options: StartOptions, signals: AskedToStop, socket: Listening) -> int:
        """All attempts. Returns the exit code, or raises the error that ended the job."""
        # A pause between attempts may be long; whoever asks for a stop meanwhile does not sit it out.
        self._control.stop_asked = signals.look_up
        while True:
            self._state.to(JobStatus.RECOVERING)
            outcome = self._attempt(options, signals, socket)
            if isinstance(outcome, Layout):
                self._state.to(JobStatus.RESTARTING)
                self._parts = replace(self._parts, layout=outcome)
                continue
            if not isinstance(outcome, _Failed):
                return outcome
            if isinstance(outcome.error, ProcessorError) and outcome.error.response is Response.STOP_QUIETLY:
                self._state.to(JobStatus.FENCED)
                self._say.info("stopped: a newer attempt of this job runs", why=str(outcome.error))
                return 0
            failure = self._remembered(outcome.failure)
            self._state.to(JobStatus.FAILING)
            if signals.asked:
                self._state.to(JobStatus.STOPPED)
                self._say.warning("ended while stopping; the next start goes on from the newest checkpoint")
                return EXIT_GRACE_PASSED
            delay_ms = self._delay(failure)
            if delay_ms is None:
                self._state.to(JobStatus.FAILED)
                raise outcome.error
            self._control.restarts = self._strategy.restarts
            self._state.to(JobStatus.RESTARTING)
            self._say.warning("the attempt failed; starting another", error=outcome.error, delay_ms=delay_ms)
            if failure.again:
                self._say.warning(failure.outlook(), attempt=failure.attempt, checkpoint=failure.checkpoint)
            signals.wait(delay_ms)
            # A rewind was done by the first attempt, or is done again by its token (R3).

    def _remembered(self, failure: AttemptFailure) -> AttemptFailure:
        if failure.attempt is not None:
            self._attempts.add(failure.attempt)
        told = self._failures.add(failure)
        self._control.failures = self._failures.newest_first()
        return told

    def _delay(self, failure: AttemptFailure) -> int | None:
        if failure.response not in _RESTARTED:
            return None
        return self._strategy.failed(
            AttemptEnd(
                now_ms=self._parts.clock.monotonic_ms(),
                ran_ms=failure.ran_ms,
                progressed=failure.progressed,
                drawn=self._parts.chance.below(DRAWN_BELOW),
            )
        )

    def _attempt(
        self, options: StartOptions, signals: AskedToStop, socket: Listening
    ) -> int | Layout | _Failed:
        """The exit code, the layout with which the job goes on at once, or what failed."""
        attempt = RunningAttempt(self._parts)
        started_ms = self._parts.clock.monotonic_ms()
        try:
            self._control.attempt = attempt
            attempt.open(options, lambda: signals.asked)
            if self._stop_decided(attempt):
                return self._end(attempt, Ended(finished=self._all_read(attempt)))
            self._running(attempt, socket)
            ended = self._loop(attempt, signals)
            rescaling = self._rescaling
            if ended is not None and rescaling is not None and not signals.asked:
                return rescaling.layout
            return self._end(attempt, ended)
        except BaseException as error:
            return self._failed(attempt, _as_fenced(error) if attempt.superseded() else error, started_ms)
        finally:
            self._control.attempt = self._control.turned_ms = None
            self._close(attempt)

    def _failed(self, attempt: RunningAttempt, error: BaseException, started_ms: int) -> _Failed:
        clock, driver, recovered = self._parts.clock, attempt.driver, attempt.recovered
        failure = failure_of(
            error,
            at_ms=clock.wall_ms(),
            attempt=attempt.attempt,
            checkpoint=recovered.checkpoint if recovered is not None else None,
            progressed=driver is not None and driver.checkpoints > 0,
            ran_ms=clock.monotonic_ms() - started_ms,
        )
        return _Failed(error=error, failure=failure)

    def _stop_decided(self, attempt: RunningAttempt) -> bool:
        """Whether an attempt before, of this same run, has decided to stop: that is published now, and all that
        is left is to end (R24). A start of its own runs on from there, but not from a drained one."""
        assert attempt.recovered is not None
        entry = attempt.recovered.entry
        return entry.drained or (entry.stop and entry.attempt in self._attempts)

    def _all_read(self, attempt: RunningAttempt) -> bool:
        assert attempt.recovered is not None
        return all(subtask.finished for subtask in attempt.recovered.entry.subtasks)

    def _running(self, attempt: RunningAttempt, socket: Listening) -> None:
        recovered = attempt.recovered
        assert recovered is not None
        self._state.to(JobStatus.RUNNING)
        self._say.info("running from checkpoint", attempt=recovered.attempt, checkpoint=recovered.checkpoint)
        self._rescaled(recovered.checkpoint)
        if not self._socket_started:
            self._socket_started = True
            try:
                socket.start()
            except OSError as error:
                self._say.warning("the job can't be reached by 'processor status' and the like", error=error)

    def _loop(self, attempt: RunningAttempt, signals: AskedToStop) -> Ended | None:
        """Turns until the attempt has ended; None when the grace period has passed."""
        progress = ProgressTeller(self._parts, attempt)
        clock = self._parts.clock
        while True:
            if signals.asked:
                if self._stop_deadline_ms is None:
                    grace_ms = self._parts.settings.runtime.grace_period
                    self._stop_deadline_ms = clock.monotonic_ms() + grace_ms
                due = clock.monotonic_ms() >= self._stop_again_ms
                if (
                    due and self._state.status is JobStatus.RUNNING
                ):  # again, when a last checkpoint has failed
                    self._stop_again_ms = clock.monotonic_ms() + STOP_AGAIN_MS
                    self._ask_stop(attempt, _STOP)
            while (asked := self._control.take()) is not None:
                if asked.kind.stops:
                    self._ask_stop(attempt, asked)
                else:
                    attempt.request(asked.kind, asked.directory, asked.answer, native=asked.native)
            ended = attempt.turn()
            if ended is not None:
                return ended
            now_ms = self._control.turned_ms = clock.monotonic_ms()
            if self._state.status is JobStatus.RUNNING and attempt.grown(now_ms):
                self._say.info("more workers have come: the job is dealt out to all of them")
                self._ask_stop(attempt, _DEAL_OUT)
            if self._stop_deadline_ms is not None and now_ms >= self._stop_deadline_ms:
                return None
            progress.turn(now_ms)

    def _rescaled(self, checkpoint: CheckpointId) -> None:
        """The job runs: tell who has asked for another parallelism, whether it has it."""
        rescaling, self._rescaling = self._rescaling, None
        if rescaling is None:
            return
        if self._parts.layout is rescaling.layout:
            self._say.info("rescaled", parallelism=rescaling.layout.parallelism)
            rescaling.answer(Outcome(checkpoint=checkpoint))
        else:  # the attempt that was to be stopped has failed before that was decided
            rescaling.answer(Outcome(refused="the job had to be restarted meanwhile, as it was; ask again"))

    def _ask_stop(self, attempt: RunningAttempt, asked: Asked) -> None:
        if self._state.status is JobStatus.STOPPING:
            asked.answer(Outcome(refused="the job is stopping already"))
            return
        rescaling = None
        if asked.kind is CheckpointKind.RESCALE:
            layout = self._parts.layout
            try:
                if asked.parallelism is not None:
                    layout = layout.rescaled(asked.parallelism)
            except JobError as error:
                asked.answer(Outcome(refused=str(error)))
                return
            rescaling = _Rescaling(layout=layout, answer=asked.answer)
        self._state.to(JobStatus.STOPPING)
        self._say.info(_STOPPING[asked.kind])
        self._rescaling = rescaling

        def answered(outcome: Outcome) -> None:
            # With a checkpoint it is decided, and only the copy of the savepoint is missing.
            failed = outcome.refused and outcome.checkpoint is None
            if failed and self._state.status is JobStatus.STOPPING:
                # It failed before its decision: sources go on (R24), unless a signal asked.
                self._say.warning("could not stop", why=outcome.refused)
                self._state.to(JobStatus.RUNNING)
            if rescaling is not None:
                if not failed:
                    return  # answered once the job runs again
                self._rescaling = None
            asked.answer(outcome)

        attempt.request(asked.kind, asked.directory, answered, native=asked.native)

    def _end(self, attempt: RunningAttempt, ended: Ended | None) -> int:
        if ended is None:
            if self._state.status is JobStatus.RUNNING:  # between two tries to stop
                self._state.to(JobStatus.STOPPING)
            self._state.to(JobStatus.STOPPED)
            self._say.warning(
                "the grace period has passed before the last checkpoint was published; nothing is lost, the next "
                "start goes on from the newest decided one"
            )
            return EXIT_GRACE_PASSED
        readable = attempt.wait_visible()
        if not readable:
            self._say.warning(
                "all is published, but the last output can't be read yet: a transaction is open before its end. "
                "Nothing is lost; the next start looks again"
            )
        self._state.to(JobStatus.FINISHED if ended.finished else JobStatus.STOPPED)
        driver = attempt.driver
        assert driver is not None
        self._say.info(_how_it_ended(driver.published, ended), checkpoint=driver.published.checkpoint)
        return 0 if readable else EXIT_NOT_READABLE

    def _close(self, attempt: RunningAttempt) -> None:
        try:
            attempt.close()
        except Exception as error:
            # What could not be closed is of an attempt that is over; the next one fences it.
            self._say.warning("could not close everything of the attempt", error=error)


def _how_it_ended(entry: CheckpointEntry, ended: Ended) -> str:
    if entry.drained:
        return "finished: it was drained, and goes on only by --fresh or --from an earlier savepoint"
    return "finished: all input is read" if ended.finished else "stopped"


def _as_fenced(error: BaseException) -> Fenced:
    """Whatever stopped an attempt that a newer one has followed."""
    if isinstance(error, Fenced):
        return error
    fenced = Fenced(f"a newer attempt has sealed the decision log ({type(error).__name__}: {error})")
    fenced.__cause__ = error
    return fenced


def _nobody(outcome: Outcome) -> None:
    """A signal has nobody to answer to; the log says it."""


_STOPPING: Mapping[CheckpointKind, str] = {
    CheckpointKind.STOP: "stopping: taking a last checkpoint",
    CheckpointKind.DRAIN: "draining: sources end, then a last checkpoint",
    CheckpointKind.RESCALE: "rescaling: taking a checkpoint to go on from at another parallelism",
}

_STOP = Asked(kind=CheckpointKind.STOP, answer=_nobody)
"""What a signal asks for."""

_DEAL_OUT = Asked(kind=CheckpointKind.RESCALE, answer=_nobody)
"""At the parallelism it has, for other workers."""
