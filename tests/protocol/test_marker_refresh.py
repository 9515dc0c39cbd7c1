"""R14: the marker of an idle identity is written again before the brokers forget it."""

from __future__ import annotations

from processor.ids import JobName, PublisherId, StepName
from processor.protocol.marker_refresh import MarkerRefresh

A = PublisherId(JobName("job"), StepName("out"), 0)
B = PublisherId(JobName("job"), StepName("out"), 1)


def test_r14_an_identity_is_refreshed_an_interval_after_it_wrote_last() -> None:
    refresh = MarkerRefresh(100)
    refresh.opened((A, B), now_ms=1_000)
    assert refresh.take_due(1_099) == ()
    refresh.wrote(A, 1_090)
    assert refresh.take_due(1_100) == (B,)
    assert refresh.take_due(1_189) == ()
    assert refresh.take_due(1_190) == (A,)


def test_r14_a_refresh_that_failed_comes_round_again() -> None:
    refresh = MarkerRefresh(100)
    refresh.opened((A,), now_ms=0)
    assert [now for now in range(0, 401, 10) if refresh.take_due(now)] == [100, 200, 300, 400]
