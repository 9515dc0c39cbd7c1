"""Broadcast state: changed by what reaches every subtask, read by what has a key, the same everywhere and at any
parallelism."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processor.contracts.policy import Skip
from processor.errors import JobError, UserCodeError
from processor.ids import CheckpointId
from processor.operators.broadcast_context import BroadcastContext
from processor.operators.broadcast_process import BROADCAST_INPUT, BroadcastProcessOperator
from processor.operators.context import Context
from processor.operators.operator_state import COPIES_DIFFER
from processor.operators.process_function import KeyedBroadcastProcess, KeyedProcess
from processor.plan.chaining import plan
from processor.plan.explain import explain
from processor.state.broadcast_map import BroadcastMap
from processor.state.declarations import ValueState
from processor.state.operator_state import BroadcastState, SplitListState
from processor.stream.job import Job
from tests.unit.operators.kit import Bench, Running, batch
from tests.unit.stream.ends import ListSink, ListSource

BACKENDS = pytest.mark.parametrize("backend", ["memory", "rocksdb"])


@dataclass
class Rule:
    words: list[str] = field(default_factory=list)


class Apply(KeyedBroadcastProcess[str, str, str, Any]):
    """Tells what it knows of a word; ``word value`` is broadcast."""

    seen = ValueState(int)
    limits = BroadcastState(str, int)
    rules = BroadcastState(str, Rule)
    maybe: BroadcastMap[int, str | None] = cast(Any, BroadcastState(int, cast(Any, str | None)))

    def on_record(self, value: str, /, context: Context[str, Any]) -> None:
        self.seen.set((self.seen.get() or 0) + 1)
        context.emit((context.key, self.seen.get(), self.limits.get(value), self.rules.items()))
        context.timers.at_event_time(100)

    def on_timer(self, time_ms: int, /, context: Context[str, Any]) -> None:
        context.emit((context.key, self.limits.keys()))

    def on_broadcast(self, value: str, /, context: BroadcastContext) -> None:
        word, _, number = value.partition(" ")
        limits, rules = context.writable(self.limits), context.writable(self.rules)
        match number:
            case "gone":
                limits.remove(word)
                rules.remove(word)
            case "all":
                limits.clear()
                rules.clear()
            case "wrong":
                limits.set("nothing", 0)
                rules.clear()
                raise ValueError("no")
            case "key":
                self.seen.set(1)
            case _:
                limits.set(word, int(number))
                rules.set(word, Rule([number]))
                context.writable(self.maybe).set(int(number), None if word == "a" else word)


def running(bench: Bench | None = None, make: Any = Apply, **more: Any) -> Running:
    return (bench or Bench()).run(BroadcastProcessOperator(make), **more)


def tell(step: Running, *words: str) -> None:
    step.feed(batch(list(words)), BROADCAST_INPUT)


def function_of(step: Running) -> Apply:
    return cast(Any, step.operator)._function


def test_what_is_broadcast_is_there_for_all_keys():
    step = running()
    tell(step, "b 2", "a 1")
    step.feed(batch(["a", "b", "c"], keys=["k", "k", "other"]))
    rules = [("a", Rule(["1"])), ("b", Rule(["2"]))]
    assert step.out.values == [("k", 1, 1, rules), ("k", 2, 2, rules), ("other", 1, None, rules)]
    tell(step, "a gone")
    step.watermark(100)
    assert step.out.values[3:] == [("k", ["b"]), ("other", ["b"])]
    tell(step, "x all")
    assert (len(function_of(step).limits), list(function_of(step).rules)) == (0, [])


def test_absent_null_and_falsy_are_told_apart_and_come_in_the_order_of_their_keys():
    step = running()
    tell(step, "b 300", "a 1", "b -2", "b 0")
    maybe = function_of(step).maybe
    assert maybe.items() == [(-2, "b"), (0, "b"), (1, None), (300, "b")]
    assert (1 in maybe, 2 in maybe, maybe.get(1), maybe.get(2), maybe.values()[0]) == (
        True,
        False,
        None,
        None,
        "b",
    )
    assert function_of(step).limits.get("b") == 0


def test_what_an_author_holds_is_never_what_is_kept():
    step = running()
    tell(step, "a 1")
    rules = function_of(step).rules
    cast(Any, rules.get("a")).words.append("later")
    rules.values()[0].words.append("later")
    assert rules.get("a") == Rule(["1"])


def test_a_record_that_is_skipped_leaves_no_trace():
    bench = Bench()
    step = running(bench, policy=Skip())
    tell(step, "a 1", "x wrong", "b 2", "y wrong")
    assert bench.counted["records_skipped"] == 2
    assert function_of(step).limits.items() == [("a", 1), ("b", 2)]
    assert function_of(step).rules.keys() == ["a", "b"]


def test_an_error_tells_the_record():
    with pytest.raises(UserCodeError, match="on_broadcast raised ValueError: no") as caught:
        running().feed(batch(["a 1", "b wrong"], offset=7), BROADCAST_INPUT)
    assert caught.value.where.offset == 8


def test_state_of_a_key_is_out_of_reach_for_what_has_none():
    with pytest.raises(JobError, match="no current key"):
        tell(running(), "a key")


def test_what_is_not_of_the_declared_types_is_refused():
    step = running()
    of_step = BroadcastContext(cast(Any, None)).writable(function_of(step).limits)
    with pytest.raises(UserCodeError, match=r"declared as BroadcastState\[str, int\] and was set to str"):
        of_step.set("a", cast(Any, "1"))
    with pytest.raises(UserCodeError, match="was asked for the key 1 of type int"):
        of_step.set(cast(Any, 1), 1)
    assert function_of(step).limits.items() == []


@BACKENDS
def test_b4_a_checkpoint_holds_what_there_was_at_its_cut(backend, tmp_path):
    bench = Bench(backend_name=backend, directory=tmp_path)
    step = running(bench)
    tell(step, "a 1", "b 2")
    step.feed(batch(["a"], keys=["k"]))
    completion = step.operator.cut(CheckpointId(1))
    tell(step, "a 9", "c 3", "b gone")
    step.feed(batch(["a"], keys=["k"]))
    snapshot = completion.run()
    step.operator.close()
    again = running(bench, restored=snapshot.keyed, operators=snapshot.operators)
    again.feed(batch(["a"], keys=["k"]))
    rules = [("a", Rule(["1"])), ("b", Rule(["2"]))]
    assert again.out.values == [("k", 2, 1, rules)]
    assert function_of(again).maybe.items() == [(1, None), (2, "b")]
    again.operator.close()


def test_r22_a_full_checkpoint_lists_no_file_of_an_earlier_one():
    step = running()
    tell(step, "a 1")
    first = step.cut(1).operators
    step.operator.decided(CheckpointId(1))
    assert step.cut(2).operators == first, "nothing has changed"
    step.operator.decided(CheckpointId(2))
    step.operator.start_anew()
    assert step.cut(3).operators[0].file.name != first[0].file.name


words = st.lists(
    st.one_of(
        st.builds("{} {}".format, st.sampled_from("abc"), st.integers(0, 3)),
        st.builds("{} gone".format, st.sampled_from("abc")),
        st.just("x wrong"),
    ),
    max_size=12,
)


@settings(deadline=None, max_examples=50)
@given(told=words, before=st.integers(1, 4), after=st.integers(1, 4))
def test_b4_d4_all_subtasks_have_the_same_and_write_the_same_file_and_others_get_it_once(
    told: list[str], before: int, after: int
) -> None:
    bench = Bench()
    steps = [running(bench, policy=Skip(), subtask=(index, before)) for index in range(before)]
    for step in steps:
        if told:
            tell(step, *told)
    files = [file for step in steps for file in step.cut(1).operators]
    assert len({file.file.sha256 for file in files}) == 1, "in an order that all have"
    expected = function_of(steps[0]).limits.items()
    for index in range(after):
        again = running(bench, operators=files, subtask=(index, after))
        assert function_of(again).limits.items() == expected
    assert bench.counted[COPIES_DIFFER] == 0


def test_where_copies_differ_all_go_on_with_that_of_the_first_and_it_is_counted():
    bench = Bench()
    steps = [running(bench, subtask=(index, 2)) for index in range(2)]
    for index, step in enumerate(steps):
        tell(step, f"a {index}")
    files = [file for step in steps for file in step.cut(1).operators]
    for index in range(3):
        again = running(bench, operators=files, subtask=(index, 3))
        assert function_of(again).limits.items() == [("a", 0)]
    assert bench.counted[COPIES_DIFFER] == 3


# --- jobs


class Plain(KeyedProcess[str, str, str]):
    limits = BroadcastState(str, int)


class WithItems(KeyedBroadcastProcess[str, str, str, str]):
    waiting = SplitListState(str)


class OfNumbers(KeyedBroadcastProcess[str, str, int, str]):
    pass


def streams(job: Job) -> tuple[Any, Any]:
    keyed = job.read("read", ListSource(str)).key_by("by", lambda line: line)
    return keyed, job.read("rules", ListSource(str))


def applied(parallelism: int = 2) -> Job:
    job = Job("apply", parallelism=parallelism, max_parallelism=16)
    keyed, rules = streams(job)
    keyed.connect_broadcast(rules.broadcast("to-all")).process("apply", Apply).write("write", ListSink())
    return job


def test_the_stream_goes_through_one_subtask_to_all():
    drawn = explain(plan(applied().graph(), 1))
    assert "chain 'to-all', 1 subtask\n" in drawn
    assert "◀━ [keyed] chain 'read', by key, str" in drawn
    assert "◀━ [broadcast] chain 'to-all', to all, str" in drawn
    assert "state limits: BroadcastState[str, int]" in drawn
    assert "state seen: int" in drawn


def test_r27_a_broadcast_edge_is_never_overtaken():
    laid_out = plan(applied().graph(), 1)
    assert {str(channel.kind): channel.overtakable for channel in laid_out.channels} == {
        "keyed": True,
        "broadcast": False,
        "forward": False,
    }


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda keyed, rules: keyed.connect_broadcast(rules), "which is no broadcast stream"),
        (
            lambda keyed, rules: keyed.connect_broadcast(streams(Job("k"))[1].broadcast("all")),
            "is given a stream of job 'k'",
        ),
        (
            lambda keyed, rules: rules.connect_broadcast(rules.broadcast("all")),
            "needs a key, and the stream has none",
        ),
        (lambda keyed, rules: keyed.process("p", Apply), "Apply, which is not derived from KeyedProcess"),
        (lambda keyed, rules: keyed.process("p", Plain), "declares 'limits' as a BroadcastState"),
        (
            lambda keyed, rules: keyed.connect_broadcast(rules.broadcast("all")).process("p", WithItems),
            "declares 'waiting' as a SplitListState",
        ),
        (
            lambda keyed, rules: keyed.connect_broadcast(rules.broadcast("all")).process("p", OfNumbers),
            "takes values of type int, and the broadcast stream has str",
        ),
        (
            lambda keyed, rules: keyed.connect_broadcast(rules.broadcast("all")).process("p", Plain),
            "Plain, which is not derived from KeyedBroadcastProcess",
        ),
    ],
)
def test_what_does_not_fit_is_refused_when_the_job_is_built(build: Any, says: str) -> None:
    with pytest.raises(JobError, match=says):
        build(*streams(Job("j")))
