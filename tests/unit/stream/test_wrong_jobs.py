"""Mistakes are told before anything runs: the step, the value, and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from processor import (
    Context,
    Count,
    Guarantee,
    Job,
    KeyedCoProcess,
    KeyedProcess,
    SideOutput,
    Skip,
    Sum,
    ValueState,
)
from processor.errors import JobError
from tests.unit.stream.ends import ListSink, ListSource


@dataclass(frozen=True)
class Click:
    user: str
    at_ms: int


@dataclass(frozen=True)
class Order:
    customer: str


WORD: Any = 5


class Socket:
    """Nothing that can be encoded."""


class Watch(KeyedProcess[str, Click, int]):
    seen = ValueState(int)
    alerts = SideOutput(str)

    def on_record(self, value: Click, /, context: Context[str, int]) -> None: ...


class Enrich(KeyedCoProcess[str, Click, Order, int]):
    def on_left(self, value: Click, /, context: Context[str, int]) -> None: ...

    def on_right(self, value: Order, /, context: Context[str, int]) -> None: ...


class Anything(KeyedCoProcess[str, Any, Any, int]): ...


class Unkeepable(KeyedProcess[str, Click, int]):
    socket = ValueState(Socket)


class Untyped:
    def create(self):
        return 0

    def add(self, total, value, /):
        return total

    def merge(self, left, right, /):
        return left

    def result(self, total, /):
        return total


class Orders(Untyped):
    def create(self) -> int:
        return 0

    def add(self, total: int, value: Order, /) -> int:
        return total


def takes_order(order: Order) -> str:
    return order.customer


def gives_int(click: Click) -> int:
    return 1


def gives_user(click: Click) -> str:
    return click.user


def gives_bool(click: Click) -> bool:
    return True


def gives_float(click: Click) -> float:
    return 1.0


def yields(click: Click) -> Iterator[str]:
    yield click.user


def gives_socket(click: Click) -> Socket:
    return Socket()


async def later(click: Click) -> str:
    return click.user


class Start:
    """A job with what the mistakes need."""

    def __init__(self) -> None:
        self.job = Job("j")
        self.clicks: Any = self.job.read("clicks", ListSource(Click))
        self.keyed: Any = self.clicks.key_by("by", lambda c: c.user)
        self.other: Any = Job("k").read("clicks", ListSource(Click))
        self.orders: Any = self.job.read("orders", ListSource(Order)).key_by(
            "by-customer", lambda o: o.customer
        )


MISTAKES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "two steps of one name": (
        lambda s: s.clicks.map("by", gives_int),
        "have the name 'by': .* 'key by'.*another name",
    ),
    "an empty name": (lambda s: s.clicks.map("", gives_int), "name of a step is empty"),
    "a name with blanks": (lambda s: s.clicks.map(" a", gives_int), "begins or ends with a blank"),
    "a name with control characters": (lambda s: s.clicks.map("a\nb", gives_int), "cannot be printed"),
    "a long name": (lambda s: s.clicks.map("x" * 101, gives_int), "takes 101 characters"),
    "a name that is long once escaped": (
        lambda s: s.clicks.map("字" * 12, gives_int),
        "takes 108 characters",
    ),
    "no name": (lambda s: s.clicks.map(gives_int, gives_int), "which is no str"),
    "no function": (lambda s: s.clicks.map("m", 5), "step 'm': the function is 5, which cannot be called"),
    "an async function": (lambda s: s.clicks.map("m", later), "step 'm'.*async"),
    "a generator as map": (lambda s: s.clicks.map("m", yields), "step 'm'.*generator.*flat_map"),
    "a function of other values": (
        lambda s: s.clicks.map("m", takes_order),
        "step 'm': the function takes Order, and the stream has values of type Click",
    ),
    "a filter of other values": (lambda s: s.clicks.filter("f", takes_order), "step 'f'.*takes Order"),
    "a key function of other values": (lambda s: s.clicks.key_by("k", takes_order), "step 'k'.*takes Order"),
    "event time of other values": (
        lambda s: s.clicks.event_time(takes_order, disorder=timedelta(0)),
        "step 'clicks'.*takes Order",
    ),
    "returns against the annotation": (
        lambda s: s.clicks.map("m", gives_int).returns(str),
        r"step 'm': \.returns\(str\) contradicts .* int",
    ),
    "a key that is none": (
        lambda s: s.clicks.key_by("k", gives_float),
        "step 'k': .* returns float.*Keys are",
    ),
    "a union of two types": (
        lambda s: s.clicks.union("u", s.job.read("o", ListSource(Order))),
        "step 'u': a union of values of type Click and Order",
    ),
    "a union with another job": (lambda s: s.clicks.union("u", s.other), "step 'u'.*stream of job 'k'"),
    "a union with no stream": (lambda s: s.clicks.union("u", 5), "step 'u'.*no stream"),
    "a partition that is no number": (
        lambda s: s.clicks.partition_by("p", gives_user),
        "step 'p': the function gives str, and a whole number is needed",
    ),
    "a partition without a function": (lambda s: s.clicks.partition_by("p", 3), "step 'p'.*cannot be called"),
    "a sink of other values": (
        lambda s: s.clicks.write("w", ListSink(Order)),
        "step 'w': the sink writes values of type Order, and the stream has Click",
    ),
    "no sink": (lambda s: s.clicks.write("w", ListSource(Click)), "step 'w'.*no sink"),
    "a sink's class": (lambda s: s.clicks.write("w", ListSink), "step 'w'.*no sink"),
    "a weaker sink": (
        lambda s: s.clicks.write("w", ListSink(Click, Guarantee.AT_LEAST_ONCE)),
        "step 'w': the sink gives at-least-once, and the job asks for exactly-once.*guarantee=Guarantee.AT_LEAST",
    ),
    "a sink weaker than accepted": (
        lambda s: s.clicks.write("w", ListSink(Click, Guarantee.NONE), guarantee=Guarantee.AT_LEAST_ONCE),
        "step 'w': the sink gives none",
    ),
    "no source": (lambda s: s.job.read("r", ListSink(Click)), "step 'r'.*no source"),
    "a source's class": (lambda s: s.job.read("r", ListSource), "step 'r'.*no source"),
    "an instance of a process": (
        lambda s: s.keyed.process("p", Watch()),
        "step 'p'.*instance of Watch.*partial",
    ),
    "a process that is none": (
        lambda s: s.keyed.process("p", Socket),
        "step 'p'.*not derived from KeyedProcess",
    ),
    "a factory that does not say": (
        lambda s: s.keyed.process("p", lambda: Watch()),
        "step 'p'.*does not say what class",
    ),
    "a process of other values": (
        lambda s: s.job.read("o", ListSource(Order)).key_by("k", takes_order).process("p", Watch),
        "step 'p': Watch takes values of type Click, and the stream has Order",
    ),
    "a process of other keys": (
        lambda s: s.clicks.key_by("k", gives_int).process("p", Watch),
        "step 'p': Watch takes keys of type str, and the stream has int",
    ),
    "two streams with keys of two types": (
        lambda s: s.clicks.key_by("k", gives_int).connect(s.clicks.key_by("l", gives_user)),
        "step 'k': the keys are of type int, and those of the other stream, of step 'l', of type str",
    ),
    "two streams of which one has True for a key, and one has 1": (
        lambda s: s.clicks.key_by("k", gives_int).connect(s.clicks.key_by("l", gives_bool)),
        "step 'k': .* int, .* of type bool: they would never meet",
    ),
    "connect without a key": (lambda s: s.clicks.connect(s.keyed), "step 'clicks': what follows needs a key"),
    "connect with a stream without a key": (
        lambda s: s.keyed.connect(s.clicks),
        "step 'by': connect is given .* no stream with a key.*key_by",
    ),
    "connect with a stream of another job": (
        lambda s: s.keyed.connect(s.other.key_by("k", gives_user)),
        "step 'by': connect is given a stream of job 'k'",
    ),
    "a left stream of other values": (
        lambda s: s.orders.connect(s.orders).process("p", Enrich),
        "step 'p': Enrich takes values of type Click, and the left stream has Order",
    ),
    "a right stream of other values": (
        lambda s: s.keyed.connect(s.keyed).process("p", Enrich),
        "step 'p': Enrich takes values of type Order, and the right stream has Click",
    ),
    "left and right the other way round": (
        lambda s: s.orders.connect(s.keyed).process("p", Enrich),
        "step 'p': Enrich takes values of type Click, and the left stream has Order",
    ),
    "connected streams of other keys": (
        lambda s: s.clicks.key_by("k", gives_int).connect(s.orders).process("p", Enrich),
        "step 'p': Enrich takes keys of type str, and the left stream has int",
    ),
    "two streams into a function of one": (
        lambda s: s.keyed.connect(s.orders).process("p", Watch),
        "step 'p'.*Watch, which is not derived from KeyedCoProcess.*two that connect",
    ),
    "one stream into a function of two": (
        lambda s: s.keyed.process("p", Enrich),
        "step 'p'.*Enrich, which is not derived from KeyedProcess.*one stream",
    ),
    "an instance of a function of two": (
        lambda s: s.keyed.connect(s.orders).process("p", Enrich()),
        "step 'p'.*instance of Enrich",
    ),
    "values on the right that cannot cross": (
        lambda s: s.keyed.connect(s.clicks.map("m", gives_socket).key_by("k", lambda v: "x")).process(
            "p", Anything
        ),
        "step 'k': values of type Socket cross to another subtask",
    ),
    "state that cannot be kept": (
        lambda s: s.keyed.process("p", Unkeepable),
        "step 'p'.*'socket' of Unkeepable",
    ),
    "values that cannot cross": (
        lambda s: s.clicks.map("m", gives_socket).key_by("k", lambda v: 1).aggregate("a", Count()),
        "step 'k': values of type Socket cross to another subtask",
    ),
    "a keyed step without a key": (
        lambda s: s.clicks.process("p", Watch),
        "step 'clicks': what follows needs a key.*key_by",
    ),
    "a keyed step behind map": (
        lambda s: s.keyed.map("m", gives_int).aggregate("a", Count()),
        "step 'm': what follows needs a key",
    ),
    "event time behind another step": (
        lambda s: s.clicks.filter("f", bool).event_time(gives_int, disorder=timedelta(0)),
        "step 'f': event_time stands behind another step.*read",
    ),
    "a side output of another class": (
        lambda s: s.keyed.process("p", Watch).side(SideOutput(int)),
        "step 'p'.*no side output.*alerts",
    ),
    "an aggregate's class": (lambda s: s.keyed.aggregate("a", Count), "step 'a'.*a class.*instance"),
    "no aggregate": (lambda s: s.keyed.aggregate("a", 5), "step 'a'.*it has no create"),
    "totals of no known type": (
        lambda s: s.keyed.aggregate("a", Untyped()),
        "step 'a'.*Untyped does not say.*create",
    ),
    "an aggregate of other values": (
        lambda s: s.keyed.aggregate("a", Orders()),
        "step 'a'.*adds values of type Order",
    ),
    "a negative disorder": (
        lambda s: s.clicks.event_time(gives_int, disorder=timedelta(seconds=-1)),
        "step 'clicks': disorder is",
    ),
    "disorder without a unit": (
        lambda s: s.clicks.event_time(gives_int, disorder=5),
        "step 'clicks'.*no timedelta",
    ),
    "no idle time": (
        lambda s: s.clicks.event_time(gives_int, disorder=timedelta(0), idle_after=timedelta(0)),
        "step 'clicks': idle_after is",
    ),
    "event time twice": (
        lambda s: [s.clicks.event_time(gives_int, disorder=timedelta(0)) for _ in range(2)],
        "step 'clicks': event_time is given twice",
    ),
    "a policy that is none": (
        lambda s: s.clicks.map("m", gives_int, on_error="skip"),
        "step 'm': on_error.*'skip'",
    ),
    "a policy's class": (lambda s: s.clicks.map("m", gives_int, on_error=Skip), "step 'm': on_error"),
    "parallelism 0": (lambda s: s.clicks.map("m", gives_int, parallelism=0), "step 'm': parallelism.*is 0"),
    "parallelism beyond the maximum": (lambda s: s.clicks.map("m", gives_int, parallelism=129), "129.*128"),
    "parallelism of True": (lambda s: s.clicks.map("m", gives_int, parallelism=True), "is True"),
    "a job's parallelism": (lambda s: Job("x", parallelism=200), "parallelism of job 'x' is 200"),
    "max parallelism 0": (lambda s: Job("x", max_parallelism=0), "max_parallelism of job 'x' is 0"),
    "a job without a name": (lambda s: Job(""), "name of a job is empty"),
    "a job's policy": (lambda s: Job("x", on_error=WORD), "on_error of job 'x' is 5"),
    "a job that writes nothing": (lambda s: s.job.graph(), "job 'j' writes nothing"),
    "a job that reads nothing": (lambda s: Job("x").graph(), "job 'x' reads nothing"),
    "two audits": (lambda s: [s.job.audit(Count()) for _ in range(2)], "two audits"),
    "an audit that is none": (lambda s: s.job.audit(None), "audit of job 'j' is None"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_is_told_before_anything_runs(mistake):
    make, says = MISTAKES[mistake]
    with pytest.raises(JobError) as caught:
        make(Start())
    assert re.search(says, str(caught.value), re.DOTALL), str(caught.value)
    assert caught.value.remedy, "an error says what to do"


def test_a_refused_step_leaves_its_name_free():
    start = Start()
    with pytest.raises(JobError):
        start.clicks.map("m", takes_order)
    start.clicks.map("m", gives_int).write("w", ListSink(int))
    assert [*start.job.graph().steps] == ["clicks", "by", "orders", "by-customer", "m", "w"]
    assert Sum[int](lambda v: v).create() == 0
