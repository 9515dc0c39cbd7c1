"""Requests that reach a real broker too late: what they do to a plain loop, and to a publisher of ours.

The client repeats a request that was not answered in time. The first copy is still under way, on a connection that
nobody uses any more, and reaches the broker when the next transaction is open. Where one producer id and epoch stand
for both, it ends that one: a plain loop writes half a transaction, or loses one without an error. A publisher of ours
under the same treatment does neither, for every transaction has a producer of its own (R12).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pytest

from connectors.kafka.dev_broker import BrokerProcess
from connectors.kafka.dev_jars import DEFAULT_VERSION
from processor.contracts.sink import Publisher
from processor.errors import LogConflict, Retriable
from processor.fault_points import FaultPoint
from processor.ids import Marker
from processor.records.rows import RowBlock
from tests.contracts.kafka_proxy import KafkaProxy, proxied_broker
from tests.contracts.kafka_rig import Rig, block, marker, read_committed, values
from tests.contracts.kafka_wire import Api
from tests.contracts.plain_loop import PlainLoop
from tests.contracts.proxy_rules import Fate, Rule
from tests.topics import create_topic

pytestmark = pytest.mark.kafka

BATCH = 10
RECORDS = 30
TRIES_MAX = 20
FENCED = (47, 90)
"""Error codes of a broker to a producer whose epoch is an old one: INVALID_PRODUCER_EPOCH, PRODUCER_FENCED."""

Proxied = tuple[BrokerProcess, KafkaProxy]
FORGETS_PENDING_MARKERS = int(DEFAULT_VERSION.partition(".")[0]) < 4
REPEATED = [Fate.LATE, Fate.TWICE]
"""By the client itself, which has waited in vain for the first copy; or on its way."""


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    with proxied_broker(tmp_path_factory.mktemp("proxied") / "broker") as both:
        yield both


class Copied:
    """Numbers 0 to RECORDS in a topic, and a plain loop that copies them by way of the proxy."""

    def __init__(self, proxied: Proxied) -> None:
        broker, self.proxy = proxied
        self.bootstrap = broker.bootstrap
        topic_in, self.topic_out = create_topic(self.bootstrap, "in"), create_topic(self.bootstrap, "out")
        Rig(self.bootstrap).write(topic_in, [(0, b"%d" % number) for number in range(RECORDS)])
        self.loop = PlainLoop(self.proxy.bootstrap, topic_in, self.topic_out, batch=BATCH)

    def numbers(self) -> list[int]:
        """What a reader of committed records sees now."""
        return [json.loads(value)["n"] for value in values(read_committed(self.bootstrap, self.topic_out))]


@pytest.mark.parametrize("fate", REPEATED)
def test_r12_a_late_commit_tears_the_next_transaction_of_a_loop_with_one_producer(
    proxied: Proxied, fate: Fate
) -> None:
    copied = Copied(proxied)
    late = copied.proxy.catch(Rule(api=Api.END_TXN, fate=fate, transactional_id=copied.loop.transactional_id))
    copied.loop.transaction()
    seen: list[list[int]] = []

    def let_it_arrive() -> None:
        if not seen:
            late.release()
            assert late.wait_delivered() == 0, "the broker takes it for the end of this transaction"
            seen.append(copied.numbers())

    copied.loop.transaction(half_way=let_it_arrive)
    copied.loop.transaction()
    copied.loop.close()
    assert seen == [list(range(BATCH + BATCH // 2))], (
        "a reader saw half a transaction, which nobody had ended"
    )
    assert copied.loop.undone == ["INVALID_TXN_STATE"]
    doubled = range(BATCH, BATCH + BATCH // 2)
    assert sorted(copied.numbers()) == sorted([*range(RECORDS), *doubled])


@pytest.mark.parametrize("fate", REPEATED)
def test_r12_a_late_abort_loses_the_next_transaction_of_a_loop_with_one_producer(
    proxied: Proxied, fate: Fate
) -> None:
    copied = Copied(proxied)
    copied.loop.transaction()
    late = copied.proxy.catch(Rule(api=Api.END_TXN, fate=fate, transactional_id=copied.loop.transactional_id))
    copied.loop.transaction_given_up()

    def let_it_arrive() -> None:
        late.release()
        assert late.wait_delivered() == 0, "the broker takes it for the end of this transaction"

    copied.loop.transaction(before_offsets=let_it_arrive)
    copied.loop.transaction()
    copied.loop.close()
    assert copied.loop.undone == [], "nobody told the loop"
    assert copied.numbers() == [*range(BATCH), *range(2 * BATCH, RECORDS)]


def publish(publisher: Publisher, wanted: Marker, rows: Sequence[RowBlock]) -> None:
    """As the engine does it (R11): take over, read, compare, send; again while the answer is unclear."""
    for _ in range(TRIES_MAX):
        try:
            if publisher.take_over() == wanted:
                return
            publisher.send(wanted, rows)
            return
        except Retriable:
            continue
    raise AssertionError(f"{wanted} was not published in {TRIES_MAX} tries")


@pytest.mark.parametrize("point", [FaultPoint.HALF_SENT, FaultPoint.ALL_SENT_NOT_COMMITTED])
@pytest.mark.parametrize("fate", REPEATED)
def test_r12_a_late_commit_does_nothing_to_a_publisher_of_ours(
    proxied: Proxied, fate: Fate, point: FaultPoint
) -> None:
    broker, proxy = proxied
    # So that the client, as that of the loop does, gives the first copy up and sends another.
    rig, out = Rig(proxy.bootstrap, publish_timeout="1s"), create_topic(broker.bootstrap, "out")
    codes: list[int] = []

    def let_it_arrive(reached: FaultPoint) -> None:
        if reached is point and committed and not codes:
            late.release()
            codes.append(late.wait_delivered())

    committed: list[bool] = []
    publisher = rig.publisher(out, faults=let_it_arrive)
    publisher.take_over()
    publisher.send(marker(1, 0), [])
    late = proxy.catch(Rule(api=Api.END_TXN, fate=fate, transactional_id=str(rig.identity())))
    publish(publisher, marker(2, 2), [block(out, [b"a", b"b"])])
    committed.append(True)
    publish(publisher, marker(3, 2), [block(out, [b"c", b"d"])])
    assert codes
    assert codes[0] in FENCED, "the epoch of every take-over is a new one"
    assert publisher.wait_visible(20_000)
    assert values(read_committed(broker.bootstrap, out)) == [b"a", b"b", b"c", b"d"]
    publisher.close()


def test_r15_a_late_marker_of_an_older_transaction_is_refused_and_does_no_harm_unnoticed(
    proxied: Proxied,
) -> None:
    """It comes when the next one's marker is there and not committed. Before Kafka 4 the group coordinator keeps what
    is pending by producer id alone: refusing the late one, it forgets the other, and from then on answers with an old
    marker until it reads its log again. The publisher notices, and stops loudly."""
    broker, proxy = proxied
    rig, out = Rig(proxy.bootstrap), create_topic(broker.bootstrap, "out")
    codes: list[int] = []

    def let_it_arrive(reached: FaultPoint) -> None:
        if reached is FaultPoint.ALL_SENT_NOT_COMMITTED and committed and not codes:
            late.release()
            codes.append(late.wait_delivered())

    committed: list[bool] = []
    publisher = rig.publisher(out, faults=let_it_arrive)
    publish(publisher, marker(1, 0), [])
    late = proxy.catch(Rule(api=Api.TXN_OFFSET_COMMIT, fate=Fate.TWICE, transactional_id=str(rig.identity())))
    publish(publisher, marker(2, 1), [block(out, [b"a"])])
    committed.append(True)
    if FORGETS_PENDING_MARKERS:
        with pytest.raises(LogConflict):
            publish(publisher, marker(3, 1), [block(out, [b"b"])])
    else:
        publish(publisher, marker(3, 1), [block(out, [b"b"])])
        assert publisher.take_over() == marker(3, 1)
    assert codes
    assert codes[0] in FENCED
    assert publisher.wait_visible(20_000)
    publisher.close()
    assert values(read_committed(broker.bootstrap, out)) == [b"a", b"b"]
