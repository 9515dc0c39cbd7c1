"""The workers of one attempt when each is a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from processor.errors import AttemptFailed, Elsewhere, JobError, ProcessorError, SettingsError, Unavailable
from processor.ids import WorkerId
from processor.invariant import invariant
from processor.protocol.liveness import Hangs, Liveness, LivenessPolicy, Lost, Stands
from processor.protocol.messages import Order, Report
from processor.protocol.worker_messages import (
    AwaitVisible,
    Deploy,
    Deployed,
    Heartbeat,
    Joined,
    Release,
    Released,
    Stack,
    TellStack,
    Visible,
    WorkerFailed,
)
from processor.runtime.counts import snapshot_of
from processor.runtime.failure_form import error_of
from processor.runtime.worker_pool import Gone, WorkerEvent, WorkerPool
from processor.runtime.workers import WorkersParts
from processor.telemetry.log import Log

AGAIN_MS: Final = 1_000
"""Between two times that an attempt is deployed with those who have not answered."""

LOOK_MS: Final = 50
"""Longest wait between two looks at what workers say, while nothing else is to be done."""

RELEASE_MS_MAX: Final = 10_000
"""For closing an attempt in every worker; more than a worker's own waiting for background work. Whoever takes longer
is killed: a new process comes sooner."""

_NEVER_BETTER: Final = (JobError.exit_code, SettingsError.exit_code)
"""Exit codes of a worker that no restart can mend."""


class RemoteWorkers:
    """See ``processor.runtime.workers.Workers``."""

    def __init__(self, parts: WorkersParts, pool: WorkerPool, fingerprint: str, log: Log) -> None:
        """``fingerprint``: of the layout that workers must have."""
        self._parts = parts
        self._pool = pool
        self._fingerprint = fingerprint
        self._log = log
        self._clock = parts.around.clock
        pool.wakes(parts.around.executor.wake)
        runtime = parts.around.settings.runtime
        self._cluster = runtime.cluster
        self._start_ms_max = runtime.worker_start_timeout
        self._liveness = Liveness(
            LivenessPolicy(
                heartbeat_timeout_ms=runtime.heartbeat_timeout,
                hang_timeout_ms=runtime.hang_timeout,
            ),
            self._clock.monotonic_ms(),
        )
        self._starting = False
        """From here on nobody may be missing."""
        self._deploy: Deploy | None = None
        self._deployed: set[WorkerId] = set()
        self._released: set[WorkerId] = set()
        self._visible: dict[WorkerId, bool] = {}
        self._grown_since_ms: int | None = None
        """Since when there have been workers that do not take part."""
        self._missing_until_ms: int | None = None
        """When one in the place of such a worker that has gone may come."""
        self._report = parts.report
        self._failed: Callable[[BaseException], None] = self._raise

    # --- starting

    def addresses(self) -> dict[WorkerId, str]:
        pool = self._pool
        self._hear()  # of what has ended since the attempt before
        pool.start_missing()
        self._starting = True
        begun_ms = self._clock.monotonic_ms()
        while not self._enough(len(joined := pool.joined()), self._clock.monotonic_ms() - begun_ms):
            if self._parts.stop_asked():
                raise Unavailable("asked to stop while workers were still starting")
            if self._clock.monotonic_ms() - begun_ms >= self._start_ms_max:
                missing = ", ".join(str(worker) for worker in pool.workers if worker not in joined)
                raise Unavailable(
                    f"these workers did not start within {self._start_ms_max} ms: {missing}.",
                    remedy="What they wrote to the log says why; runtime.worker_start_timeout gives them longer.",
                )
            self._wait()
        for worker, said in joined.items():
            if said.fingerprint != self._fingerprint:
                raise _of(
                    worker,
                    JobError(
                        f"worker {worker} (process {said.process}) has another version of the job, its settings or "
                        "the product.",
                        remedy="Stop the job and start it again: it has changed since it was started.",
                    ),
                )
        if len(joined) < len(pool.workers):
            self._log.info("goes on without all workers", workers=len(joined), of=len(pool.workers))
        return {worker: said.address for worker, said in joined.items()}

    def _enough(self, there: int, waited_ms: int) -> bool:
        """Whether the attempt can begin with so many workers. Subtasks are dealt out to those that take part, so
        fewer are as good, only slower; but who comes at once is not to find the job begun."""
        everybody = len(self._pool.workers)
        fewest = self._cluster.workers_min or everybody
        return there == everybody or (there >= fewest and waited_ms >= self._cluster.worker_wait)

    def deploy(self, deploy: Deploy) -> None:
        self._deploy = deploy
        again_ms = self._clock.monotonic_ms()
        for worker in deploy.addresses:
            self._liveness.watch(worker, again_ms)
        while len(self._deployed) < len(deploy.addresses):
            now_ms = self._clock.monotonic_ms()
            if now_ms >= again_ms:
                again_ms = now_ms + AGAIN_MS
                for worker in deploy.addresses:
                    if worker not in self._deployed:
                        self._pool.send(worker, deploy)
            if self._parts.stop_asked():
                raise Unavailable("asked to stop while still restoring")
            self._wait()
            self._look(self._clock.monotonic_ms())
        self._failed = self._parts.failed

    # --- running

    def send(self, order: Order) -> None:
        for worker in self._pool.workers:
            self._pool.send(worker, order)

    def tick(self, now_ms: int) -> None:
        self._look(now_ms)
        if self._missing_until_ms is not None and now_ms >= self._missing_until_ms:
            self._missing_until_ms = None
            self._pool.start_missing()
        self._look_for_more(now_ms)

    def turn(self) -> bool:
        return self._hear()

    def grown(self, now_ms: int) -> bool:
        since_ms = self._grown_since_ms
        if since_ms is None or now_ms - since_ms < self._cluster.worker_wait:
            return False
        self._grown_since_ms = now_ms  # said again after as long, should nothing have come of it
        return True

    def next_processing_time_ms(self) -> int | None:
        return None

    def wait_visible(self, timeout_ms: int) -> bool:
        deploy = self._deploy
        invariant(deploy is not None, "what was published was deployed before")
        assert deploy is not None
        # The job ends here: what workers report now must not lead to another checkpoint, behind the last one (R24).
        self._report = self._heard_too_late
        # Nobody else can say what became of what a worker has sent that is gone: another attempt looks (R17).
        self._failed = self._raise
        for worker in sorted(deploy.addresses.keys() - self._pool.joined().keys()):
            raise _of(worker, AttemptFailed(f"worker {worker} is gone."))
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        for worker in deploy.addresses:
            self._pool.send(worker, AwaitVisible(attempt=deploy.attempt, timeout_ms=timeout_ms))
        while len(self._visible) < len(deploy.addresses) and self._clock.monotonic_ms() < deadline_ms:
            self._wait()
        there = len(self._visible) == len(deploy.addresses) and all(self._visible.values())
        # A recovery publishes from this process.
        left_ms = max(0, deadline_ms - self._clock.monotonic_ms())
        return self._parts.publishers.wait_visible(left_ms) and there

    def release(self) -> None:
        if self._deploy is None:
            return
        self._failed = self._nothing_more
        attempt = self._deploy.attempt
        there = set(self._deploy.addresses) & self._pool.joined().keys()
        for worker in there:
            self._pool.send(worker, Release(attempt=attempt))
        self._pool.start_missing()
        deadline_ms = self._clock.monotonic_ms() + RELEASE_MS_MAX
        while (waiting := self._still(there)) and self._clock.monotonic_ms() < deadline_ms:
            self._wait()
        for worker in waiting:
            self._log.warning("killed a worker that did not close the attempt", worker=worker)
            self._pool.kill(worker)

    def _still(self, there: set[WorkerId]) -> set[WorkerId]:
        """Who has not released, and is there all the same. One that came since has nothing to release."""
        return (there - self._released) & self._pool.joined().keys()

    # --- what is heard

    def _wait(self) -> None:
        if not self._hear():
            self._pool.wait(LOOK_MS)

    def _hear(self) -> bool:
        heard = False
        while (event := self._pool.take()) is not None:
            heard = True
            self._heard(*event)
        return heard

    def _heard(self, worker: WorkerId, event: WorkerEvent) -> None:
        attempt = None if self._deploy is None else self._deploy.attempt
        match event:
            case Joined():
                self._log.debug("a worker is there", worker=worker, process=event.process)
            case Heartbeat():
                self._heartbeat(worker, event)
            case Deployed(attempt=of):
                if of == attempt:
                    self._deployed.add(worker)
            case WorkerFailed(attempt=of, failure=failure):
                if of == attempt:
                    self._failed(error_of(failure, worker))
            case Released(attempt=of):
                if of == attempt:
                    self._released.add(worker)
            case Visible(attempt=of, visible=visible):
                if of == attempt:
                    self._visible[worker] = visible
            case Stack(text=text):
                self._log.warning("a worker has not turned for long; it is here", worker=worker, stack=text)
            case Gone():
                self._gone(worker, event)
            case _:
                self._report(event)

    def _heartbeat(self, worker: WorkerId, said: Heartbeat) -> None:
        joined = self._pool.joined().get(worker)
        if joined is not None:
            self._liveness.heard(worker, self._clock.monotonic_ms(), said.turn_age_ms or 0)
            counted = snapshot_of(said.counters, said.gauges)
            self._parts.around.metrics.told(f"worker {worker}", joined.session, counted)

    def _gone(self, worker: WorkerId, event: Gone) -> None:
        self._liveness.forget(worker)
        if not self._starting:
            return
        if self._deploy is not None and worker not in self._deploy.addresses:
            # It took no part, and another may come in its place; not at once, for it may have ended at its start.
            self._missing_until_ms = self._clock.monotonic_ms() + self._cluster.worker_wait
            return
        if self._deploy is None and event.exit_code in _NEVER_BETTER:
            raise _of(
                worker,
                JobError(
                    f"worker {worker} could not start: {event.why}.",
                    remedy="What it wrote to the log says why.",
                ),
            )
        self._failed(_of(worker, AttemptFailed(f"worker {worker} is gone: {event.why}.")))

    def _look(self, now_ms: int) -> None:
        for judged in self._liveness.look(now_ms):
            match judged:
                case Stands(worker=worker):
                    self._pool.send(worker, TellStack())
                case Lost(worker=worker, silent_ms=silent_ms):
                    self._give_up(worker, f"was not heard of for {silent_ms} ms (runtime.heartbeat_timeout)")
                case Hangs(worker=worker, still_ms=still_ms):
                    self._give_up(worker, f"has not turned for {still_ms} ms (runtime.hang_timeout)")

    def _look_for_more(self, now_ms: int) -> None:
        """Here and not in ``grown``, which is asked in every turn."""
        deploy = self._deploy
        assert deploy is not None
        if not self._pool.joined().keys() - deploy.addresses.keys():
            self._grown_since_ms = None
        elif self._grown_since_ms is None:
            self._grown_since_ms = now_ms

    def _give_up(self, worker: WorkerId, why: str) -> None:
        self._pool.kill(worker)
        self._failed(_of(worker, AttemptFailed(f"worker {worker} {why}: it is ended.")))

    def _raise(self, error: BaseException) -> None:
        raise error

    def _heard_too_late(self, report: Report) -> None:
        """Of an attempt that is ending."""

    def _nothing_more(self, error: BaseException) -> None:
        """The attempt is over already."""


def _of(worker: WorkerId, error: ProcessorError) -> ProcessorError:
    """The error, as one of this worker."""
    error.elsewhere = Elsewhere(worker=worker)
    return error
