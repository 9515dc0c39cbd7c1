"""Mistakes that type checkers must find. Each marked line must be rejected, by both; no other may be."""

from __future__ import annotations

from datetime import timedelta

import processor
from connectors.formats import AnyJson, Json, Raw, Text
from connectors.kafka import KafkaSink, KafkaSource
from processor import (
    AggregatingState,
    BroadcastContext,
    BroadcastState,
    Context,
    Count,
    Expiry,
    Job,
    KeyedBroadcastProcess,
    KeyedCoProcess,
    KeyedProcess,
    ListState,
    MapState,
    RecordContext,
    ReducingState,
    SideOutput,
    SplitListState,
    Sum,
    Transform,
    UnionListState,
    ValueState,
)
from tests.typing.good_jobs import Alert, Click, Largest, Order, Spent, Watch

job = Job("w")
src = job.read("clicks", KafkaSource("clicks", Json(Click)))
orders = job.read("orders", KafkaSource("orders", Json(Order)))
by_user = src.key_by("k", lambda c: c.user)
counted = by_user.aggregate("c", Count())

# What the sketch of the API rejects.
src.union("u", orders)  # wrong: two types
src.write("o", KafkaSink("x", Json(Order)))  # wrong: a sink of other values
src.key_by("k", lambda c: c.at_ms).process("p", Watch)  # wrong: keys of another type
orders.key_by("k", lambda o: o.customer).process("p", Watch)  # wrong: values of another type
src.partition_by("deal", lambda c: c.user)  # wrong: no number
src.event_time(lambda c: c.nope, disorder=timedelta(1))  # wrong: no such field
src.key_by("k", lambda c: [c.user])  # wrong: a list is no key
src.map("m", lambda c: c.user).returns(int)  # wrong: contradicts the function
src.map("m", lambda c: c.user).event_time(lambda c: 1, disorder=timedelta(1))  # wrong: not behind read
by_user.process("p", Watch())  # wrong: an instance
counted.write("o", KafkaSink("x", AnyJson(), key=lambda r: r.nokey))  # wrong: no such field
counted.write("o", KafkaSink("x", Json(Order)))  # wrong: a sink of other values

# Functions of a record.
src.map("m", lambda c: c.nope)  # wrong: no such field
src.filter("f", lambda c: c.nope)  # wrong: no such field
src.filter("f", lambda c: c.user)  # wrong: a str is no bool
src.flat_map("f", lambda c: c.at_ms)  # wrong: an int is not iterable
src.map_batch("b", lambda clicks: len(clicks))  # wrong: one result for all
src.map("m", lambda a, b: a)  # wrong: two parameters
src.map(lambda c: c.user)  # wrong: no name

# Keys, state, totals.
src.process("p", Watch)  # wrong: no key
src.aggregate("c", Count())  # wrong: no key
by_user.map("m", lambda c: c.page).aggregate("c", Count())  # wrong: no key any more
src.key_by("k", lambda c: None)  # wrong: None is no key
src.key_by("k", lambda c: 1.5)  # wrong: a float is no key
by_user.aggregate("s", Sum[Click](lambda c: c.page))  # wrong: a str is no number
by_user.aggregate("s", Sum[Order](lambda o: o.cents))  # wrong: totals of other values
by_user.aggregate("l", Largest())  # wrong: totals of other values
by_user.aggregate("c", Count)  # wrong: the class
by_user.process("p", lambda: 5)  # wrong: no KeyedProcess


# Two streams into one function.
by_customer = orders.key_by("k", lambda o: o.customer)
both = by_user.connect(by_customer)
src.connect(by_customer)  # wrong: no key
by_user.connect(orders)  # wrong: no key on the other side
by_user.connect(orders.key_by("k", lambda o: o.cents))  # wrong: keys of another type
by_user.connect(by_customer, by_customer)  # wrong: three streams
both.process("p", Watch)  # wrong: a function of one stream
by_user.process("p", Spent)  # wrong: a function of two streams
by_customer.connect(by_user).process("p", Spent)  # wrong: left and right the other way round
by_user.connect(by_user).process("p", Spent)  # wrong: other values on the right
both.process("p", Spent())  # wrong: an instance
both.process(Spent)  # wrong: no name
both.map("m", lambda c: c)  # wrong: nothing but process follows
both.process("p", Spent).write("o", KafkaSink("x", Text()))  # wrong: of tuples
both.process("p", Spent).side(Watch.alerts).write("o", KafkaSink("x", Json(Order)))  # wrong: of Alerts


class Crossed(KeyedCoProcess[str, Click, Order, int]):
    seen = ValueState(int)

    def on_left(self, value: Order, /, context: Context[str, int]) -> None:  # wrong: values of the right
        return None

    def on_right(self, value: Order, /, context: Context[str, int]) -> None:
        self.seen.set(value.customer)  # wrong: not an int
        context.emit(value)  # wrong: not an int
        value.page.upper()  # wrong: of the left


class Careless(KeyedProcess[str, Click, int]):
    seen = ValueState(int)
    alerts = SideOutput(Alert)

    def on_record(self, value: Click, /, context: Context[str, int]) -> None:
        self.seen.set("one")  # wrong: not an int
        self.seen.set(self.seen.get() + 1)  # wrong: may be None
        self.alerts.emit("alert")  # wrong: not an Alert
        context.emit("seen")  # wrong: not an int
        context.timers.at_event_time("noon")  # wrong: not milliseconds
        context.key.nope()  # wrong: keys are str
        value.nope()  # wrong: no such field


class Forgetful(KeyedProcess[str, Click, int]):
    pages = ListState(str)
    latest_ms = ReducingState(int, max)
    shortest = ReducingState(str, lambda left, right: len(left))  # wrong: folds to an int
    number = ReducingState(int, str.join)  # wrong: folds str
    clicks = AggregatingState(Sum[Click](lambda c: c.at_ms))
    counted = AggregatingState(Count)  # wrong: the class
    largest = ReducingState(int)  # wrong: without a function
    visits = MapState(str, int)
    by_list = MapState(list[str], int)  # wrong: a list is no key
    by_nothing = MapState(int)  # wrong: one type of two

    def on_record(self, value: Click, /, context: Context[str, int]) -> None:
        self.pages.append(value.at_ms)  # wrong: not a str
        self.pages.extend([value.at_ms])  # wrong: not of str
        self.pages.set(value.at_ms)  # wrong: not a list
        self.pages.get().append(value.page)  # wrong: may be None
        self.pages.add(value.page)  # wrong: lists have append
        self.latest_ms.add(value.page)  # wrong: not an int
        self.latest_ms.set(value.at_ms)  # wrong: nothing to set
        context.emit(self.latest_ms.get())  # wrong: may be None
        self.clicks.add(value.page)  # wrong: not a Click
        self.visits.set(value.at_ms, 1)  # wrong: keys are str
        self.visits.set(value.page, value.page)  # wrong: not an int
        self.visits.set(value.page, self.visits.get(value.page) + 1)  # wrong: may be None
        self.visits.get(value.at_ms)  # wrong: keys are str
        context.emit(int(value.at_ms in self.visits))  # wrong: keys are str
        self.visits.items(True)  # wrong: without its name
        self.visits.items()[0][0].nope()  # wrong: keys are str
        self.visits[value.page]  # wrong: reading is get
        value.page.join(self.clicks.get() or 0)  # wrong: an int


class Lasting(KeyedProcess[str, Click, int]):
    seen = ValueState(int, timedelta(1))  # wrong: without its name
    page = ValueState(str, expires_after=60)  # wrong: without a unit
    pages = ListState(str, expires_after=Expiry("1h"))  # wrong: a word is no duration
    visits = MapState(str, int, expires_after=Expiry(timedelta(1), by="event"))  # wrong: a word is no time
    latest_ms = ReducingState(int, max, expires_after=Expiry())  # wrong: after how long?

    def on_record(self, value: Click, /, context: Context[str, int]) -> None:
        self.pages.append(value.at_ms)  # wrong: not a str


class Together(Transform[str, int]):
    waiting = SplitListState(str)
    files = UnionListState()  # wrong: of what?

    def on_record(self, value: str, /, context: RecordContext[int]) -> None:
        self.waiting.append(1)  # wrong: not a str
        self.waiting.extend(value.encode())  # wrong: not of str
        context.emit(self.waiting.get())  # wrong: not an int
        context.key.upper()  # wrong: no key
        context.timers.at_event_time(1)  # wrong: no timers
        self.waiting.get()[0].nope()  # wrong: of str


src.transform("t", Together)  # wrong: of clicks
by_user.process("t", Together)  # wrong: not for keys
src.map("m", lambda c: c.user).transform("t", Watch)  # wrong: for keys


class ByRules(KeyedBroadcastProcess[str, Click, str, int]):
    rules = BroadcastState(str, int)
    by_list = BroadcastState(list[str], int)  # wrong: a list is no key
    seen = ValueState(int)

    def on_record(self, value: Click, /, context: Context[str, int]) -> None:
        self.rules.set(value.page, 1)  # wrong: only to be read
        context.writable(self.rules).set(value.page, 1)  # wrong: only to be read
        context.emit(self.rules.get(value.page))  # wrong: may be None
        self.rules.get(value.at_ms)  # wrong: keys are str

    def on_broadcast(self, value: str, /, context: BroadcastContext) -> None:
        context.writable(self.rules).set(value, value)  # wrong: not an int
        context.writable(self.seen).set(1)  # wrong: of a key
        context.emit(1)  # wrong: every subtask would
        context.key.upper()  # wrong: no key


lines = src.map("m", lambda c: c.page)
by_user.connect_broadcast(lines)  # wrong: without broadcast
by_user.connect_broadcast(lines.broadcast("all")).process("p", Watch)  # wrong: for one stream
by_user.connect_broadcast(src.broadcast("all")).process("p", ByRules)  # wrong: of clicks
src.connect_broadcast(lines.broadcast("all"))  # wrong: no key
lines.broadcast("all").map("m", len)  # wrong: only to be connected


class Mistyped(KeyedProcess[str, Click, int]):
    def on_record(self, value: Order, /, context: Context[str, int]) -> None:  # wrong: other values
        return None


class Unkeyable(KeyedProcess[list[str], Click, int]):  # wrong: a list is no key
    pass


# Side outputs, sources, sinks, options.
by_user.process("p", Watch).side(Watch.alerts).write("o", KafkaSink("x", Json(Order)))  # wrong: of Alerts
by_user.process("p", Watch).side(Watch.seen)  # wrong: a state
by_user.process("p", Watch).write("o", KafkaSink("x", Text()))  # wrong: of ints
src.map("m", lambda c: c.user).write("o", KafkaSink("x", Raw()))  # wrong: of str
src.write("o", AnyJson())  # wrong: a format is no sink
src.write("o", KafkaSink("x", Json(Click))).map("m", lambda c: c)  # wrong: nothing follows a write
job.read("r", KafkaSink("x", Json(Click)))  # wrong: a sink
job.read("r", KafkaSource("x", AnyJson()))  # wrong: it only writes
job.read("r", KafkaSource("x", Json(Click)), on_error="skip")  # wrong: a word is no policy
job.read("r", KafkaSource("x", Json(Click)), parallelism="3")  # wrong: a word is no number
src.event_time(lambda c: c.user, disorder=timedelta(1))  # wrong: a str is no time
src.event_time(lambda c: c.at_ms, disorder=5)  # wrong: without a unit
src.event_time(lambda c: c.at_ms)  # wrong: no disorder
src.filter("f", lambda c: True).event_time(lambda c: c.at_ms, disorder=timedelta(1))  # wrong: not behind read
Job()  # wrong: no name
processor.Jobb("w")  # wrong: no such name
