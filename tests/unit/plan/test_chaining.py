"""Which steps share a thread: forward, one input, the same parallelism; everything else is an edge."""

from __future__ import annotations

import pytest

from processor import Context, Count, Job, KeyedCoProcess, KeyedProcess, SideOutput, ValueState
from processor.errors import JobError
from processor.ids import StepName
from processor.plan.chaining import plan
from processor.plan.graph import EdgeKind
from processor.protocol.entries import JobShape
from tests.unit.stream.ends import ListSink, ListSource


def planned(job: Job, parallelism: int = 2):
    return plan(job.graph(), parallelism)


def shape(execution):
    """Chains as lists of step names."""
    return {name: [step.name for step in chain.steps] for name, chain in execution.chains.items()}


def channels(execution):
    return [(channel.producer, channel.consumer, channel.kind) for channel in execution.channels]


def test_forward_steps_of_one_parallelism_are_one_chain():
    job = Job("j")
    job.read("read", ListSource(str)).map("a", str.upper).filter("b", bool).write("out", ListSink(str))
    execution = planned(job)
    assert shape(execution) == {"read": ["read", "a", "b", "out"]}
    assert execution.channels == ()
    chain = execution.chains["read"]
    assert [(edge.origin, edge.target) for edge in chain.inner] == [("read", "a"), ("a", "b"), ("b", "out")]
    assert (chain.inputs, chain.outputs, chain.parallelism) == ((), (), 2)


def test_a_keyed_edge_always_cuts_also_with_one_subtask():
    job = Job("j")
    read = job.read("read", ListSource(str))
    read.key_by("by", lambda v: v).aggregate("count", Count()).write("out", ListSink())
    execution = planned(job, parallelism=1)
    assert shape(execution) == {"read": ["read", "by"], "count": ["count", "out"]}
    assert channels(execution) == [("read", "count", EdgeKind.KEYED)]
    (output,) = execution.chains["read"].outputs
    assert (output.edge, output.step, output.output) == (0, "by", "")
    (entry,) = execution.chains["count"].inputs
    assert (entry.edge, entry.input) == (0, 0)


def test_another_parallelism_cuts():
    job = Job("j")
    job.read("read", ListSource(str), parallelism=3).map("a", str.upper).write("out", ListSink(str))
    execution = planned(job)
    assert shape(execution) == {"read": ["read"], "a": ["a", "out"]}
    assert {name: chain.parallelism for name, chain in execution.chains.items()} == {"read": 3, "a": 2}
    assert channels(execution) == [("read", "a", EdgeKind.FORWARD)]


def test_records_with_keys_that_change_subtask_go_by_key_group():
    """Spread by whole batches, two records of one key could overtake each other."""
    job = Job("j")
    counted = job.read("read", ListSource(str)).key_by("by", lambda v: v).aggregate("count", Count())
    counted.map("a", lambda c: c, parallelism=3).write("out", ListSink(), parallelism=3)
    assert channels(planned(job)) == [("read", "count", EdgeKind.KEYED), ("count", "a", EdgeKind.KEYED)]


def test_a_union_begins_a_chain_with_an_input_for_each_stream():
    job = Job("j")
    one, two = job.read("one", ListSource(str)), job.read("two", ListSource(str))
    one.union("both", two, one.map("upper", str.upper)).write("out", ListSink(str))
    execution = planned(job)
    assert shape(execution) == {"one": ["one", "upper"], "two": ["two"], "both": ["both", "out"]}
    assert channels(execution) == [
        ("one", "both", EdgeKind.FORWARD),
        ("two", "both", EdgeKind.FORWARD),
        ("one", "both", EdgeKind.FORWARD),
    ]
    assert [(entry.edge, entry.input) for entry in execution.chains["both"].inputs] == [
        (0, 0),
        (1, 1),
        (2, 2),
    ]
    assert [(out.edge, out.step) for out in execution.chains["one"].outputs] == [(0, "one"), (2, "upper")]


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_what_is_spread_by_the_author_is_no_chain_whatever_the_parallelism(parallelism):
    job = Job("j")
    read = job.read("read", ListSource(str), parallelism=2)
    read.rebalance("spread", parallelism=parallelism).write("out", ListSink(str), parallelism=parallelism)
    numbered = read.key_by("by", lambda v: v).partition_by("deal", len, parallelism=parallelism)
    numbered.write("out-too", ListSink(str), parallelism=parallelism)
    execution = planned(job)
    assert channels(execution) == [
        ("read", "spread", EdgeKind.REBALANCE),
        ("read", "deal", EdgeKind.PARTITIONED),
    ]
    assert shape(execution)["spread"] == ["spread", "out"]
    assert [channel.partition for channel in execution.channels] == [None, len]
    assert not any(channel.overtakable for channel in execution.channels)


class Joined(KeyedCoProcess[str, str, str, str]):
    seen = ValueState(int)


def test_connected_streams_meet_by_key_group_also_when_they_are_one_stream():
    job = Job("j")
    one = job.read("one", ListSource(str)).key_by("by-one", lambda v: v)
    two = job.read("two", ListSource(str), parallelism=3).key_by("by-two", lambda v: v)
    one.connect(two).process("joined", Joined).write("out", ListSink(str))
    one.connect(one).process("itself", Joined).write("out-too", ListSink(str))
    execution = planned(job)
    keyed = EdgeKind.KEYED
    assert channels(execution) == [
        ("two", "by-two", EdgeKind.FORWARD),
        ("one", "joined", keyed),
        ("by-two", "joined", keyed),
        ("one", "itself", keyed),
        ("one", "itself", keyed),
    ]
    assert [(entry.edge, entry.input) for entry in execution.chains["joined"].inputs] == [(1, 0), (2, 1)]
    assert [(entry.edge, entry.input) for entry in execution.chains["itself"].inputs] == [(3, 0), (4, 1)]
    assert execution.shape.stateful["joined"] == {"seen": "int"}


class Two(KeyedProcess[str, str, str]):
    odd = SideOutput(str)

    def on_record(self, value: str, /, context: Context[str, str]) -> None: ...


def test_several_readers_and_side_outputs_are_branches_of_one_chain():
    job = Job("j")
    two = job.read("read", ListSource(str)).key_by("by", lambda v: v).process("two", Two)
    two.write("a", ListSink(str))
    two.side(Two.odd).map("b", str.upper).write("c", ListSink(str))
    two.key_by("again", lambda v: v).aggregate("count", Count()).write("d", ListSink())
    execution = planned(job)
    assert shape(execution) == {
        "read": ["read", "by"],
        "two": ["two", "a", "b", "c", "again"],
        "count": ["count", "d"],
    }
    inner = [(edge.origin, edge.output, edge.target) for edge in execution.chains["two"].inner]
    assert inner == [("two", "", "a"), ("two", "odd", "b"), ("b", "", "c"), ("two", "", "again")]


def test_the_plan_knows_its_sinks_sources_and_shape():
    job = Job("j", max_parallelism=16)
    read = job.read("read", ListSource(str))
    read.key_by("by", lambda v: v).aggregate("count", Count()).write("out", ListSink(), parallelism=1)
    execution = planned(job, parallelism=4)
    assert [(step.name, parallelism) for step, parallelism in execution.sinks()] == [("out", 1)]
    assert [step.name for step in execution.sources()] == ["read"]
    assert execution.shape == JobShape(
        max_parallelism=16,
        parallelism={StepName("read"): 4, StepName("count"): 4, StepName("out"): 1},
        stateful={StepName("count"): {"total": "int"}},
        sources=(StepName("read"),),
    )


def test_the_plan_of_a_job_is_the_same_every_time():
    def job():
        job = Job("j")
        read = job.read("read", ListSource(str))
        read.map("a", str.upper).union("u", read).key_by("k", lambda v: v).aggregate("c", Count()).write(
            "o", ListSink()
        )
        return planned(job)

    one, two = job(), job()
    assert shape(one) == shape(two)
    assert one.channels == two.channels
    assert [one.chains[n].inputs for n in one.chains] == [two.chains[n].inputs for n in two.chains]


@pytest.mark.parametrize("parallelism", [0, 129])
def test_a_parallelism_the_job_cannot_have_is_refused(parallelism):
    job = Job("j")
    job.read("read", ListSource(str)).write("out", ListSink(str))
    with pytest.raises(JobError, match=f"step 'read': parallelism {parallelism} is outside of 1 to 128"):
        planned(job, parallelism=parallelism)
