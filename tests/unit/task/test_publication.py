"""Publishing for one identity, against an outside system that loses answers, fences and refuses."""

from __future__ import annotations

import pytest

from processor.contracts.sink import TransactionLimits
from processor.errors import DamagedFile, EngineBug, Fenced, LogConflict, PublishRefused, Unavailable
from processor.fault_points import no_faults
from processor.ids import Attempt, CheckpointId, Incarnation, JobName, Marker, PublisherId, StepName
from processor.protocol.entries import OutboxFile
from processor.protocol.messages import Publication
from processor.protocol.publishing import Wanted
from processor.protocol.recovery_messages import Opening
from processor.records.rows import RowBlock
from processor.storage.outbox import OutboxWriter, encode_block
from processor.storage.outbox_files import OutboxFiles
from processor.task.publication import PublishTools, Settlement, open_identity, publish
from tests.unit.operators.kit import SetClock
from tests.unit.storage.memory_files import MemoryFiles
from tests.unit.task.kit import Outside

SINK = PublisherId(JobName("job"), StepName("out"), 0)
INCARNATION = Incarnation("first")
TIMEOUT_MS = 10_000


def marker(checkpoint: int, rows: int, attempt: int = 1, incarnation: str = "first") -> Marker:
    return Marker(
        incarnation=Incarnation(incarnation),
        attempt=Attempt(attempt),
        checkpoint=CheckpointId(checkpoint),
        rows=rows,
    )


class Scene:
    """Checkpoint 2 is decided with these rows, behind checkpoint 1."""

    def __init__(self, *outboxes: list[str], attempt: int = 1, sealed: tuple[int, ...] = (1, 2, 3)) -> None:
        self.outside = Outside(markers={SINK: marker(1, 4)})
        self.clock = SetClock()
        self.files = MemoryFiles()
        self.pauses: list[int] = []
        self.publication = Publication(
            publisher=SINK,
            outboxes=tuple(self._outbox(number, rows) for number, rows in enumerate(outboxes)),
            expected=marker(1, 4),
        )
        self.wanted = Wanted(
            incarnation=INCARNATION,
            attempt=Attempt(attempt),
            checkpoint=CheckpointId(2),
            rows=self.publication.rows,
        )
        self.tools = PublishTools(
            outboxes=OutboxFiles(self.files),
            sealed=lambda other: other in sealed,
            timeout_ms=TIMEOUT_MS,
            clock=self.clock,
            pause=self._pause,
            faults=no_faults,
        )

    def _outbox(self, number: int, rows: list[str]) -> OutboxFile:
        writer = OutboxWriter(self.files, f"{number}.outbox")
        for start in range(0, len(rows), 2):  # two rows a block
            values = [row.encode() for row in rows[start : start + 2]]
            writer.write(encode_block(RowBlock(topic="out", values=values)))
        return OutboxFile(publisher=SINK, cut=CheckpointId(2), file=writer.finish(), rows=len(rows))

    def _pause(self, pause_ms: int) -> None:
        self.pauses.append(pause_ms)
        self.clock.now_ms += pause_ms

    def publish(self, settlement: Settlement | None = None) -> Marker:
        publisher = self.outside.publisher(SINK)
        if settlement is None:
            return publish(publisher, self.publication, self.wanted, self.tools)
        return publish(publisher, self.publication, self.wanted, self.tools, settlement)

    def open(self, *, unrecorded: bool = False, unreadable: int | None = None, newest: int = 2) -> Marker:
        opening = Opening(
            publisher=SINK,
            wanted=self.wanted,
            unrecorded=unrecorded,
            newest_id=CheckpointId(newest),
            accepted=None,
            unreadable=None if unreadable is None else CheckpointId(unreadable),
        )
        return open_identity(self.outside.publisher(SINK), opening, self.tools)


def test_r11_all_rows_and_the_marker_go_out_in_order():
    scene = Scene(["a", "b", "c"], ["d"])
    assert scene.publish() == marker(2, 4)
    assert scene.outside.rows() == [b"a", b"b", b"c", b"d"]
    assert scene.outside.markers[SINK] == marker(2, 4)


def test_r11_publishing_again_does_nothing():
    scene = Scene(["a", "b"])
    for _ in range(3):
        assert scene.publish() == marker(2, 2)
    assert scene.outside.rows() == [b"a", b"b"]
    assert len(scene.outside.sends) == 1


@pytest.mark.parametrize("lost", ["lost_requests", "lost_answers"])
def test_r11_an_unclear_answer_is_resolved_by_taking_over_and_comparing(lost):
    scene = Scene(["a", "b", "c"])
    scene.outside.limits = TransactionLimits(rows_max=2, bytes_max=2**20)
    setattr(scene.outside, lost, 2)
    scene.publish()
    assert scene.outside.rows() == [b"a", b"b", b"c"]


def test_r12_every_transaction_has_a_take_over_of_its_own():
    scene = Scene(["a", "b", "c", "d"])
    scene.outside.limits = TransactionLimits(rows_max=1, bytes_max=2**20)
    scene.publish()
    assert scene.outside.owners[SINK] == len(scene.outside.transactions) == 4


def test_r16_a_large_outbox_goes_out_in_several_transactions_each_counting_the_rows_out():
    scene = Scene(["a", "b", "c"], ["d", "e"])
    scene.outside.limits = TransactionLimits(rows_max=2, bytes_max=2**20)
    scene.publish()
    assert [(m.rows, rows) for _, m, rows in scene.outside.transactions] == [
        (2, [b"a", b"b"]),
        (4, [b"c", b"d"]),
        (5, [b"e"]),
    ]


def test_r16_bytes_bound_a_transaction_too():
    scene = Scene(["aaaa", "bbbb", "cccc", "dddd"])
    scene.outside.limits = TransactionLimits(rows_max=100, bytes_max=8)
    scene.publish()
    assert scene.outside.sends == [2, 2]


@pytest.mark.parametrize("before", range(5))
@pytest.mark.parametrize("now", range(1, 6))
def test_r16_a_publish_goes_on_from_any_row_with_any_other_chunk_size(before, now):
    scene = Scene(["a", "b", "c"], ["d", "e"])
    scene.outside.limits = TransactionLimits(rows_max=now, bytes_max=2**20)
    if before:
        scene.outside.markers[SINK] = marker(2, before)
    scene.publish()
    assert scene.outside.rows() == [b"a", b"b", b"c", b"d", b"e"][before:]


@pytest.mark.parametrize(
    ("there", "match"),
    [
        (None, "no marker is there"),
        (marker(1, 4, incarnation="other"), "incarnation other"),
        (marker(9, 1, attempt=7), "knows no attempt 7"),
        (marker(1, 3), "lost its end, or somebody else"),
        (marker(3, 1), "lost its end, or somebody else"),
        (marker(2, 9), "lost its end, or somebody else"),
    ],
)
def test_r11_what_does_not_fit_stops_loudly_and_sends_nothing(there, match):
    scene = Scene(["a", "b"])
    scene.outside.markers = {} if there is None else {SINK: there}
    with pytest.raises(LogConflict, match=match):
        scene.publish()
    assert scene.outside.sends == []


def test_r11_a_newer_attempt_whose_seal_is_in_the_log_stops_us_quietly():
    scene = Scene(["a"])
    scene.outside.markers[SINK] = marker(2, 1, attempt=2)
    with pytest.raises(Fenced, match="attempt 2"):
        scene.publish()
    assert scene.outside.sends == []


def test_r14_a_zombie_that_wakes_between_take_over_and_send_is_shut_out():
    scene = Scene(["a"])
    newer = Scene(["a"], attempt=2)
    newer.outside = scene.outside
    sleeper = scene.outside.publisher(SINK)
    sleeper.take_over()
    newer.open()
    scene.outside.publisher(SINK)
    with pytest.raises(Fenced):
        # Its send fails as shut out; it takes over, reads attempt 2, and stops.
        publish(_Asleep(sleeper), scene.publication, scene.wanted, scene.tools)
    assert scene.outside.rows() == []
    assert newer.open() == marker(2, 1, attempt=2), "ours failed once at most, and goes on"


class _Asleep:
    """A publisher that had taken over before it fell asleep."""

    def __init__(self, publisher) -> None:
        self._publisher = publisher
        self._taken = True

    @property
    def limits(self):
        return self._publisher.limits

    def look(self):
        return self._publisher.look()

    def take_over(self):
        if self._taken:
            self._taken = False
            return marker(1, 4)
        return self._publisher.take_over()

    def send(self, marker, rows):
        self._publisher.send(marker, rows)

    def wait_visible(self, timeout_ms):
        return True

    def close(self):
        return None


def test_r14_an_opening_writes_whatever_checkpoint_the_marker_names():
    for there in (marker(1, 4), marker(2, 0), marker(2, 2), marker(1, 1)):
        scene = Scene(["a", "b"], attempt=2)
        scene.outside.markers[SINK] = there
        assert scene.open() == marker(2, 2, attempt=2)
        assert scene.outside.markers[SINK] == marker(2, 2, attempt=2)
        assert scene.outside.rows() == []


def test_r14_an_opening_may_find_no_marker_but_not_where_something_may_be_out():
    scene = Scene(["a"])
    scene.outside.markers.clear()
    with pytest.raises(LogConflict, match="can't be known") as caught:
        scene.open(unrecorded=True)
    assert "processor outbox publish" in caught.value.remedy
    assert scene.open() == marker(2, 1)


def test_r08_an_opening_that_goes_back_stops_where_the_unreadable_one_is_out():
    scene = Scene(["a"], attempt=2)
    scene.outside.markers[SINK] = marker(3, 1)
    with pytest.raises(DamagedFile, match="checkpoint 3 can't be read"):
        scene.open(unreadable=3, newest=3)


def test_r14_an_opening_is_repeated_when_its_answer_is_lost():
    scene = Scene(["a"], attempt=2)
    scene.outside.lost_answers = 2
    scene.outside.lost_requests = 1
    assert scene.open() == marker(2, 1, attempt=2)


def test_r25_a_publish_gives_up_at_its_time_out_and_loses_nothing():
    scene = Scene(["a"])
    scene.outside.down = True
    started_ms = scene.clock.now_ms
    with pytest.raises(Unavailable, match=f"within {TIMEOUT_MS} ms"):
        scene.publish()
    assert scene.clock.now_ms - started_ms <= TIMEOUT_MS
    assert scene.pauses == sorted(scene.pauses), "it asks less and less often"
    scene.outside.down = False
    scene.publish()
    assert scene.outside.rows() == [b"a"]


def test_r16_the_time_out_is_for_each_transaction():
    scene = Scene([str(number) for number in range(20)])
    scene.outside.limits = TransactionLimits(rows_max=1, bytes_max=2**20)
    real, slow = scene.outside.publisher(SINK), TIMEOUT_MS // 2

    class Slow:
        limits = property(lambda self: real.limits)
        look, take_over, wait_visible, close = real.look, real.take_over, real.wait_visible, real.close

        def send(self, marker, rows):
            scene.clock.now_ms += slow
            real.send(marker, rows)

    publish(Slow(), scene.publication, scene.wanted, scene.tools)
    assert len(scene.outside.rows()) == 20


def test_r19_r30_a_row_that_is_refused_for_good_is_named_by_its_number():
    scene = Scene(["a", "b", "c"], ["d", "e"])
    scene.outside.limits = TransactionLimits(rows_max=2, bytes_max=2**20)
    scene.outside.refused = {b"d"}
    with pytest.raises(PublishRefused, match="row 4 of the 5") as caught:
        scene.publish()
    assert caught.value.row == 3, "from 0, over all outboxes"
    assert "--row 4" in caught.value.remedy
    assert scene.outside.rows() == [b"a", b"b"], "what went before is out; nothing of its transaction is"


def test_r30_an_operator_leaves_a_row_out_and_the_rest_is_published():
    scene = Scene(["a", "b", "c"], ["d", "e"])
    scene.outside.refused = {b"d"}
    scene.publish(Settlement(leave_out=range(3, 4)))
    assert scene.outside.rows() == [b"a", b"b", b"c", b"e"]
    assert scene.outside.markers[SINK] == marker(2, 5)


@pytest.mark.parametrize("left_out", [range(1), range(4, 5), range(5), range(2, 4)])
def test_r30_rows_left_out_at_either_end_or_all(left_out):
    scene = Scene(["a", "b", "c"], ["d", "e"])
    scene.outside.limits = TransactionLimits(rows_max=2, bytes_max=2**20)
    scene.publish(Settlement(leave_out=left_out))
    kept = [row for number, row in enumerate([b"a", b"b", b"c", b"d", b"e"]) if number not in left_out]
    assert scene.outside.rows() == kept
    assert scene.outside.markers[SINK] == marker(2, 5)


def test_r14_an_operator_vouches_that_nothing_is_out():
    scene = Scene(["a"])
    scene.outside.markers.clear()
    scene.publish(Settlement(vouched=True))
    assert scene.outside.rows() == [b"a"]


def test_r30_too_large_halves_the_chunk():
    scene = Scene([str(number) for number in range(9)])
    scene.outside.rows_too_many = 3
    scene.publish()
    assert scene.outside.rows() == [str(number).encode() for number in range(9)]
    assert scene.outside.sends == [9, 4, 2, 2, 2, 2, 1]


def test_r30_what_is_halved_is_what_was_sent():
    """bytes_max keeps a chunk far below rows_max: halving that would send the same chunk again and again."""
    scene = Scene([f"{number:08d}" for number in range(16)])
    scene.outside.limits = TransactionLimits(rows_max=1_000_000, bytes_max=64)
    scene.outside.rows_too_many = 2
    scene.publish()
    first, *halves = scene.outside.sends[:3]
    assert 4 <= first < 16
    assert halves == [first // 2, first // 4]


def test_r30_each_smaller_try_has_the_whole_time_out():
    """A chunk that takes too long costs nearly all of it; else the next publish began with the same chunk."""
    scene = Scene([str(number) for number in range(8)])
    scene.outside.rows_too_many = 1
    real = scene.outside.publisher(SINK)

    class SlowToRefuse:
        limits = property(lambda self: real.limits)
        look, take_over, wait_visible, close = real.look, real.take_over, real.wait_visible, real.close

        def send(self, marker, rows):
            scene.clock.now_ms += TIMEOUT_MS - 100
            real.send(marker, rows)

    publish(SlowToRefuse(), scene.publication, scene.wanted, scene.tools)
    assert len(scene.outside.rows()) == 8


def test_r30_one_row_that_is_too_large_is_refused_by_number():
    scene = Scene(["a", "b"])
    scene.outside.rows_too_many = 0
    with pytest.raises(PublishRefused, match="row 1 of the 2"):
        scene.publish()
    assert scene.outside.sends == [2, 1]


def test_an_outbox_with_fewer_rows_than_its_entry_counts_is_a_bug_and_no_endless_loop():
    scene = Scene(["a", "b"])
    longer = Wanted(incarnation=INCARNATION, attempt=Attempt(1), checkpoint=CheckpointId(2), rows=3)
    with pytest.raises(EngineBug, match="an outbox has the rows that its entry counts"):
        publish(scene.outside.publisher(SINK), scene.publication, longer, scene.tools)
