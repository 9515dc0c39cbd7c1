"""Where subtasks run: everywhere the same answer, evenly spread, neighbours together."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from processor.ids import JobName, PublisherId, StepName, WorkerId
from processor.plan.chaining import plan as lay_out
from processor.plan.execution import ExecutionPlan
from processor.plan.graph import EdgeKind
from processor.plan.placement import Placement
from processor.plan.subtasks import links, subtasks
from processor.stream.job import Job
from tests.unit.task.kit import ListSource, MemorySink, Outside

OUT = StepName("out")


def layout(parallelism: int, counts: int | None = None) -> ExecutionPlan:
    job = Job("placed")
    read = job.read("read", ListSource({"a/0": ["x"]}, kind=str))
    kept = read.key_by("word", str.upper).filter("kept", bool, parallelism=counts)
    kept.write("out", MemorySink(Outside()), parallelism=counts)
    return lay_out(job.graph(), parallelism)


def workers(number: int) -> tuple[WorkerId, ...]:
    return tuple(WorkerId(index) for index in range(number))


@given(st.integers(1, 12), st.integers(1, 6))
def test_d01_every_worker_gets_its_part_of_every_chain(parallelism: int, number: int):
    plan = layout(parallelism)
    placement = Placement(plan, workers(number))
    for chain in plan.chains:
        per_worker = Counter(placement.of(subtask) for subtask in subtasks(plan) if subtask.chain == chain)
        assert per_worker.keys() <= set(workers(number))
        assert max(per_worker.values()) - min(per_worker.values()) <= 1
        assert len(per_worker) == min(parallelism, number)


@given(st.integers(1, 12), st.integers(1, 6))
def test_d01_forward_edges_between_equals_stay_in_their_worker(parallelism: int, number: int):
    plan = layout(parallelism)
    placement = Placement(plan, workers(number))
    for edge, channel in enumerate(plan.channels):
        if channel.kind is EdgeKind.FORWARD:
            for link in links(plan, edge):
                assert placement.of(link.producer) == placement.of(link.consumer)


def test_the_order_in_which_workers_are_named_does_not_matter():
    plan = layout(5)
    one, other = Placement(plan, workers(3)), Placement(plan, tuple(reversed(workers(3))))
    assert [one.of(s) for s in subtasks(plan)] == [other.of(s) for s in subtasks(plan)]


@given(st.integers(1, 6), st.integers(1, 4))
def test_r10_an_identity_is_published_by_the_worker_with_its_subtask_and_no_other(
    parallelism: int, number: int
):
    plan = layout(parallelism)
    placement = Placement(plan, workers(number))
    sink = next(chain.name for chain in plan.chains.values() if any(s.name == OUT for s in chain.steps))
    for subtask in (s for s in subtasks(plan) if s.chain == sink):
        identity = PublisherId(JobName("placed"), OUT, subtask.index)
        publishing = [worker for worker in workers(number) if placement.publishes(worker, identity)]
        assert publishing == [placement.of(subtask)]


def test_r18_what_the_job_no_longer_has_is_published_by_the_first_worker():
    placement = Placement(layout(2), workers(3))
    for identity in (
        PublisherId(JobName("placed"), OUT, 7),
        PublisherId(JobName("placed"), StepName("gone"), 0),
    ):
        assert [w for w in workers(3) if placement.publishes(w, identity)] == [WorkerId(0)]
