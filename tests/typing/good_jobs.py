"""Jobs as their authors would write them. mypy strict and pyright strict must find nothing here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from connectors.formats import AnyJson, Avro, Json, Raw, Text
from connectors.kafka import KafkaSink, KafkaSource
from processor import (
    AggregatingState,
    BroadcastContext,
    BroadcastState,
    BroadcastStream,
    ConnectedStreams,
    Context,
    Count,
    Expiry,
    Fail,
    Job,
    Keyed,
    KeyedBroadcastProcess,
    KeyedCoProcess,
    KeyedProcess,
    KeyedStream,
    ListState,
    MapState,
    RecordContext,
    ReducingState,
    SideOutput,
    Skip,
    SplitListState,
    Stream,
    Sum,
    TimeDomain,
    Transform,
    UnionListState,
    ValueState,
)


@dataclass(frozen=True)
class Line:
    file: str
    no: int
    text: str


@dataclass(frozen=True)
class Click:
    user: str
    at_ms: int
    page: str


@dataclass(frozen=True)
class Order:
    customer: str
    cents: int
    at_ms: int


@dataclass(frozen=True)
class Alert:
    user: str


def words() -> Job:
    job = Job("words")
    lines = job.read("lines", KafkaSource("lines", Json(Line)))
    words = lines.flat_map("split", lambda line: line.text.split()).returns(str)
    words.key_by("by-word", lambda word: word).aggregate("count", Count()).write(
        "out", KafkaSink("counts", AnyJson(), key=lambda c: c.key)
    )
    return job


class Watch(KeyedProcess[str, Click, int]):
    seen = ValueState(int)
    last_page = ValueState(str)
    alerts = SideOutput(Alert)

    def __init__(self, limit: int = 3) -> None:
        self.limit = limit

    def on_record(self, value: Click, /, context: Context[str, int]) -> None:
        seen = (self.seen.get() or 0) + 1
        self.seen.set(seen)
        self.last_page.set(value.page)
        if seen > self.limit:
            self.alerts.emit(Alert(context.key))
        context.emit(seen)
        context.timers.at_event_time(context.timestamp_ms + 1_000)
        context.timers.at_processing_time(context.processing_time_ms + 1_000)

    def on_timer(self, time_ms: int, /, context: Context[str, int]) -> None:
        if context.timer is TimeDomain.EVENT:
            self.seen.clear()


def watched() -> Job:
    job = Job("watched", parallelism=2, max_parallelism=64, on_error=Fail())
    clicks = job.read("clicks", KafkaSource("clicks", Json(Click)), on_error=Skip()).event_time(
        lambda c: c.at_ms, disorder=timedelta(seconds=5), idle_after=timedelta(minutes=1)
    )
    by_user = clicks.key_by("by-user", lambda c: c.user)
    few = by_user.filter("few", lambda c: c.page != "/")
    seen = few.process("watch", Watch, parallelism=1)
    seen.side(Watch.alerts).write("alerts", KafkaSink("alerts", Json(Alert)))
    seen.write("seen", KafkaSink("seen", Json(int)))
    by_user.process("lately", Lately).write("lately-out", KafkaSink("lately", Json(int)))
    by_user.process("watch-again", partial(Watch, 5)).write("again", KafkaSink("again", AnyJson()))
    return job


class Largest:
    """An author's own aggregate."""

    def create(self) -> list[int]:
        return []

    def add(self, total: list[int], value: Order, /) -> list[int]:
        return [max([*total, value.cents])]

    def merge(self, left: list[int], right: list[int], /) -> list[int]:
        return [max([*left, *right])]

    def result(self, total: list[int], /) -> int:
        return total[0]


def longer(left: str, right: str) -> str:
    return max(left, right, key=len)


class Remember(KeyedProcess[str, Click, int]):
    """Every kind of state."""

    pages = ListState(str)
    latest_ms = ReducingState(int, max)
    longest = ReducingState(str, longer)
    clicks = AggregatingState(Count())
    time_ms = AggregatingState(Sum[Click](lambda c: c.at_ms))
    spread = AggregatingState(Largest())
    visits = MapState(str, int)
    by_place = MapState(tuple[str, int], Order)

    def on_record(self, value: Click, /, context: Context[str, int]) -> None:
        self.pages.append(value.page)
        self.pages.extend(page.lower() for page in [value.page])
        pages: list[str] | None = self.pages.get()
        self.pages.set((pages or [])[-3:])
        self.latest_ms.add(value.at_ms)
        self.longest.add(value.page)
        self.clicks.add(value)
        self.time_ms.add(value)
        self.spread.add(Order(value.user, 1, value.at_ms))
        latest_ms: int | None = self.latest_ms.get()
        clicks: int | None = self.clicks.get()
        context.emit((latest_ms or 0) + (clicks or 0) + (self.spread.get() or 0))
        self.visits.set(value.page, (self.visits.get(value.page) or 0) + 1)
        if value.page in self.visits:
            self.visits.remove(value.page)
        pairs: list[tuple[str, int]] = self.visits.items(ordered=True)
        self.by_place.set((value.page, value.at_ms), Order(value.user, len(pairs), value.at_ms))
        for page, at_ms in self.by_place:
            context.emit(len(page) + at_ms)
        for order in self.by_place.values(ordered=True):
            context.emit(order.cents)
        if self.time_ms.get() == 0:
            self.visits.clear()
            self.pages.clear()
            self.latest_ms.clear()
            self.clicks.clear()


A_DAY = timedelta(days=1)
SINCE_READ = Expiry(timedelta(hours=1), by=TimeDomain.EVENT, reads_renew=True)


class Lately(KeyedProcess[str, Click, int]):
    """State of every kind that expires."""

    page = ValueState(str, expires_after=A_DAY)
    pages = ListState(str, expires_after=SINCE_READ)
    visits = MapState(str, int, expires_after=A_DAY)
    latest_ms = ReducingState(int, max, expires_after=SINCE_READ)
    clicks = AggregatingState(Count(), expires_after=A_DAY)

    def on_record(self, value: Click, /, context: Context[str, int]) -> None:
        before: str | None = self.page.get()
        self.page.set(value.page)
        self.pages.append(before or "")
        self.visits.set(value.page, 1)
        self.latest_ms.add(value.at_ms)
        self.clicks.add(value)
        context.emit(self.clicks.get() or 0)


class Together(Transform[str, list[str]]):
    """Lines, a few at a time."""

    waiting = SplitListState(str)
    files = UnionListState(str)

    def __init__(self, most: int = 3) -> None:
        self.most = most

    def on_start(self, subtask: int, subtasks: int, /) -> None:
        mine: list[str] = [name for name in self.files if len(name) % subtasks == subtask]
        self.files.set(mine)

    def on_record(self, value: str, /, context: RecordContext[list[str]]) -> None:
        self.waiting.append(value)
        self.files.extend(header for header, _ in context.headers)
        if len(self.waiting) >= self.most or context.timestamp_ms < 0:
            context.emit(self.waiting.get())
            self.waiting.clear()

    def on_end(self, context: RecordContext[list[str]], /) -> None:
        context.emit(self.waiting.get())


def together(lines: Stream[str]) -> None:
    some: Stream[list[str]] = lines.transform("together", Together)
    some.map("count", len).write("counts", KafkaSink("counts", Json(int)))
    lines.transform("more", partial(Together, 9), on_error=Skip(), parallelism=2).write(
        "more-out", KafkaSink("more", AnyJson())
    )


@dataclass(frozen=True)
class Rule:
    page: str
    most: int


class ByRules(KeyedBroadcastProcess[str, Click, Rule, Alert]):
    """Clicks of a user, by rules that every subtask knows."""

    clicks = MapState(str, int)
    rules = BroadcastState(str, Rule)
    others = SideOutput(Click)

    def on_record(self, value: Click, /, context: Context[str, Alert]) -> None:
        count = (self.clicks.get(value.page) or 0) + 1
        self.clicks.set(value.page, count)
        rule: Rule | None = self.rules.get(value.page)
        if rule is None:
            self.others.emit(value)
        elif count > rule.most and value.page in self.rules:
            context.emit(Alert(context.key))
        names: list[str] = [page for page, _ in self.rules.items()]
        context.timers.at_event_time(len(names) + len(self.rules))

    def on_broadcast(self, value: Rule, /, context: BroadcastContext) -> None:
        rules = context.writable(self.rules)
        if value.most < 0 or context.timestamp_ms < 0:
            rules.remove(value.page)
        else:
            rules.set(value.page, value)


def ruled(clicks: Stream[Click], rules: Stream[Rule]) -> None:
    to_all: BroadcastStream[Rule] = rules.broadcast("to-all")
    alerts = clicks.key_by("of-user", lambda c: c.user).connect_broadcast(to_all).process("ruled", ByRules)
    alerts.write("alerts-out", KafkaSink("alerts", Json(Alert)))
    alerts.side(ByRules.others).write("others-out", KafkaSink("others", Json(Click)))


def upper(text: str) -> str:
    return text.upper()


def halves(values: Sequence[str]) -> list[str]:
    return [value[: len(value) // 2] for value in values]


def when(order: Order) -> datetime:
    return datetime.fromtimestamp(order.at_ms / 1000, UTC)


def keys_of_all_kinds(orders: Stream[Order]) -> None:
    by_customer: KeyedStream[str, Order] = orders.key_by("a", lambda o: o.customer)
    by_cents: KeyedStream[int, Order] = orders.key_by("b", lambda o: o.cents)
    by_both: KeyedStream[tuple[str, int], Order] = orders.key_by("c", lambda o: (o.customer, o.cents))
    totals: Stream[Keyed[str, int]] = by_customer.aggregate("total", Sum[Order](lambda o: o.cents))
    totals.map("value", lambda t: t.value).write("values", KafkaSink("values", Json(int)))
    by_cents.map("customer", lambda o: o.customer).write("customers", KafkaSink("customers", Text()))
    by_both.aggregate("d", Count()).map("key", lambda c: c.key[1] + c.value).write(
        "e", KafkaSink("e", AnyJson())
    )


class Spent(KeyedCoProcess[str, Click, Order, tuple[str, int]]):
    """What each customer has spent, by the page last looked at."""

    page = ValueState(str)
    cents = ValueState(int)
    without_page = SideOutput(Order)

    def __init__(self, limit: int = 0) -> None:
        self.limit = limit

    def on_left(self, value: Click, /, context: Context[str, tuple[str, int]]) -> None:
        self.page.set(value.page)
        context.timers.at_event_time(context.timestamp_ms + 1_000)

    def on_right(self, value: Order, /, context: Context[str, tuple[str, int]]) -> None:
        page = self.page.get()
        if page is None:
            self.without_page.emit(value)
            return
        spent = (self.cents.get() or 0) + value.cents
        self.cents.set(spent)
        context.emit((page, spent))

    def on_timer(self, time_ms: int, /, context: Context[str, tuple[str, int]]) -> None:
        if context.timer is TimeDomain.EVENT:
            self.page.clear()


def connected() -> Job:
    job = Job("connected")
    clicks = job.read("clicks", KafkaSource("clicks", Json(Click)))
    orders = job.read("orders", KafkaSource("orders", Json(Order)))
    by_user = clicks.key_by("by-user", lambda c: c.user)
    by_customer = orders.key_by("by-customer", lambda o: o.customer)
    both: ConnectedStreams[str, Click, Order] = by_user.connect(by_customer)
    spent = both.process("spent", Spent)
    spent.map("cents", lambda pair: pair[1]).write("out", KafkaSink("spent", Json(int)))
    spent.side(Spent.without_page).write("rest", KafkaSink("rest", Json(Order)))
    both.process("limited", partial(Spent, 5), on_error=Skip(), parallelism=2).write(
        "limited-out", KafkaSink("limited", AnyJson())
    )
    return job


def pieces(line: str) -> Iterable[str]:
    yield from line.split(",")


def formats() -> Job:
    job = Job("formats")
    lines = job.read("text", KafkaSource(["a", "b"], Text()))
    raw = job.read("raw", KafkaSource("raw", Raw()))
    orders = job.read("avro", KafkaSource("orders", Avro("{}", Order))).event_time(
        when, disorder=timedelta(0)
    )
    dicts: Stream[dict[str, Any]] = job.read("dicts", KafkaSource("dicts", Avro("{}")))
    both = lines.map("upper", upper).union("both", raw.map("decode", bytes.decode).returns(str))
    spread: Stream[str] = both.rebalance("spread", parallelism=4).partition_by("deal", len, parallelism=2)
    spread.write("spread-out", KafkaSink("spread", Text()))
    both.flat_map("pieces", pieces).map_batch("halves", halves).write("text-out", KafkaSink("out", Text()))
    keys_of_all_kinds(orders)
    orders.key_by("f", lambda o: o.customer).aggregate("largest", Largest()).write(
        "largest-out", KafkaSink("largest", AnyJson(), key=lambda c: c.key)
    )
    dicts.map("name", lambda d: str(d["name"])).write("names", KafkaSink("names", Text()))
    return job


def tombstones() -> Job:
    job = Job("tombstones")
    orders = job.read("orders", KafkaSource.with_tombstones("orders", Json(Order)))
    orders.write("copy", KafkaSink.with_tombstones("copy", Json(Order)))
    return job
