"""Lists that belong to a subtask: what its class does to them, what a checkpoint holds, who gets what of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processor.contracts.policy import Skip
from processor.errors import JobError, UserCodeError
from processor.ids import CheckpointId
from processor.operators.process_function import KeyedProcess
from processor.operators.transform import TransformOperator
from processor.operators.transform_function import RecordContext, Transform
from processor.protocol.entries import StateFile
from processor.state.declarations import ValueState
from processor.state.operator_state import (
    OperatorState,
    SplitListState,
    UnionListState,
    described_operator_states,
)
from processor.stream.job import Job
from tests.unit.operators.kit import Bench, Running, batch
from tests.unit.stream.ends import ListSink, ListSource

BACKENDS = pytest.mark.parametrize("backend", ["memory", "rocksdb"])


@dataclass
class Cart:
    items: list[str] = field(default_factory=list)


class Collect(Transform[str, Any]):
    """Keeps what comes, and hands it on when told to."""

    waiting = SplitListState(str)
    carts = SplitListState(Cart)
    known = UnionListState(str)
    maybe = UnionListState(cast(Any, int | None))

    def __init__(self) -> None:
        self.started: list[Any] = []

    def on_start(self, subtask: int, subtasks: int, /) -> None:
        self.started.append((subtask, subtasks, self.waiting.get(), self.carts.get(), self.known.get()))

    def on_record(self, value: str, /, context: RecordContext[Any]) -> None:
        match value:
            case "hand on":
                for each in self.waiting:
                    context.emit(each)
                context.emit((context.timestamp_ms, context.headers, len(self.carts)))
                self.waiting.clear()
            case "wrong":
                self.waiting.set(["nothing"])
                self.carts.append(Cart(["nothing"]))
                context.emit("nothing")
                raise ValueError("no")
            case _:
                self.waiting.append(value)
                self.carts.append(Cart([value]))
                self.known.extend([value])
                self.maybe.append(None if value == "a" else 0)

    def on_end(self, context: RecordContext[Any], /) -> None:
        for each in self.waiting.get():
            context.emit((each, context.timestamp_ms))


def running(bench: Bench | None = None, make: Any = Collect, **more: Any) -> Running:
    return (bench or Bench()).run(TransformOperator(make), **more)


def function_of(step: Running) -> Collect:
    return cast(Any, step.operator)._function


def operators_of(*steps: Running, checkpoint: int = 1) -> list[StateFile]:
    return [file for step in steps for file in step.cut(checkpoint).operators]


def test_what_is_emitted_has_the_time_of_the_record_at_hand_and_no_key():
    step = running()
    headers = ((("h", b"v"),), (), ())
    step.feed(batch(["a", "b", "hand on"], keys=["k", "k", "k"], headers=headers, timestamps=[5, 6, 7]))
    assert [row[:3] for row in step.out.rows] == [("a", 7, None), ("b", 7, None), ((7, (), 2), 7, None)]
    step.feed(batch(["hand on"], timestamps=[9]))
    assert step.out.values[3:] == [(9, (), 2)]


@BACKENDS
def test_b4_a_checkpoint_holds_what_there_was_at_its_cut(backend, tmp_path):
    bench = Bench(backend_name=backend, directory=tmp_path)
    step = running(bench)
    step.feed(batch(["a", "b"]))
    completion = step.operator.cut(CheckpointId(1))
    step.feed(batch(["c", "hand on", "d"]))
    files = completion.run().operators
    again = running(bench, operators=files)
    assert function_of(again).started == [
        (0, 1, ["a", "b"], [Cart(["a"]), Cart(["b"])], ["a", "b"]),
    ]
    assert function_of(again).maybe.get() == [None, 0]
    assert function_of(running(bench, operators=operators_of(step, checkpoint=2))).waiting.get() == ["d"]


def test_what_an_author_holds_is_never_what_is_kept():
    step = running()
    carts, cart = function_of(step).carts, Cart(["a"])
    carts.append(cart)
    cart.items.append("later")
    carts.get()[0].items.append("later")
    carts.get().append(Cart())
    assert carts.get() == [Cart(["a"])]


def test_a_record_that_is_skipped_leaves_no_trace():
    bench = Bench()
    step = running(bench, policy=Skip())
    step.feed(batch(["wrong", "a", "wrong", "b", "wrong", "hand on", "wrong"]))
    assert step.out.values == ["a", "b", (5, (), 2)]
    assert bench.counted["records_skipped"] == 4
    assert (function_of(step).waiting.get(), function_of(step).known.get()) == ([], ["a", "b"])


def test_an_error_tells_the_record():
    with pytest.raises(UserCodeError) as caught:
        running().feed(batch(["a", "wrong"], offset=40))
    assert "on_record raised ValueError: no" in str(caught.value)
    assert caught.value.where.offset == 41


def test_what_is_not_of_the_declared_type_is_refused_and_changes_nothing():
    waiting = function_of(running()).waiting
    waiting.append("a")
    for wrong in (lambda: waiting.extend(["b", cast(Any, 1)]), lambda: waiting.set([cast(Any, None)])):
        with pytest.raises(UserCodeError, match=r"declared as SplitListState\[str\] and was set to"):
            wrong()
    assert waiting.get() == ["a"]


def test_a_checkpoint_refuses_what_could_not_be_read_back():
    step = running()
    function_of(step).carts.append(Cart(cast(Any, [1])))
    with pytest.raises(UserCodeError, match="'carts'"):
        step.cut(1)


def test_all_that_waits_can_be_emitted_at_the_end():
    step = running()
    step.feed(batch(["a", "b"]))
    step.operator.on_end(step.out)
    assert step.out.values == [("a", -1), ("b", -1)]


def restored(bench: Bench, files: list[StateFile], parallelism: int) -> list[Collect]:
    steps = [running(bench, operators=files, subtask=(index, parallelism)) for index in range(parallelism)]
    return [function_of(step) for step in steps]


def test_as_many_subtasks_as_before_get_what_each_had():
    bench = Bench()
    steps = [running(bench, subtask=(index, 3)) for index in range(3)]
    for step, words in zip(steps, (["a", "b", "c"], [], ["d"]), strict=True):
        if words:
            step.feed(batch(words))
    functions = restored(bench, operators_of(*steps), 3)
    assert [function.waiting.get() for function in functions] == [["a", "b", "c"], [], ["d"]]
    assert [function.known.get() for function in functions] == [["a", "b", "c", "d"]] * 3


@settings(deadline=None, max_examples=50)
@given(
    lists=st.lists(st.lists(st.text(max_size=2), max_size=5), min_size=1, max_size=4),
    parallelism=st.integers(1, 5),
)
def test_b4_d4_split_lists_are_dealt_out_evenly_and_in_order_and_union_lists_go_to_all(
    lists: list[list[str]], parallelism: int
) -> None:
    """Mutant: union taken as even split, or the other way round."""
    bench = Bench()
    steps = [running(bench, subtask=(index, len(lists))) for index in range(len(lists))]
    for step, words in zip(steps, lists, strict=True):
        function_of(step).waiting.extend(words)
        function_of(step).known.extend(words)
    functions = restored(bench, operators_of(*steps), parallelism)
    everything = [word for words in lists for word in words]
    parts = [function.waiting.get() for function in functions]
    assert [word for part in parts for word in part] == everything
    assert [function.known.get() for function in functions] == [everything] * parallelism
    if parallelism != len(lists):
        sizes = [len(part) for part in parts]
        assert max(sizes) - min(sizes) <= 1


def test_r22_what_has_not_changed_is_listed_again_only_once_its_checkpoint_is_decided():
    step = running()
    step.feed(batch(["a"]))
    first = operators_of(step)
    second = operators_of(step, checkpoint=2)
    assert first != second, "the first may be garbage"
    step.operator.decided(CheckpointId(1))
    assert operators_of(step, checkpoint=3) == first
    step.operator.decided(CheckpointId(3))
    step.feed(batch(["b"]))
    changed = operators_of(step, checkpoint=4)
    assert changed != first
    step.feed(batch(["hand on"]))
    step.operator.decided(CheckpointId(4))
    assert operators_of(step, checkpoint=5) not in (first, changed)


def test_a_class_without_state_writes_no_file():
    class Plain(Transform[str, str]):
        def on_record(self, value: str, /, context: RecordContext[str]) -> None:
            context.emit(value)

    step = running(make=Plain)
    step.feed(batch(["a"]))
    assert (operators_of(step), step.out.values) == ([], ["a"])


@pytest.mark.parametrize(
    ("state", "described"),
    [
        (SplitListState(int), "SplitListState[int]"),
        (UnionListState(str), "UnionListState[str]"),
    ],
)
def test_what_becomes_of_it_is_part_of_its_description(state: OperatorState[Any], described: str) -> None:
    """It is in manifests: changing one makes old checkpoints look incompatible."""
    assert state.described() == described


def test_what_cannot_be_kept_is_refused_with_the_name_of_the_state():
    wrong = type("Wrong", (), {"things": SplitListState(object)})
    with pytest.raises(JobError, match=r"the state 'things' of Wrong: values of type .* cannot be kept"):
        described_operator_states(wrong)


class WithKeyedState(Transform[str, str]):
    count = ValueState(int)


class WithItems(KeyedProcess[str, str, str]):
    waiting = SplitListState(str)


def length(line: str) -> int:
    return len(line)


def lines() -> Any:
    return Job("j").read("read", ListSource(str))


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: lines().transform("t", WithKeyedState), "declares 'count' as a ValueState, which it cannot"),
        (
            lambda: lines().key_by("k", lambda line: line).process("p", WithItems),
            "declares 'waiting' as a SplitListState, which it cannot have",
        ),
        (
            lambda: lines().transform("t", WithItems),
            "transform is given WithItems, which is not derived from",
        ),
        (lambda: lines().transform("t", Collect()), "transform is given an instance of Collect"),
        (lambda: lines().map("m", length).transform("t", Collect), "Collect takes values of type str"),
        (
            lambda: lines().key_by("k", lambda line: line).process("p", Collect),
            "process is given Collect, which is not derived from KeyedProcess",
        ),
    ],
)
def test_what_does_not_fit_is_refused_when_the_job_is_built(build: Any, says: str) -> None:
    with pytest.raises(JobError, match=says):
        build()


def test_a_job_names_its_state_and_its_type():
    stream = lines().transform("collect", Collect)
    stream.write("write", ListSink())
    graph = stream._builder.graph()
    assert graph.steps["collect"].states["waiting"] == "SplitListState[str]"
    assert graph.steps["collect"].states["known"] == "UnionListState[str]"


def test_one_instance_serves_one_subtask():
    only = Collect()
    TransformOperator(lambda: only)
    with pytest.raises(JobError, match="the same Collect twice"):
        TransformOperator(lambda: only)
    with pytest.raises(JobError, match="which is no Transform"):
        TransformOperator(cast(Any, lambda: "x"))
