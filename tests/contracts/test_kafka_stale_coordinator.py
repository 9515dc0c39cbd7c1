"""A group coordinator that slept through its succession answers from memory; nobody believes it (R15).

Fencing happens at the transaction coordinator, the marker is read at the group coordinator. Three brokers, the
two coordinators on different ones. While the group's is paused, a newer publisher publishes through its
successor; then an older one, still connected to the sleeper, takes over and reads as the sleeper wakes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from connectors.kafka.cluster import GroupOffset, Partition
from connectors.kafka.dev_broker import Cluster
from processor.errors import ProcessorError, Retriable
from processor.fault_points import FaultPoint
from processor.ids import Marker
from tests.contracts.coordinator_topics import lay_out_coordinators
from tests.contracts.kafka_disturbance import outside
from tests.contracts.kafka_rig import Rig, block, marker, read_committed, values
from tests.topics import create_topic
from tests.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

SUBTASKS_TRIED = 64
TRIES_MAX = 20


def group_node_of(bootstrap: str, identity: str) -> int | None:
    """The node of the group's coordinator; None while it is being chosen."""
    with outside(bootstrap) as outsider:
        return outsider.group_coordinator(identity)


def subtask_with_separate_coordinators(bootstrap: str, rig: Rig) -> tuple[int, int]:
    """A subtask whose group and transactional id have different coordinators; and the group's node id."""
    with outside(bootstrap) as outsider:
        for subtask in range(SUBTASKS_TRIED):
            group, transactions = outsider.coordinators(str(rig.identity(subtask)))
            if group != transactions:
                return subtask, group
    pytest.skip(
        "one broker of three has become the coordinator of everything: nobody can sleep through anything"
    )


def test_r15_a_marker_from_a_coordinator_that_slept_is_not_believed(
    private_cluster: Cluster, record_property: Callable[[str, object], None]
) -> None:
    lay_out_coordinators(private_cluster)
    bootstrap = private_cluster.bootstrap
    rig = Rig(bootstrap, marker_timeout="10s", take_over_timeout="30s")
    out = create_topic(bootstrap, "out", replicas=3)
    first = rig.publisher(out)  # from now on the brokers have coordinators
    first.take_over()
    first.send(marker(1, 0), [])
    first.close()
    subtask, group_node = subtask_with_separate_coordinators(bootstrap, rig)
    identity = str(rig.identity(subtask))
    sleeper = private_cluster.brokers[group_node - 1]
    awake = ",".join(each.bootstrap for each in private_cluster.brokers if each is not sleeper)

    witness_cluster = rig.settings.open("main")
    witness = witness_cluster.group(identity)
    marker_at = Partition(rig.settings.main.marker_topic, 0)
    believed: list[GroupOffset | str | None] = []
    pool = ThreadPoolExecutor(max_workers=1)

    def read_without_nonce() -> None:
        try:
            believed.append(witness.read([marker_at], 10_000)[marker_at])
        except ProcessorError as failed:
            believed.append(str(failed))

    woken = threading.Event()

    def wake_while_we_read(reached: FaultPoint) -> None:
        if reached is FaultPoint.TAKEN_OVER_MARKER_NOT_READ and asleep.is_set() and not woken.is_set():
            woken.set()
            pool.submit(read_without_nonce)
            threading.Timer(1.0, sleeper.resume).start()

    asleep = threading.Event()
    older = rig.publisher(out, subtask=subtask, faults=wake_while_we_read)
    older.take_over()
    older.send(marker(1, 1), [block(out, [b"first"])])
    assert witness.read([marker_at], 10_000)[marker_at] is not None

    sleeper.pause()
    asleep.set()
    wait_until(lambda: group_node_of(awake, identity) not in (group_node, None), 60, "succession")
    newer_rig = Rig(awake, job=str(rig.job))
    newer = newer_rig.publisher(out, subtask=subtask)
    for _ in range(TRIES_MAX):
        try:
            assert newer.take_over() == marker(1, 1)
            newer.send(marker(2, 1, attempt=2), [block(out, [b"second"])])
            break
        except Retriable:
            continue
    else:
        raise AssertionError("the newer publisher never published")

    seen: list[Marker | None] = []
    for _ in range(TRIES_MAX):
        try:
            seen.append(older.take_over())
            break
        except Retriable:
            continue
    assert woken.is_set()
    assert seen == [marker(2, 1, attempt=2)], f"a read without nonce said {believed}"
    pool.shutdown()
    record_property("without_nonce", str(believed))  # mostly the old marker: the test is not about nothing
    assert newer.wait_visible(20_000)
    assert values(read_committed(bootstrap, out)) == [b"first", b"second"]
    for each in (older, newer):
        each.close()
    witness.close()
    witness_cluster.close()
