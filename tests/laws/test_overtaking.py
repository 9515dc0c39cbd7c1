"""The law of barriers that overtake: cut anywhere, restore anywhere, continue, and nothing is lost, doubled or out
of order.

Real subtasks over real channels, stepped in any order, so that channels fill up anyhow. A checkpoint is taken at
any moment, with barriers that overtake; everything is thrown away and built again from the checkpoint, with the
same parallelism or another; and so on, a few times. What the checkpoints hold of output, one after another, is
then what one run without any checkpoint would have put out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from processor.fault_points import no_faults
from processor.ids import Attempt, CheckpointId, Incarnation, Place, Position, SplitId
from processor.operators.context import Context
from processor.operators.process_function import KeyedProcess
from processor.plan.chaining import plan as lay_out
from processor.plan.placement import Placement
from processor.plan.subtasks import subtasks
from processor.protocol.entries import CheckpointEntry, JobShape, SourceState, SubtaskSnapshot
from processor.protocol.messages import Acknowledged, CheckpointDecided, CheckpointKind, InjectBarrier
from processor.protocol.worker_messages import Deploy
from processor.runtime.channel_ends import ChannelEnds
from processor.runtime.deployment import Deployment, Surroundings
from processor.runtime.local_worker import ALONE
from processor.settings.model import CheckpointSettings, RuntimeSettings, Settings
from processor.state.backends import MemoryBackend
from processor.state.declarations import ValueState
from processor.storage.outbox import read_outbox
from processor.storage.outbox_files import OutboxFiles
from processor.storage.snapshot_file import SnapshotFiles
from processor.stream.job import Job
from processor.telemetry.metrics import Metrics
from tests.unit.operators.kit import SetClock
from tests.unit.runtime.kit import CountedChance
from tests.unit.storage.memory_files import MemoryFiles
from tests.unit.task.kit import ListSource, MemorySink, OnDemand, Outside

SPLITS = 5
KEYS = 3
RECORDS = 14
"""In each split."""
WEIGHTS = {"read": 8, "number": 3}
"""How often subtasks have their turn."""

Parallelism = tuple[int, int]
"""Of all steps but the last keyed one, and of that. Steps of one parallelism are chained; else the edge in front of a
key_by would be one on which nothing overtakes."""


class Number(KeyedProcess[str, str, str]):
    """Gives every record of a key its number."""

    seen = ValueState(int)

    def on_record(self, value: str, /, context: Context[str, str]) -> None:
        count = (self.seen.get() or 0) + 1
        self.seen.set(count)
        context.emit(f"{value} {count}")


class Late(KeyedProcess[str, str, str]):
    """Every record, and whether event time had passed it; with a timer that tells how many came before it."""

    seen = ValueState(int)

    def on_record(self, value: str, /, context: Context[str, str]) -> None:
        self.seen.set((self.seen.get() or 0) + 1)
        context.emit(value)
        context.timers.at_event_time(int(value.split()[1]) + 2)

    def on_timer(self, time_ms: int, /, context: Context[str, str]) -> None:
        context.emit(f"{context.key} timer {time_ms}")


def key_of(value: str) -> str:
    return value.split()[2]


def records(random: Random) -> dict[str, list[str]]:
    return {
        f"lines/{split}": [f"{split} {number} k{random.randrange(KEYS)}" for number in range(RECORDS)]
        for split in range(SPLITS)
    }


class Flow:
    """One deployment after another, over the same files, from checkpoint to checkpoint."""

    def __init__(self, source: ListSource, random: Random) -> None:
        self.source = source
        self.random = random
        self.files = MemoryFiles()
        self.chance = CountedChance()
        self.clock = SetClock()
        self.decided: list[str] = []
        """Output of all checkpoints so far."""
        self.in_flight = 0
        self.attempt = 0
        self.entry: CheckpointEntry | None = None

    def deploy(self, parallelism: Parallelism) -> None:
        self.attempt += 1
        self.plan = lay_out(self._job(parallelism[1]).graph(), parallelism[0])
        if self.entry is None:
            self.entry = self._first()
        self.executor = OnDemand()
        self.reports: list[Any] = []
        settings = Settings(
            checkpoint=CheckpointSettings(unaligned=True, alignment_timeout="0ms"),
            runtime=RuntimeSettings(
                batch_records_max=self.random.choice((1, 3)),
                channel_batches_max=self.random.choice((1, 3, 9)),
            ),
        )
        around = Surroundings(
            settings=settings,
            files=self.files,
            outboxes=OutboxFiles(self.files),
            backend=MemoryBackend(snapshots=SnapshotFiles()),
            clock=self.clock,
            chance=self.chance,
            executor=self.executor,
            metrics=Metrics(),
            faults=no_faults,
        )
        deploy = Deploy(
            attempt=Attempt(self.attempt),
            incarnation=Incarnation("law"),
            entry=self.entry,
            unconfirmed={},
            parallelism=1,
            addresses={ALONE: ""},
        )
        ends = ChannelEnds(self.plan, Placement(self.plan, (ALONE,)), ALONE, settings.runtime)
        self.subtasks = Deployment(self.plan, deploy, around, self.reports.append, ends).build()

    def _job(self, last: int) -> Job:
        job = Job("law", max_parallelism=16)
        read = job.read("read", self.source)
        timed = read.event_time(lambda value: int(value.split()[1]), disorder=_NO_TIME)
        numbered = timed.key_by("by-key", key_of).process("number", Number)
        late = numbered.key_by("again", key_of).process("late", Late, parallelism=last)
        late.write("write", MemorySink(Outside()), parallelism=last)
        return job

    def _first(self) -> CheckpointEntry:
        positions = {
            SplitId(split): Position(next=0, end=len(values)) for split, values in self.source.records.items()
        }
        reading = next(subtask for subtask in subtasks(self.plan) if subtask.chain == "read")
        read = SubtaskSnapshot(
            subtask=reading, sources=(SourceState(step=reading.chain, positions=positions),)
        )
        return self._entry((read,), CheckpointId(1))

    def _entry(self, parts: Sequence[SubtaskSnapshot], checkpoint: CheckpointId) -> CheckpointEntry:
        return CheckpointEntry(
            place=Place(1),
            attempt=Attempt(self.attempt),
            nonce="",
            incarnation=Incarnation("law"),
            job=self.plan.job,
            checkpoint=checkpoint,
            parent=CheckpointId(0),
            taken_ms=0,
            shape=JobShape(
                max_parallelism=16, parallelism=self.plan.shape.parallelism, stateful=self.plan.shape.stateful
            ),
            subtasks=tuple(parts),
            expected=(),
        )

    def steps(self, number: int) -> None:
        """So many steps, of whichever subtask; the further behind, the slower."""
        weights = [WEIGHTS.get(subtask.id.chain, 1) for subtask in self.subtasks]
        for subtask in self.random.choices(self.subtasks, weights, k=number):
            subtask.step(pressed=False)

    def checkpoint(self, kind: CheckpointKind = CheckpointKind.PERIODIC) -> CheckpointEntry:
        """From the injection to the decision, with steps of any subtask in between."""
        assert self.entry is not None
        checkpoint = CheckpointId(self.entry.checkpoint + 1)
        order = InjectBarrier(attempt=Attempt(self.attempt), checkpoint=checkpoint, kind=kind)
        for subtask in self.subtasks:
            subtask.handle(order)
        acknowledged: dict[Any, SubtaskSnapshot] = {}
        for _ in range(20_000):
            self.steps(1)
            self.executor.settle()
            for report in self.reports:
                if isinstance(report, Acknowledged) and report.checkpoint == checkpoint:
                    acknowledged[report.snapshot.subtask] = report.snapshot
            if len(acknowledged) == len(self.subtasks):
                break
        else:
            raise AssertionError("a checkpoint hangs")
        self.entry = self._entry([acknowledged[subtask.id] for subtask in self.subtasks], checkpoint)
        self.in_flight += self.entry.records_in_flight
        for boxes in self.entry.outboxes().values():
            for box in boxes:
                for block in read_outbox(self.files, box.file):
                    self.decided += ((value or b"").decode() for value in block.decode().values)
        decided = CheckpointDecided(attempt=Attempt(self.attempt), checkpoint=checkpoint, publications=())
        for subtask in self.subtasks:
            subtask.handle(decided)
        self.entry = replace(
            self.entry, subtasks=tuple(replace(part, outboxes=()) for part in self.entry.subtasks)
        )
        return self.entry

    def die(self) -> None:
        for subtask in self.subtasks:
            subtask.close()


_NO_TIME = timedelta(0)
parallelisms = st.tuples(st.integers(1, 3), st.integers(1, 3))
lives = st.lists(st.tuples(parallelisms, st.integers(0, 60)), min_size=1, max_size=4)


@settings(max_examples=80)
@given(lives=lives, seed=st.integers(0, 2**32))
@example(lives=[((3, 1), 40), ((2, 3), 3), ((3, 1), 2)], seed=1)
@example(lives=[((2, 2), 40), ((2, 2), 1), ((2, 2), 1)], seed=2)
def test_a10_r27_cut_anywhere_restore_anywhere_and_nothing_is_lost_doubled_or_out_of_order(lives, seed):
    random = Random(seed)
    source = ListSource(records(random), bounded=True)
    flow = Flow(source, random)
    for parallelism, steps in lives:
        flow.deploy(parallelism)
        flow.steps(steps)
        flow.checkpoint()
        flow.die()
    flow.deploy(lives[-1][0])
    while not all(subtask.ended for subtask in flow.subtasks):
        flow.steps(1)
    last = flow.checkpoint(CheckpointKind.LAST)
    flow.die()
    assert not last.records_in_flight, "the last one is aligned"
    told = [value.split() for value in flow.decided]
    plain = [words for words in told if words[1] != "timer"]
    by_key: defaultdict[str, list[int]] = defaultdict(list)
    by_split: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for split, number, key, count in plain:
        by_key[key].append(int(count))
        by_split[split, key].append(int(number))
    expected: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for values in source.records.values():
        for value in values:
            split, number, key = value.split()
            expected[split, key].append(int(number))
    assert by_split == expected, "each record once, in the order of its split and key"
    assert {key: sorted(counts) for key, counts in by_key.items()} == {
        key: list(range(1, len(counts) + 1)) for key, counts in by_key.items()
    }
    timers = sorted((words[0], int(words[2])) for words in told if words[1] == "timer")
    assert len(timers) == len(set(timers)), "a timer fires once"
    wanted = {(key, number + 2) for (_, key), numbers in expected.items() for number in numbers}
    assert set(timers) == wanted


def test_the_law_meets_records_in_flight():
    """Else it would show nothing."""
    found = 0
    for seed in range(20):
        random = Random(seed)
        flow = Flow(ListSource(records(random), bounded=True), random)
        flow.deploy((3, 1))
        flow.steps(40)
        flow.checkpoint()
        flow.die()
        found += flow.in_flight > 0
    assert found > 10


@pytest.mark.parametrize("kind", [CheckpointKind.SAVEPOINT, CheckpointKind.STOP])
def test_r27_savepoints_and_stops_hold_nothing_in_flight(kind):
    for seed in range(10):
        random = Random(seed)
        flow = Flow(ListSource(records(random), bounded=True), random)
        flow.deploy((3, 1))
        flow.steps(40)
        assert flow.checkpoint(kind).records_in_flight == 0
        flow.die()
