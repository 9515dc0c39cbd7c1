"""Which subtask sends to which."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor import Count, Job
from processor.ids import SubtaskId
from processor.plan.chaining import plan
from processor.plan.graph import EdgeKind
from processor.plan.subtasks import links, pairs, subtasks
from tests.unit.stream.ends import ListSink, ListSource

sizes = st.integers(1, 12)


@pytest.mark.parametrize("kind", [EdgeKind.BROADCAST, EdgeKind.REBALANCE, EdgeKind.PARTITIONED])
def test_every_producer_reaches_every_consumer(kind):
    assert pairs(kind, 2, 3) == ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2))


@given(sizes, sizes)
def test_a_keyed_edge_links_every_producer_with_every_consumer(producers, consumers):
    assert pairs(EdgeKind.KEYED, producers, consumers) == tuple(
        (p, c) for p in range(producers) for c in range(consumers)
    )


@given(sizes, sizes)
def test_a_forward_edge_links_every_subtask_and_keeps_order_where_it_can(producers, consumers):
    found = pairs(EdgeKind.FORWARD, producers, consumers)
    assert list(found) == sorted(set(found))
    assert {p for p, _ in found} == set(range(producers)), "every producer has somebody to send to"
    assert {c for _, c in found} == set(range(consumers)), "every consumer gets something"
    if producers >= consumers:
        assert len(found) == producers, "each producer has one consumer, so its order stays"
    else:
        assert len(found) == consumers, "each consumer has one producer"
    loads = [sum(c == consumer for _, c in found) for consumer in range(consumers)]
    assert max(loads) - min(loads) <= 1, "evenly"


def test_equal_parallelism_links_twins():
    assert pairs(EdgeKind.FORWARD, 3, 3) == ((0, 0), (1, 1), (2, 2))


def test_links_name_subtasks_of_both_chains():
    job = Job("j")
    read = job.read("read", ListSource(str), parallelism=2)
    read.key_by("by", lambda v: v).aggregate("count", Count(), parallelism=1).write(
        "out", ListSink(), parallelism=1
    )
    execution = plan(job.graph(), 2)
    assert subtasks(execution)[:2] == (SubtaskId("read", 0), SubtaskId("read", 1))  # type: ignore[arg-type]
    for edge, channel in enumerate(execution.channels):
        for link in links(execution, edge):
            assert (link.edge, link.producer.chain, link.consumer.chain) == (
                edge,
                channel.producer,
                channel.consumer,
            )
            assert link.producer in subtasks(execution)
            assert link.consumer in subtasks(execution)
