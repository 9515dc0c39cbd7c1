"""From a job to subtasks that run: the whole way of a record, without a runtime."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from processor import Context, Count, Job, KeyedProcess, SideOutput
from processor.errors import UserCodeError
from processor.ids import CheckpointId, StepName
from processor.operators.operator import Collector
from processor.plan.chaining import plan
from processor.plan.execution import ExecutionPlan
from processor.plan.graph import EdgeKind
from processor.plan.instantiate import instantiate
from processor.plan.subtasks import links
from processor.records.batch import Batch
from processor.records.key_groups import key_group
from tests.unit.operators.kit import Bench, Recorder, TextSink, batch
from tests.unit.stream.ends import ListSource


class Gate:
    """The smallest edge: hands each record to the subtask it belongs to."""

    def __init__(self, execution: ExecutionPlan, edge: int, input: int, producer: int, runners: Any) -> None:
        channel = execution.channels[edge]
        self.keyed = channel.kind is EdgeKind.KEYED
        self.limit = execution.max_parallelism
        self.input = input
        self.targets = [
            runners[link.consumer] for link in links(execution, edge) if link.producer.index == producer
        ]

    def emit(self, fed: Batch[Any]) -> None:
        for target, runner in enumerate(self.targets):
            indexes = [i for i in range(len(fed)) if not self.keyed or self._owner(fed, i) == target]
            if indexes:
                runner.on_batch(self.input, fed.take(indexes))

    def _owner(self, fed: Batch[Any], index: int) -> int:
        assert fed.keys is not None, "a keyed edge carries keys"
        return key_group(fed.keys[index], self.limit) * len(self.targets) // self.limit


def started(job: Job, parallelism: int, bench: Bench) -> dict[Any, Any]:
    """Every subtask of the job, linked, last chain first."""
    from processor.ids import SubtaskId

    execution = plan(job.graph(), parallelism)
    runners: dict[Any, Any] = {}
    for chain in reversed(list(execution.chains.values())):
        for index in range(chain.parallelism):
            outputs: list[Collector[Any]] = []
            for output in chain.outputs:
                consumer = execution.chains[execution.channels[output.edge].consumer]
                input = next(entry.input for entry in consumer.inputs if entry.edge == output.edge)
                outputs.append(Gate(execution, output.edge, input, index, runners))
            runner = instantiate(chain, outputs)
            runner.open(lambda step: bench.context(step))
            runners[SubtaskId(chain.name, index)] = runner
    return runners


def words(line: str) -> Iterable[str]:
    return line.split()


class Shout(KeyedProcess[str, str, str]):
    long = SideOutput(str)

    def on_record(self, value: str, /, context: Context[str, str]) -> None:
        context.emit(value.upper())
        if len(value) > 3:
            self.long.emit(value)


@pytest.mark.parametrize("parallelism", [1, 3])
def test_records_pass_all_steps_and_meet_by_key(parallelism):
    job = Job("words", max_parallelism=16)
    lines = job.read("lines", ListSource(str))
    by_word = (
        lines.union("both", lines.map("twice", str.lower)).flat_map("split", words).key_by("by", lambda w: w)
    )
    counted = by_word.aggregate("count", Count())
    counted.map("show", lambda c: f"{c.key}={c.value}").returns(str).write("counts", TextSink())
    shouted = by_word.process("shout", Shout)
    shouted.write("shouts", TextSink())
    shouted.side(Shout.long).write("long", TextSink())
    bench = Bench()
    runners = started(job, parallelism, bench)
    for subtask, runner in runners.items():
        if subtask.chain == "lines":
            runner.on_batch(0, batch(["to be or not", "to see"]))
    found: dict[str, list[str]] = {}
    for runner in runners.values():
        for box in runner.cut(CheckpointId(1)).run().outboxes:
            rows = [str(value, "utf-8") for value in bench.rows([box]) if value is not None]
            found.setdefault(box.publisher.sink, []).extend(rows)
    times = 2 * parallelism  # each subtask of the source got the lines, and the union doubles them
    every = ["to", "be", "or", "not", "to", "see"]
    assert sorted(found["shouts"]) == sorted([word.upper() for word in every] * times)
    assert "long" not in found
    assert (
        max(int(text.removeprefix("to=")) for text in found["counts"] if text.startswith("to=")) == 2 * times
    )
    assert len(set(found["counts"])) == len(found["counts"]), "a count is made in one place only"


def test_a_factory_that_raises_is_told_with_its_step():
    class Broken(Shout):
        def __init__(self) -> None:
            raise ConnectionError("no database")

    job = Job("j")
    job.read("r", ListSource(str)).key_by("by", lambda w: w).process("broken", Broken).write(
        "out", TextSink()
    )
    execution = plan(job.graph(), 1)
    with pytest.raises(UserCodeError, match=r"step 'broken': .* ConnectionError: no database"):
        instantiate(execution.chains[StepName("broken")], [])


def test_each_subtask_gets_operators_of_its_own():
    job = Job("j")
    job.read("r", ListSource(str)).map("m", str.upper).write("out", TextSink())
    job.read("s", ListSource(str)).map("t", str.upper).map("u", str.lower, parallelism=1).write(
        "o", TextSink(), parallelism=1
    )
    execution = plan(job.graph(), 2)
    outs = [Recorder(), Recorder()]
    runners = [instantiate(execution.chains[StepName("s")], [out]) for out in outs]
    for runner in runners:
        runner.open(lambda step: Bench().context(step))
    runners[0].on_batch(0, batch(["a"]))
    assert [out.values for out in outs] == [["A"], []]
