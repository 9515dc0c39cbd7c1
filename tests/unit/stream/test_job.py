"""What a job's author builds becomes a graph, and runs nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

import processor
from processor import (
    Context,
    Count,
    Fail,
    Guarantee,
    Job,
    Keyed,
    KeyedProcess,
    SideOutput,
    Skip,
    Sum,
    ValueState,
)
from processor.ids import StepName
from processor.operators.running_aggregate import RunningAggregate
from processor.plan.graph import Edge, EdgeKind
from tests.unit.stream.ends import ListSink, ListSource


@dataclass(frozen=True)
class Click:
    user: str
    at_ms: int


@dataclass(frozen=True)
class Alert:
    user: str


class Watch(KeyedProcess[str, Click, int]):
    seen = ValueState(int)
    alerts = SideOutput(Alert)
    made = 0

    def __init__(self, limit: int = 3) -> None:
        type(self).made += 1
        self.limit = limit

    def on_record(self, value: Click, /, context: Context[str, int]) -> None: ...


def edges(job: Job) -> list[Edge]:
    return list(job.graph().edges)


def test_a_job_is_its_steps_in_order_and_the_edges_between_them():
    job = Job("clicks", parallelism=2, max_parallelism=8)
    clicks = job.read("read", ListSource(Click))
    clicks.filter("few", lambda c: True).map("user", lambda c: c.user).returns(str).write(
        "out", ListSink(str)
    )
    graph = job.graph()
    assert [(step.name, step.kind) for step in graph.steps.values()] == [
        ("read", "read"),
        ("few", "filter"),
        ("user", "map"),
        ("out", "write"),
    ]
    assert (graph.name, graph.parallelism, graph.max_parallelism) == ("clicks", 2, 8)
    assert [(edge.origin, edge.target, edge.value_type) for edge in graph.edges] == [
        ("read", "few", Click),
        ("few", "user", Click),
        ("user", "out", str),
    ]
    assert {edge.kind for edge in graph.edges} == {EdgeKind.FORWARD}


def test_a_keyed_step_is_reached_by_key_and_what_follows_keeps_the_keys():
    job = Job("clicks")
    keyed = job.read("read", ListSource(Click)).key_by("by-user", lambda c: c.user)
    keyed.filter("few", lambda c: True).process("watch", Watch).map("plus", lambda n: n + 1).write(
        "out", ListSink()
    )
    found = {edge.target: (edge.kind, edge.keyed) for edge in edges(job)}
    assert found == {
        "by-user": (EdgeKind.FORWARD, False),
        "few": (EdgeKind.FORWARD, True),
        "watch": (EdgeKind.KEYED, True),
        "plus": (EdgeKind.FORWARD, True),
        "out": (EdgeKind.FORWARD, True),
    }


def test_states_are_described_with_their_types():
    job = Job("clicks")
    keyed = job.read("read", ListSource(Click)).key_by("by-user", lambda c: c.user)
    keyed.process("watch", Watch).write("a", ListSink())
    keyed.aggregate("count", Count()).write("b", ListSink())
    steps = {str(name): step for name, step in job.graph().steps.items()}
    assert steps["watch"].states == {"seen": "int"}
    assert steps["count"].states == {"total": "int"}
    assert not any(steps[name].states for name in ("read", "by-user", "a", "b"))


def test_building_makes_no_instance_and_each_subtask_gets_its_own():
    before = Watch.made
    job = Job("clicks")
    keyed = job.read("read", ListSource(Click)).key_by("by-user", lambda c: c.user)
    keyed.process("watch", Watch).write("a", ListSink())
    keyed.process("limited", partial(Watch, 5)).write("b", ListSink())
    graph = job.graph()
    assert Watch.made == before
    make = graph.steps[StepName("limited")].make
    assert make is not None
    one, two = make(), make()
    assert Watch.made == before + 2
    assert one._function is not two._function  # type: ignore[attr-defined]
    assert one._function.limit == 5  # type: ignore[attr-defined]


def test_an_aggregate_keeps_totals_of_the_type_its_create_names():
    job = Job("clicks")
    keyed = job.read("read", ListSource(Click)).key_by("by-user", lambda c: c.user)
    keyed.aggregate("sum", Sum[Click](lambda c: c.at_ms)).write("out", ListSink())
    make = job.graph().steps[StepName("sum")].make
    assert make is not None
    assert isinstance(make(), RunningAggregate)


def user_of(click: Click) -> str:
    return click.user


def letters(text: str) -> Iterable[str]:
    return text


def test_types_come_from_returns_then_the_annotation_then_the_input():
    job = Job("types")
    clicks = job.read("read", ListSource(Click))
    clicks.map("annotated", user_of).flat_map("letters", letters).write("a", ListSink())
    clicks.map("said", lambda c: c.user).returns(str).write("b", ListSink())
    clicks.map("unknown", lambda c: c.user).write("c", ListSink())
    clicks.filter("kept", lambda c: True).write("d", ListSink())
    clicks.union("both", clicks).write("e", ListSink())
    keyed = clicks.key_by("k", user_of)
    keyed.process("p", Watch).write("f", ListSink())
    keyed.aggregate("g", Count()).write("h", ListSink())
    watched = keyed.process("q", Watch)
    watched.side(Watch.alerts).write("i", ListSink())
    found: dict[str, Any] = {edge.target: edge.value_type for edge in edges(job)}
    assert found["letters"] is str
    assert {name: found[name] for name in "abcdefhi"} == {
        "a": str,
        "b": str,
        "c": None,
        "d": Click,
        "e": Click,
        "f": int,
        "h": Keyed[str, int],
        "i": Alert,
    }


def test_a_side_output_is_an_edge_of_its_own():
    job = Job("clicks")
    watched = job.read("read", ListSource(Click)).key_by("k", user_of).process("watch", Watch)
    watched.returns(int).side(Watch.alerts).write("alerts", ListSink(Alert))
    watched.write("out", ListSink(int))
    assert {edge.target: edge.output for edge in edges(job)} == {
        "k": "",
        "watch": "",
        "alerts": "alerts",
        "out": "",
    }


def test_a_union_has_an_input_for_each_stream():
    job = Job("clicks")
    one, two = job.read("one", ListSource(Click)), job.read("two", ListSource(Click))
    one.union("both", two, one).write("out", ListSink(Click))
    assert [(edge.origin, edge.input) for edge in edges(job) if edge.target == "both"] == [
        ("one", 0),
        ("two", 1),
        ("one", 2),
    ]


def test_event_time_belongs_to_the_read_step():
    job = Job("clicks")
    clicks = job.read("read", ListSource(Click)).event_time(
        lambda c: c.at_ms, disorder=timedelta(seconds=5), idle_after=timedelta(minutes=1)
    )
    clicks.write("out", ListSink(Click))
    event_time = job.graph().steps[StepName("read")].event_time
    assert event_time is not None
    assert (event_time.disorder_ms, event_time.idle_after_ms) == (5_000, 60_000)


def test_a_step_has_its_own_policy_and_parallelism_or_the_jobs():
    job = Job("clicks", on_error=Skip())
    clicks = job.read("read", ListSource(Click), on_error=Fail(), parallelism=3)
    clicks.map("a", user_of).write("out", ListSink(str), on_error=Fail(), parallelism=1)
    steps = job.graph().steps
    assert {name: type(step.policy) for name, step in steps.items()} == {"read": Fail, "a": Skip, "out": Fail}
    assert {name: step.parallelism for name, step in steps.items()} == {"read": 3, "a": None, "out": 1}


def test_a_weaker_sink_may_be_accepted_by_name():
    job = Job("clicks")
    weak = ListSink(Click, Guarantee.AT_LEAST_ONCE)
    job.read("read", ListSource(Click)).write("out", weak, guarantee=Guarantee.AT_LEAST_ONCE)
    assert job.graph().steps[StepName("out")].guarantee is Guarantee.AT_LEAST_ONCE


def test_a_job_names_its_audit():
    job = Job("clicks")
    job.read("read", ListSource(Click)).write("out", ListSink(Click))
    assert job.graph().audit is None
    audit = object()
    job.audit(audit)
    assert job.graph().audit is audit


def test_what_an_author_needs_can_be_imported_from_processor_and_nothing_else():
    import processor.stream as stream

    for name in stream.__all__:
        assert getattr(processor, name) is getattr(stream, name)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = processor.nonsense  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        _ = processor.JobBuilder  # type: ignore[attr-defined]
