"""How a simulated client talks to the simulated broker: requests that are lost, late, doubled, tried again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Generic, TypeVar, assert_never

from connectors.kafka.errors import error_for
from connectors.kafka.simulated_refusal import BrokerRefusal
from connectors.kafka.simulated_world import BrokerWorld, Fate
from processor.errors import ProcessorError

T = TypeVar("T")

ANSWER_WAIT_MS: Final = 250
"""How long a client waits before it believes an answer lost and asks again: broken connections are noticed
soon, and it is all the same to what stands above whether it took longer."""

NO_RETRY: Final[Mapping[str, int]] = MappingProxyType({})

TIMED_OUT: Final = "_TIMED_OUT"
FENCED: Final = "_FENCED"


class Answered(Generic[T]):
    """An answer, as distinct from silence."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value


class SimulatedClient:
    """One client's connection. ``number`` tells the world whose requests these are."""

    def __init__(self, world: BrokerWorld, number: int, cluster: str) -> None:
        self.world = world
        self.cluster = cluster
        self._number = number

    def once(self, request: str, act: Callable[[], T], *, changes: bool = True) -> Answered[T] | None:
        """Send a request once; None is silence. ``act`` is what the broker does, again if it comes again.

        Raises BrokerRefusal. ``changes`` False: it only reads, so nobody cares whether it is late.
        """
        sent_ms = self.world.now_ms()
        try:
            fate = self.world.exchange(request, self._number)
        except BaseException:
            # Its sender was killed. What was on its way already may arrive all the same; at once means that the
            # sender was dead before.
            if changes and self.world.now_ms() > sent_ms:
                self._arrive_late(request, act)
            raise
        match fate:
            case Fate.DELIVERED:
                return Answered(act())
            case Fate.REQUEST_LOST:
                if changes:
                    self._arrive_late(request, act)
                return None
            case Fate.ANSWER_LOST:
                _unheard(act)
                return None
            case Fate.DOUBLED:
                answer = Answered(act())
                if changes and not self._arrive_late(request, act):
                    _unheard(act)
                return answer
            case _:
                assert_never(fate)

    def ask(
        self,
        request: str,
        act: Callable[[], T],
        timeout_ms: int,
        *,
        doing: str,
        changes: bool = True,
        retry: Mapping[str, int] = NO_RETRY,
        retry_for_good: str = "",
    ) -> T:
        """Send a request until it is answered, at most for ``timeout_ms``.

        ``retry`` names refusals after which it is sent again, with the milliseconds between; when time is
        over they are silence, except ``retry_for_good``. Raises BrokerRefusal for other refusals, Unavailable
        for silence; ``doing`` completes "failed while".
        """
        deadline_ms = self.world.now_ms() + timeout_ms
        waited_ms = 0
        while True:
            pause_ms, refusal = ANSWER_WAIT_MS, None
            try:
                answer = self.once(request, act, changes=changes)
                if answer is not None:
                    return answer.value
            except BrokerRefusal as refused:
                if refused.name not in retry:
                    raise
                pause_ms, refusal = retry[refused.name], refused
            # Also by what was waited: for whoever looks at the world from outside, time stands still.
            left_ms = min(deadline_ms - self.world.now_ms(), timeout_ms - waited_ms)
            if left_ms > 0:
                self.world.wait(min(pause_ms, left_ms))
            waited_ms += pause_ms
            if left_ms <= pause_ms:
                if refusal is not None and refusal.name == retry_for_good:
                    raise refusal
                raise self.error(TIMED_OUT, "nobody answered in time", doing)

    def error(self, name: str, text: str, doing: str) -> ProcessorError:
        """The engine's error for one of Kafka's, by the same table as the real client's."""
        return error_for(name, text, doing=doing, cluster=self.cluster)

    def _arrive_late(self, request: str, act: Callable[[], object]) -> bool:
        delay_ms = self.world.late(request)
        if delay_ms is None:
            return False
        self.world.later(delay_ms, lambda: _unheard(act))
        return True


def _unheard(act: Callable[[], object]) -> None:
    """It takes effect, or is refused, and nobody hears of it."""
    try:
        act()
    except BrokerRefusal:
        return
