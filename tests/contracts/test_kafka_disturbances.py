"""No decided output is lost, whatever becomes of its transaction from outside (F4)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from processor.errors import Retriable
from processor.fault_points import FaultPoint
from tests.contracts.kafka_disturbance import outside
from tests.contracts.kafka_rig import Rig, block, marker, read_committed, values
from tests.topics import TopicFactory
from tests.waiting import wait_until

pytestmark = pytest.mark.kafka

ROWS = [b"%d" % n for n in range(2_000)]


class Once:
    """A fault hook that acts the first time its point is reached after it was armed."""

    def __init__(self, point: FaultPoint, act: Callable[[], object]) -> None:
        self.point = point
        self.act = act
        self.armed = False
        self.acted = False

    def __call__(self, reached: FaultPoint) -> None:
        if reached is self.point and self.armed and not self.acted:
            self.acted = True
            self.act()


def published_all_the_same(rig: Rig, out: str, hook: Once) -> None:
    """A publish is disturbed, fails, and is repeated as the engine does it."""
    publisher = rig.publisher(out, faults=hook)
    publisher.take_over()
    publisher.send(marker(1, 0), [])
    publisher.take_over()
    hook.armed = True
    with pytest.raises(Retriable):
        publisher.send(marker(2, len(ROWS)), [block(out, ROWS)])
    assert hook.acted
    assert publisher.take_over() == marker(1, 0), "nothing of the disturbed transaction is there"
    publisher.send(marker(2, len(ROWS)), [block(out, ROWS)])
    assert publisher.take_over() == marker(2, len(ROWS))
    assert publisher.wait_visible(20_000)
    assert values(read_committed(rig.bootstrap, out)) == ROWS
    publisher.close()


@pytest.mark.parametrize("point", [FaultPoint.HALF_SENT, FaultPoint.ALL_SENT_NOT_COMMITTED])
def test_a_transaction_aborted_from_outside_is_published_again(
    kafka: str, topic: TopicFactory, point: FaultPoint
) -> None:
    rig, out = Rig(kafka), topic("out")
    identity = str(rig.identity())
    with outside(kafka) as outsider:

        def abort() -> None:
            wait_until(
                lambda: outsider.state(identity).state.value == "Ongoing", 30, "the first rows are there"
            )
            assert outsider.end(identity, commit=False) == 0
            outsider.wait_ended(identity)

        published_all_the_same(rig, out, Once(point, abort))


def test_a_transactional_id_taken_by_another_producer_is_taken_back(kafka: str, topic: TopicFactory) -> None:
    rig, out = Rig(kafka), topic("out")

    def take_away() -> None:
        thief = rig.producer(**{"transactional.id": str(rig.identity())})
        thief.init_transactions(30)
        thief.begin_transaction()
        thief.produce(out, b"of the thief")
        assert thief.flush(30) == 0
        thieves.append(thief)  # its transaction stays open

    thieves: list[object] = []
    published_all_the_same(rig, out, Once(FaultPoint.HALF_SENT, take_away))


@pytest.mark.slow
def test_an_expired_transaction_is_published_again(kafka: str, topic: TopicFactory) -> None:
    rig, out = Rig(kafka, transaction_timeout="1500ms", publish_timeout="1s"), topic("out")
    with outside(kafka) as outsider:
        published_all_the_same(
            rig,
            out,
            Once(FaultPoint.ALL_SENT_NOT_COMMITTED, lambda: outsider.wait_ended(str(rig.identity()))),
        )


def test_r12_a_late_commit_of_an_earlier_transaction_ends_nothing(kafka: str, topic: TopicFactory) -> None:
    """The torn transaction: a repeated EndTxn of one publish arrives in the middle of the next."""
    rig, out = Rig(kafka), topic("out")
    with outside(kafka) as outsider:
        identity = str(rig.identity())
        seen: list[object] = []
        answers: list[int] = []

        def hook(reached: FaultPoint) -> None:
            if reached is FaultPoint.ALL_SENT_NOT_COMMITTED and not seen:
                seen.append(outsider.state(identity))
            elif reached is FaultPoint.HALF_SENT and seen:
                answers.append(outsider.end(identity, commit=True, as_seen=seen[0]))

        publisher = rig.publisher(out, faults=hook)
        publisher.take_over()
        publisher.send(marker(1, 2), [block(out, [b"a", b"b"])])
        assert publisher.take_over() == marker(1, 2)
        publisher.send(marker(2, 2), [block(out, [b"c", b"d"])])
        assert answers
        assert answers[0] != 0, "the broker refuses the late request: its epoch is older"
        assert publisher.take_over() == marker(2, 2)
        assert publisher.wait_visible(20_000)
    assert values(read_committed(kafka, out)) == [b"a", b"b", b"c", b"d"]
    publisher.close()


def test_a_transactional_id_that_the_broker_forgot_is_made_again(kafka: str, topic: TopicFactory) -> None:
    """Markers are kept by the group, not by the transactional id: a new one of the same name goes on."""
    rig, out = Rig(kafka), topic("out")
    first = rig.publisher(out)
    first.take_over()
    first.send(marker(1, 1), [block(out, [b"a"])])
    first.close()
    later = Rig(kafka, job=str(rig.job)).publisher(out)
    assert later.take_over() == marker(1, 1)
    later.close()
