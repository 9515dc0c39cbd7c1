"""In which order a recovery publishes for several identities."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from processor.contracts.sink import TransactionLimits
from processor.errors import HeldUp, Unavailable
from processor.fault_points import no_faults
from processor.ids import Attempt, CheckpointId, Incarnation, JobName, Marker, PublisherId, StepName
from processor.protocol.messages import Publication
from processor.protocol.recovery_messages import PublishAll
from processor.records.rows import RowBlock
from processor.runtime.recovery_driver import RecoveryDriver
from processor.task.publication import PublishTools
from tests.unit.operators.kit import SetClock

INCARNATION = Incarnation("i")
TIMEOUT_MS = 10_000


class OneHeldUp:
    """A publisher that waits for what others have left open, until they have taken over."""

    limits = TransactionLimits(rows_max=10, bytes_max=1_000)

    def __init__(self, order: list[int], subtask: int, waits_for: set[int]) -> None:
        self._order = order
        self._subtask = subtask
        self._waits_for = waits_for

    def take_over(self) -> Marker | None:
        self._order.append(self._subtask)
        if not self._waits_for <= set(self._order):
            raise HeldUp("what another has left open is in the way")
        return Marker(incarnation=INCARNATION, attempt=Attempt(2), checkpoint=CheckpointId(5), rows=0)

    def send(self, marker: Marker, rows: Iterable[RowBlock]) -> None:
        raise AssertionError("everything is out")


def identity(subtask: int) -> PublisherId:
    return PublisherId(JobName("job"), StepName("out"), subtask)


def recovered(waits_for: dict[int, set[int]]) -> list[int]:
    clock, order = SetClock(), list[int]()
    publishers = {identity(n): OneHeldUp(order, n, waits_for.get(n, set())) for n in range(3)}

    def pause(wait_ms: int) -> None:
        clock.now_ms += wait_ms

    tools = PublishTools(
        outboxes=SimpleNamespace(),  # type: ignore[arg-type]
        sealed=lambda _: True,
        timeout_ms=TIMEOUT_MS,
        clock=clock,
        pause=pause,
        faults=no_faults,
    )
    parts: Any = SimpleNamespace(
        say=SimpleNamespace(info=lambda *_, **__: None),
        faults=no_faults,
        publishers=SimpleNamespace(of=publishers.__getitem__),
        publish_tools=tools,
    )
    expected = Marker(incarnation=INCARNATION, attempt=Attempt(1), checkpoint=CheckpointId(4), rows=0)
    publications = tuple(Publication(publisher=each, outboxes=(), expected=expected) for each in publishers)
    action = PublishAll(
        checkpoint=CheckpointId(5), publications=publications, incarnation=INCARNATION, attempt=Attempt(2)
    )
    written = RecoveryDriver(parts)._publish_all(action)
    assert set(written.markers) == set(publishers)
    return order


def test_r32_who_is_held_up_lets_the_others_go_first() -> None:
    assert recovered({0: {2}, 1: {2}}) == [0, 1, 2, 0, 1]


def test_r32_when_nobody_gets_on_it_ends_at_the_time_out_and_says_why() -> None:
    with pytest.raises(
        Unavailable, match="could not be published within 10000 ms: what another has left open"
    ):
        recovered({0: {7}, 1: {7}, 2: {7}})
