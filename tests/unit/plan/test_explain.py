"""The drawing of a plan, as people see it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from processor import (
    Context,
    Count,
    Expiry,
    Guarantee,
    Job,
    KeyedCoProcess,
    KeyedProcess,
    ListState,
    SideOutput,
    Skip,
    TimeDomain,
    ValueState,
)
from processor.plan.chaining import plan
from processor.plan.explain import explain
from tests.unit.stream.ends import ListSink, ListSource


@dataclass(frozen=True)
class Click:
    user: str
    at_ms: int


class Watch(KeyedProcess[str, Click, int]):
    seen = ValueState(int, expires_after=timedelta(hours=1))
    lately = ListState(str, expires_after=Expiry(timedelta(seconds=90), TimeDomain.EVENT, reads_renew=True))
    clicks = ValueState(list[Click])
    visited_pages_by_day_and_hour = ValueState(dict[str, dict[str, int]])
    alerts = SideOutput(str)

    def on_record(self, value: Click, /, context: Context[str, int]) -> None: ...


def watch() -> Job:
    job = Job("watch", max_parallelism=64)
    clicks = job.read("clicks", ListSource(Click), on_error=Skip()).event_time(
        lambda c: c.at_ms, disorder=timedelta(seconds=5), idle_after=timedelta(milliseconds=1_500)
    )
    by_user = clicks.key_by("by-user", lambda c: c.user)
    watched = by_user.filter("few", lambda c: True).process("watch", Watch)
    watched.side(Watch.alerts).write("alerts", ListSink(str))
    watched.map("plus", lambda n: n + 1).write(
        "out", ListSink(None, Guarantee.NONE), guarantee=Guarantee.NONE
    )
    by_user.aggregate("count", Count()).write("counts", ListSink(), parallelism=1)
    return job


DRAWING = """\
job 'watch': 4 chains, 7 subtasks, 64 key groups

chain 'clicks', 2 subtasks
  read 'clicks'
  │    ListSource(Click)
  │    event time, disorder 5 s, idle after 1500 ms
  │    skips records that fail
  └─ key by 'by-user'
     ├─ filter 'few'
     │  └─ ━▶ chain 'watch', by key, Click
     └─ ━▶ chain 'count', by key, Click

chain 'watch', 2 subtasks
  ◀━ chain 'clicks', by key, Click
  process 'watch'
  │    state seen: int, expires by processing time, 1 h after it was written
  │    state lately: ListState[str], expires by event time, 90 s after it was written or read
  │    state clicks: list[Click(user: str, at_ms: int)]
  │    state visited_pages_by_day_and_hour: dict[str, dict[str, int]]
  ├─ [alerts] write 'alerts' · ListSink(str)
  └─ map 'plus'
     └─ write 'out' · ListSink() · none accepted

chain 'count', 2 subtasks
  ◀━ chain 'clicks', by key, Click
  aggregate 'count' · state total: int
  └─ ━▶ chain 'counts', by key, Keyed

chain 'counts', 1 subtask
  ◀━ chain 'count', by key, Keyed
  write 'counts' · ListSink()"""


def test_a_job_with_everything_is_drawn_like_this():
    assert explain(plan(watch().graph(), 2)) == DRAWING


def test_one_chain_is_drawn_on_three_lines():
    job = Job("copy")
    job.read("in", ListSource(str)).write("out", ListSink(str))
    assert explain(plan(job.graph(), 1)) == (
        "job 'copy': 1 chain, 1 subtask, 128 key groups\n\n"
        "chain 'in', 1 subtask\n"
        "  read 'in' · ListSource(str)\n"
        "  └─ write 'out' · ListSink(str)"
    )


class Pages(KeyedCoProcess[str, Click, str, str]):
    page = ValueState(str)


def test_connected_streams_are_drawn_with_which_is_left_and_which_is_right():
    job = Job("connected")
    clicks = job.read("clicks", ListSource(Click)).key_by("by-user", lambda c: c.user)
    pages = job.read("pages", ListSource(str)).key_by("by-name", lambda p: p)
    clicks.connect(pages).process("enrich", Pages).write("out", ListSink(str))
    drawn = explain(plan(job.graph(), 2))
    assert drawn.endswith(
        "chain 'enrich', 2 subtasks\n"
        "  ◀━ [left] chain 'clicks', by key, Click\n"
        "  ◀━ [right] chain 'pages', by key, str\n"
        "  connect 'enrich' · state page: str\n"
        "  └─ write 'out' · ListSink(str)"
    ), drawn
