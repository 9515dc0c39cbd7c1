"""Percentiles and views of what is remembered of checkpoints (A18)."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.contracts.checkpoint_view import CheckpointsView
from processor.errors import EngineBug
from processor.ids import NO_CHECKPOINT, CheckpointId
from processor.protocol.coordinator_messages import DecisionTaken, PublishedRecorded
from processor.protocol.entries import SubtaskSnapshot
from processor.protocol.messages import Acknowledged, AcknowledgementMetrics, Declined
from processor.telemetry.checkpoint_summary import distribution, summary, view
from tests.protocol.coordinator_rig import ATTEMPT, READ, WRITE, Rig
from tests.unit.operators.kit import SetClock


def test_a18_percentiles_are_values_that_occurred():
    found = distribution(list(range(100, 0, -1)))
    assert (found.count, found.minimum, found.maximum, found.average) == (100, 1, 100, 50.5)
    assert (found.p50, found.p90, found.p95, found.p99) == (50, 90, 95, 99)
    one = distribution([7])
    assert (one.p50, one.p99, one.minimum, one.maximum) == (7, 7, 7, 7)


@given(values=st.lists(st.integers(0, 1_000), min_size=1, max_size=60))
def test_a18_as_many_values_as_a_percentile_says_lie_at_or_below_it(values):
    found = distribution(values)
    for percent, value in ((50, found.p50), (90, found.p90), (95, found.p95), (99, found.p99)):
        assert value in values
        assert sum(v <= value for v in values) * 100 >= percent * len(values)
        assert sum(v < value for v in values) * 100 < percent * len(values)


def test_a_distribution_of_nothing_is_a_bug():
    with pytest.raises(EngineBug):
        distribution([])
    assert summary([]) is None


def rig_with_history() -> tuple[Rig, CheckpointId]:
    """Two published checkpoints, one that was declined."""
    rig = Rig()
    newest = NO_CHECKPOINT
    for alignment_ms in (10, 30):
        checkpoint = newest = rig.start()
        for subtask, said in (
            (READ, AcknowledgementMetrics(alignment_ms=1, state_bytes=100)),
            (
                WRITE,
                AcknowledgementMetrics(
                    alignment_ms=alignment_ms,
                    state_bytes=50,
                    overtaken=True,
                    channel_records=2,
                    channel_bytes=7,
                ),
            ),
        ):
            snapshot = SubtaskSnapshot(subtask=subtask)
            rig.do(Acknowledged(attempt=ATTEMPT, checkpoint=checkpoint, snapshot=snapshot, metrics=said))
        rig.do(DecisionTaken(checkpoint=checkpoint))
        rig.do(PublishedRecorded(checkpoint=checkpoint))
    declined = rig.start()
    rig.do(Declined(attempt=ATTEMPT, checkpoint=declined, subtask=READ, reason="disk full"))
    return rig, newest


def test_a18_a_view_sums_up_the_published_ones_and_tells_parts_only_of_the_one_asked_for():
    rig, newest = rig_with_history()
    clock = SetClock()
    seen = view(rig.statistics.picture(), clock, newest)
    assert seen.summary is not None
    alignment = seen.summary.alignment_ms
    assert (alignment.count, alignment.minimum, alignment.maximum) == (2, 10, 30), "of the slowest subtask"
    assert seen.summary.state_bytes.p50 == 150, "of all subtasks together"
    assert (seen.summary.overtaken.p50, seen.summary.channel_bytes.p99) == (1, 7)
    assert [one.record.parts for one in seen.history] == [()] * 3
    assert seen.asked is not None
    assert [part.subtask for part in seen.asked.record.parts] == [READ, WRITE]
    assert seen.failed is not None
    assert seen.failed.record.reason == "subtask read[0] declined: disk full"
    offset_ms = clock.wall_ms() - clock.monotonic_ms()
    assert seen.asked.triggered_at_ms == seen.asked.record.triggered_ms + offset_ms
    assert view(rig.statistics.picture(), clock, CheckpointId(99)).asked is None


def test_a18_a_view_survives_its_way_over_a_socket():
    rig, newest = rig_with_history()
    rig.statistics.restored(ATTEMPT, newest, 5)
    seen = view(rig.statistics.picture(), SetClock(), newest)
    assert msgspec.json.decode(msgspec.json.encode(seen), type=CheckpointsView) == seen
