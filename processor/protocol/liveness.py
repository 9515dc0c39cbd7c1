"""Which of an attempt's workers are lost or hang, judged by their heartbeats (D1).

A heartbeat comes from a thread of its own, and says how long ago the thread that steps the subtasks last turned. So a
worker that is silent is lost, and one that is heard and does not turn hangs: in a function of the job, most likely.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from processor.ids import WorkerId
from processor.invariant import invariant


@dataclass(frozen=True, slots=True, kw_only=True)
class LivenessPolicy:
    heartbeat_timeout_ms: int
    """Silence for this long: the worker is lost."""
    hang_timeout_ms: int
    """Heard, and no turn for this long: it hangs. Half of it: it is asked where it stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """Nothing was heard of it in time. It is no longer watched."""

    worker: WorkerId
    silent_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stands:
    """It has not turned for half of the bound: time to ask for the stack of its thread. Said once, until it turns."""

    worker: WorkerId
    still_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hangs:
    """It has not turned within the bound. It is no longer watched."""

    worker: WorkerId
    still_ms: int


Verdict = Lost | Stands | Hangs


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heard:
    at_ms: int
    turn_age_ms: int
    asked: bool = False
    """It was said that it stands."""


class Liveness:
    """Judges when it is asked to look. Times are monotonic milliseconds of the judge.

    Whoever is watched has as much time as the judge was awake: a machine that was suspended, or a coordinator that
    was stopped, finds old heartbeats, and takes nobody for dead because of its own sleep.
    """

    def __init__(self, policy: LivenessPolicy, now_ms: int) -> None:
        self._policy = policy
        self._awake_since_ms = now_ms
        self._looked_ms = now_ms
        self._watched: dict[WorkerId, _Heard] = {}

    def watch(self, worker: WorkerId, now_ms: int) -> None:
        """From now on it has to be heard."""
        self._watched[worker] = _Heard(at_ms=now_ms, turn_age_ms=0)

    def forget(self, worker: WorkerId) -> None:
        """It has ended, as it should or otherwise: there is nothing to judge."""
        self._watched.pop(worker, None)

    def heard(self, worker: WorkerId, now_ms: int, turn_age_ms: int | None) -> bool:
        """A heartbeat, with None while there is nothing to turn. False when nobody watches that worker (R21)."""
        before = self._watched.get(worker)
        if before is None:
            return False
        invariant(now_ms >= before.at_ms, "monotonic time grows")
        age_ms = turn_age_ms or 0
        turned = age_ms < before.turn_age_ms
        self._watched[worker] = _Heard(at_ms=now_ms, turn_age_ms=age_ms, asked=before.asked and not turned)
        return True

    def look(self, now_ms: int) -> tuple[Verdict, ...]:
        """Judge all, in the order of their numbers."""
        # Half: a shorter sleep alone makes nobody silent for the whole of it.
        if 2 * (now_ms - self._looked_ms) > self._policy.heartbeat_timeout_ms:
            self._awake_since_ms = now_ms
        self._looked_ms = now_ms
        verdicts = [self._judge(worker, self._watched[worker], now_ms) for worker in sorted(self._watched)]
        return tuple(verdict for verdict in verdicts if verdict is not None)

    def _judge(self, worker: WorkerId, heard: _Heard, now_ms: int) -> Verdict | None:
        awake_ms = now_ms - self._awake_since_ms
        silent_ms = min(now_ms - heard.at_ms, awake_ms)
        still_ms = min(heard.turn_age_ms, awake_ms)
        if silent_ms >= self._policy.heartbeat_timeout_ms:
            self.forget(worker)
            return Lost(worker=worker, silent_ms=silent_ms)
        if still_ms >= self._policy.hang_timeout_ms:
            self.forget(worker)
            return Hangs(worker=worker, still_ms=still_ms)
        if 2 * still_ms >= self._policy.hang_timeout_ms and not heard.asked:
            self._watched[worker] = replace(heard, asked=True)
            return Stands(worker=worker, still_ms=still_ms)
        return None
