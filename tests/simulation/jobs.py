"""The jobs that are simulated, each with input that carries its own truth and with what its output must be.

Input records are texts ``part number key``; each part is numbered from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from random import Random
from types import MappingProxyType
from typing import Final

from connectors.formats.text import Text
from connectors.kafka.bounds import UntilEnd
from connectors.kafka.plugin import plugin as kafka_plugin
from connectors.kafka.settings import ClusterSettings, KafkaSettings
from connectors.kafka.sink import KafkaSink
from connectors.kafka.source import KafkaSource
from processor import CheckpointHook, Context, Job, KeyedCoProcess, KeyedProcess, SideOutput, ValueState
from processor.audit.expectation import Audit, CountedState, keyed_count, pass_through
from processor.fault_points import FaultPoint
from processor.records.elements import MIN_TIME_MS
from processor.simulation.case import Case, Input
from processor.simulation.operator import (
    run_and_drain,
    run_and_shrink,
    run_and_stop,
    run_kill_and_rescale,
    run_stop_and_restore,
    run_to_the_end,
)
from tests.simulation.kinds import KINDS, Collect, CountByRules, CountInEveryKind, CountWhatExpires
from tests.simulation.table import PLUGIN, LogSource, TablePlugin, TableSettings, TableSink

PARTS_IN = 3
PARTS_ADDED = 2
KEYS = 5
RECORDS = (5, 60)
MANY_RECORDS = (60, 200)
PARTS_IN_FLIGHT = 8
RECORDS_IN_FLIGHT = (100, 400)
"""Of jobs whose channels are to be full."""
TIMER_MS_MAX = 600
SLOW_STEPS_TIMEOUT_MS = 6_000
SAVEPOINT = "/simulated/savepoint"


# --- functions of the jobs


class CountKeys(KeyedProcess[str, str, str]):
    """For every record its key and how often it has come."""

    seen = ValueState(int)

    def on_record(self, value: str, /, context: Context[str, str]) -> None:
        count = (self.seen.get() or 0) + 1
        self.seen.set(count)
        context.emit(f"{key_of(value)} {count}")


class WrongTime(BaseException):
    """Time went back, a timer came early, a record late. No Exception: after those a job is started again."""


class CountLater(KeyedProcess[str, str, str]):
    """Counts at once to a side output, and to the main one when a timer comes: what has waited until then."""

    seen = ValueState(int)
    told = ValueState(int)
    reached_ms = ValueState(int)
    timers_ms = ValueState(list[int])
    """Timers that have yet to fire."""
    at_once = SideOutput(str)

    def _look_at_time(self, context: Context[str, str]) -> None:
        now_ms = context.processing_time_ms
        if now_ms < (self.reached_ms.get() or 0):
            raise WrongTime(
                f"processing time of {context.key} goes back by {self.reached_ms.get()} - {now_ms}"
            )
        self.reached_ms.set(now_ms)

    def on_record(self, value: str, /, context: Context[str, str]) -> None:
        self._look_at_time(context)
        count = (self.seen.get() or 0) + 1
        self.seen.set(count)
        self.at_once.emit(f"{key_of(value)} {count}")
        due_ms = context.processing_time_ms + 7 * count % TIMER_MS_MAX
        context.timers.at_processing_time(due_ms)
        waiting = self.timers_ms.get() or []
        self.timers_ms.set(waiting if due_ms in waiting else [*waiting, due_ms])

    def on_timer(self, time_ms: int, /, context: Context[str, str]) -> None:
        self._look_at_time(context)
        if time_ms > context.processing_time_ms:
            raise WrongTime(f"a timer for {time_ms} comes at {context.processing_time_ms}")
        waiting = self.timers_ms.get() or []
        if time_ms not in waiting:
            raise WrongTime(f"the timer of {context.key} for {time_ms} fires again")
        self.timers_ms.set([due_ms for due_ms in waiting if due_ms != time_ms])
        seen, told = self.seen.get() or 0, self.told.get() or 0
        for count in range(told + 1, seen + 1):
            context.emit(f"{context.key} {count}")
        self.told.set(seen)


class CountInEventTime(KeyedProcess[str, str, str]):
    """Counts a record when event time has passed the record's own number by three."""

    due = ValueState(int)
    told = ValueState(int)
    reached_ms = ValueState(int)

    def _look_at_time(self, context: Context[str, str]) -> None:
        now_ms = context.watermark_ms
        if now_ms < (self.reached_ms.get() or MIN_TIME_MS):
            raise WrongTime(f"event time of {context.key} goes back from {self.reached_ms.get()} to {now_ms}")
        self.reached_ms.set(now_ms)

    def on_record(self, value: str, /, context: Context[str, str]) -> None:
        self._look_at_time(context)
        if int(value.split()[1]) < context.watermark_ms:  # numbers of a part are in order
            raise WrongTime(f"'{value}' comes when event time is {context.watermark_ms}")
        self.due.set((self.due.get() or 0) + 1)
        context.timers.at_event_time(int(value.split()[1]) + 3)

    def on_timer(self, time_ms: int, /, context: Context[str, str]) -> None:
        self._look_at_time(context)
        if time_ms > context.watermark_ms:
            raise WrongTime(f"a timer for {time_ms} comes at {context.watermark_ms}")
        due, told = self.due.get() or 0, self.told.get() or 0
        for count in range(told + 1, due + 1):
            context.emit(f"{context.key} {count}")
        self.told.set(due)


class CountBoth(KeyedCoProcess[str, str, str, str]):
    """One count for two streams: the left is counted at once, the right when a timer comes."""

    seen = ValueState(int)
    waiting = ValueState(int)
    at_once = SideOutput(str)

    def on_left(self, value: str, /, context: Context[str, str]) -> None:
        context.emit(self._next(context.key))
        self.at_once.emit(value)

    def on_right(self, value: str, /, context: Context[str, str]) -> None:
        waiting = (self.waiting.get() or 0) + 1
        self.waiting.set(waiting)
        context.timers.at_processing_time(context.processing_time_ms + 11 * waiting % TIMER_MS_MAX)

    def on_timer(self, time_ms: int, /, context: Context[str, str]) -> None:
        for _ in range(self.waiting.get() or 0):
            context.emit(self._next(context.key))
        self.waiting.clear()

    def _next(self, key: str) -> str:
        count = (self.seen.get() or 0) + 1
        self.seen.set(count)
        return f"{key} {count}"


class CountBothInEventTime(KeyedCoProcess[str, str, str, str]):
    """One count for two streams; a record is put out when event time of both has passed its number by three."""

    due = ValueState(int)
    told = ValueState(int)

    def on_left(self, value: str, /, context: Context[str, str]) -> None:
        self.due.set((self.due.get() or 0) + 1)
        context.timers.at_event_time(int(value.split()[1]) + 3)

    def on_right(self, value: str, /, context: Context[str, str]) -> None:
        self.on_left(value, context)

    def on_timer(self, time_ms: int, /, context: Context[str, str]) -> None:
        due, told = self.due.get() or 0, self.told.get() or 0
        for count in range(told + 1, due + 1):
            context.emit(f"{context.key} {count}")
        self.told.set(due)


class SendOn(KeyedProcess[str, str, str]):
    """Every record as it is."""

    def on_record(self, value: str, /, context: Context[str, str]) -> None:
        context.emit(value)


def first_word(value: str) -> str:
    return value.split()[0]


def key_of(value: str) -> str:
    return value.split()[2]


# --- the jobs


def copy(chance: Random) -> Case:
    """Every record of a topic into another."""
    job = Job("copy")
    job.read("read", KafkaSource("in", Text())).write("write", KafkaSink("out", Text()))
    return make_case(job, chance, audits=[copied()])


def count(chance: Random) -> Case:
    """Running counts by key, with a shuffle from two subtasks to three."""
    job = Job("count")
    read = job.read("read", KafkaSource("in", Text()), parallelism=2)
    counted = read.key_by("by-key", key_of).process("count", CountKeys, parallelism=3)
    counted.write("write", KafkaSink("out", Text()))
    return make_case(job, chance, audits=[counts(state="seen")])


def kinds(chance: Random) -> Case:
    """Running counts by key in state of every kind, started again at another parallelism or not."""
    job = Job("kinds")
    read = job.read("read", KafkaSource("in", Text()))
    counted = read.key_by("by-key", key_of).process("count", CountInEveryKind)
    counted.write("write", KafkaSink("out", Text()))
    in_every_kind = keyed_count(
        keys=lambda key, value: [f"{word(value, 2)}/{kind}" for kind in KINDS], counted=counted_in_output
    )
    return _moved(job, chance, audits=[in_every_kind])


def expiring(chance: Random) -> Case:
    """Running counts by key, each also kept in state that expires by either time, moved like ``kinds``."""
    job = Job("expiring")
    read = job.read("read", KafkaSource("in", Text()))
    timed = read.event_time(lambda value: int(value.split()[1]), disorder=timedelta(milliseconds=1))
    counted = timed.key_by("by-key", key_of).process("count", CountWhatExpires)
    counted.write("write", KafkaSink("out", Text()))
    return _moved(job, chance, audits=[counts(state="seen")])


def collect(chance: Random) -> Case:
    """Every record, after a while in a list of its subtask; rescaled by kills, and drained."""
    job = Job("collect")
    read = job.read("read", KafkaSource("in", Text())).transform("collect", Collect)
    read.write("write", KafkaSink("out", Text()))
    rescaled = [(chance.randrange(300, 8_000), parallelism) for parallelism in chance.sample((1, 2, 3), 2)]
    script = run_and_drain(before_ms=chance.choice((None, chance.randrange(200, 15_000))), rescaled=rescaled)
    every = pass_through(group=lambda key, value: None, item=lambda key, value: value)
    inputs = numbered(chance, "read", records=MANY_RECORDS)
    return make_case(job, chance, audits=[every], inputs=inputs, script=script)


def broadcast(chance: Random) -> Case:
    """One topic counted by key while another reaches every subtask, moved like ``kinds``."""
    job = Job("broadcast")
    rules = job.read("read-right", KafkaSource("right", Text())).broadcast("to-all")
    keyed = job.read("read-left", KafkaSource("left", Text())).key_by("by-key", key_of)
    counted = keyed.connect_broadcast(rules).process("count", CountByRules)
    counted.write("write", KafkaSink("out", Text()))
    counted_left = replace(counts(state="seen"), source="read-left")
    return _moved(job, chance, audits=[counted_left], inputs=two_streams(chance))


def timers(chance: Random) -> Case:
    """Counts that wait for timers of processing time, and a side output that does not wait."""
    job = Job("timers")
    keyed = job.read("read", KafkaSource("in", Text())).key_by("by-key", key_of)
    later = keyed.process("count", CountLater, parallelism=2)
    later.write("write", KafkaSink("out", Text()))
    later.side(CountLater.at_once).write("write-side", KafkaSink("side", Text()))
    return make_case(job, chance, audits=[counts(sink="write"), counts(sink="write-side")])


def event_time(chance: Random) -> Case:
    """Counts that wait for event time, of sources that end: at the end all of it has passed."""
    job = Job("event-time")
    read = job.read("read", KafkaSource("in", Text(), until=UntilEnd()))
    timed = read.event_time(lambda value: int(value.split()[1]), disorder=timedelta(milliseconds=1))
    counted = timed.key_by("by-key", key_of).process("count", CountInEventTime, parallelism=2)
    counted.write("write", KafkaSink("out", Text()))
    return make_case(job, chance, audits=[counts()], ends=True)


def connect(chance: Random) -> Case:
    """Two topics counted together by key, with state and timers that both share."""
    job = Job("connect")
    left = job.read("read-left", KafkaSource("left", Text())).key_by("by-left", key_of)
    right = job.read("read-right", KafkaSource("right", Text()), parallelism=2).key_by("by-right", key_of)
    counted = left.connect(right).process("count", CountBoth, parallelism=3)
    counted.write("write", KafkaSink("out", Text()))
    counted.side(CountBoth.at_once).write("write-left", KafkaSink("left-out", Text()))
    copied_left = pass_through(source="read-left", sink="write-left", group=_part_and_key, item=_number)
    return make_case(job, chance, audits=[counts(sink="write"), copied_left], inputs=two_streams(chance))


def drain(chance: Random) -> Case:
    """Two topics counted together when event time has come, of which the end never comes: so they are drained."""
    job = Job("drain")
    disorder = timedelta(milliseconds=1)
    left, right = (
        job.read(f"read-{side}", KafkaSource(side, Text()), parallelism=parallelism)
        .event_time(lambda value: int(value.split()[1]), disorder=disorder)
        .key_by(f"by-{side}", key_of)
        for side, parallelism in (("left", 1), ("right", 2))
    )
    counted = left.connect(right).process("count", CountBothInEventTime, parallelism=3)
    counted.write("write", KafkaSink("out", Text()))
    script = run_and_drain(before_ms=chance.choice((None, chance.randrange(200, 15_000))))
    counted_together = counts(state="due")
    return make_case(job, chance, audits=[counted_together], inputs=two_streams(chance), script=script)


def union(chance: Random) -> Case:
    """Two topics into one."""
    job = Job("union")
    left = job.read("read-left", KafkaSource("left", Text()))
    right = job.read("read-right", KafkaSource("right", Text()), parallelism=2)
    left.union("both", right, parallelism=2).write("write", KafkaSink("out", Text()))
    inputs = two_streams(chance)
    # Batches are dealt out to the subtasks of the union in turn: all come, in any order.
    every = pass_through(group=lambda key, value: None, item=lambda key, value: value)
    return make_case(job, chance, audits=[every], inputs=inputs)


def bounded(chance: Random) -> Case:
    """Running counts over a topic that is read to its end; then the job has finished."""
    job = Job("bounded")
    read = job.read("read", KafkaSource("in", Text(), until=UntilEnd()), parallelism=2)
    counted = read.key_by("by-key", key_of).process("count", CountKeys, parallelism=3)
    counted.write("write", KafkaSink("out", Text()))
    inputs = numbered(chance, "read", records=MANY_RECORDS)  # so that barriers come among them
    return make_case(job, chance, audits=[counts(state="seen")], inputs=inputs, ends=True)


def two_sinks(chance: Random) -> Case:
    """One stream into a topic, and into a table of a database behind the contract of R20."""
    return written_twice(chance, TableSink("rows"))


def written_twice(chance: Random, second: TableSink | KafkaSink[str]) -> Case:
    """One stream into a topic and into a second sink."""
    job = Job("two-sinks")
    read = job.read("read", KafkaSource("in", Text()))
    read.write("write", KafkaSink("out", Text()))
    read.write("write-second", second)
    return make_case(
        job,
        chance,
        audits=[
            pass_through(sink="write", group=_part_and_key, item=_number),
            pass_through(sink="write-second", group=_part_and_key, item=_number),
        ],
        table=True,
    )


def restore(chance: Random) -> Case:
    """Running counts, stopped with a savepoint, started from it at another parallelism."""
    job = Job("restore")
    read = job.read("read", KafkaSource("in", Text()))
    read.key_by("by-key", key_of).process("count", CountKeys).write("write", KafkaSink("out", Text()))
    before, after = chance.sample((1, 2, 3), 2)
    script = run_stop_and_restore(SAVEPOINT, before_ms=chance.randrange(200, 15_000), parallelism=after)
    return make_case(
        job,
        chance,
        audits=[counts(state="seen")],
        script=script,
        parallelism=before,
        rare_points=(FaultPoint.SAVEPOINT_WRITTEN,),
    )


class Noted(CheckpointHook):
    """Takes part in every checkpoint, and is given back what it kept of one."""

    def take(self, checkpoint: int) -> bytes:
        return str(checkpoint).encode()

    def restore(self, data: bytes) -> None:
        if int(data) < 1:
            raise ValueError(f"no checkpoint keeps {data!r}")


def growing(chance: Random) -> Case:
    """Every record of a topic into another, with partitions that are added while the job runs, and a hook."""
    job = Job("growing")
    job.hook("noted", Noted)
    job.read("read", KafkaSource("in", Text())).write("write", KafkaSink("out", Text()))
    inputs = numbered(chance, "read", parts=PARTS_IN + PARTS_ADDED)
    return make_case(job, chance, audits=[copied()], inputs=inputs)


def shrink(chance: Random) -> Case:
    """Running counts by three subtasks; then by two, and soon by one, put in the place of those before, which may
    only be asleep."""
    job = Job("shrink")
    read = job.read("read", KafkaSource("in", Text()))
    read.key_by("by-key", key_of).process("count", CountKeys).write("write", KafkaSink("out", Text()))
    before_ms = (chance.randrange(300, 8_000), chance.choice((0, 50, 300, 3_000)))
    return make_case(
        job,
        chance,
        audits=[counts(state="seen")],
        inputs=numbered(chance, "read", records=MANY_RECORDS),
        script=run_and_shrink((3, 2, 1), before_ms=before_ms),
    )


def overtaken(chance: Random) -> Case:
    """Two topics into one, counted by key, and sent on by key once more: over edges on which barriers overtake."""
    return _overtaken(chance, run_and_stop)


def overtaken_rescaled(chance: Random) -> Case:
    """The same, killed twice and each time started with another parallelism from what was in flight."""
    before = [chance.randrange(100, 8_000) for _ in range(2)]
    script = run_kill_and_rescale(before_ms=before, parallelisms=[chance.choice((1, 2, 3)) for _ in before])
    return _overtaken(chance, script)


def _overtaken(chance: Random, script) -> Case:
    job = Job("overtaken")
    left, right = (job.read(f"read-{side}", KafkaSource(side, Text())) for side in ("left", "right"))
    both = left.union("both", right)
    counted = both.key_by("by-key", key_of).process("count", CountKeys)
    again = counted.key_by("by-key-again", first_word)
    # Fewer subtasks than bring something: the edge fills up.
    sent = again.process("send", SendOn, parallelism=chance.choice((1, 2)))
    sent.write("write", KafkaSink("out", Text()))
    inputs = [
        *numbered(chance, "read-left", tag="l", parts=PARTS_IN_FLIGHT, records=RECORDS_IN_FLIGHT),
        *numbered(chance, "read-right", tag="r", parts=PARTS_IN_FLIGHT, records=RECORDS_IN_FLIGHT),
    ]
    chance.shuffle(inputs)
    case = make_case(job, chance, audits=[counts(state="seen")], inputs=_in_order(inputs), script=script)
    parts: dict[str, int] = {
        name: PARTS_IN_FLIGHT if step.source is not None else 2 for name, step in case.graph.steps.items()
    }
    return replace(unaligned(case, chance), parts=parts)


def unaligned(case: Case, chance: Random) -> Case:
    """The case with barriers that overtake, and slow steps behind channels: there is what to overtake."""
    return replace(
        case,
        checkpoint={
            "unaligned": True,
            "alignment_timeout": chance.choice((0, 0, 5, 50, 400)),
            # What was in flight at a restore is processed before the next checkpoint can be aligned to it: with
            # steps so slow, a time-out below that would end every attempt at the same place.
            "timeout": SLOW_STEPS_TIMEOUT_MS,
        },
        runtime={
            "elements_per_turn": chance.choice((1, 1, 3)),
            "batch_records_max": chance.choice((3, 8, 20)),
            "channel_batches_max": chance.choice((1, 4, 16, 64)),
            **case.runtime,
        },
        turn_us_max=chance.choice((600, 10_000, 60_000)),
    )


def _fuller(case: Case, chance: Random) -> Case:
    """The case with more records."""
    return replace(
        case,
        inputs=numbered(chance, "read", parts=PARTS_IN_FLIGHT, records=RECORDS_IN_FLIGHT),
        parts={**case.parts, "read": PARTS_IN_FLIGHT},
    )


def table_copy(chance: Random) -> Case:
    """Every record of a log into a table: nothing of Kafka."""
    job = Job("table-copy")
    job.read("read", LogSource("in")).write("write", TableSink("out"))
    return make_case(job, chance, audits=[copied()], table=True)


JOBS: Final[Mapping[str, Callable[[Random], Case]]] = MappingProxyType(
    {
        "copy": copy,
        "count": count,
        "kinds": kinds,
        "expiring": expiring,
        "collect": collect,
        "broadcast": broadcast,
        "broadcast-overtaken": lambda chance: unaligned(broadcast(chance), chance),
        "timers": timers,
        "event-time": event_time,
        "connect": connect,
        "drain": drain,
        "union": union,
        "bounded": bounded,
        "two-sinks": two_sinks,
        "restore": restore,
        "shrink": shrink,
        "table-copy": table_copy,
        "growing": growing,
        "overtaken": overtaken,
        "overtaken-rescaled": overtaken_rescaled,
        "timers-overtaken": lambda chance: _fuller(unaligned(timers(chance), chance), chance),
        "event-time-overtaken": lambda chance: _fuller(unaligned(event_time(chance), chance), chance),
        "connect-overtaken": lambda chance: unaligned(connect(chance), chance),
        "drain-overtaken": lambda chance: unaligned(drain(chance), chance),
        "shrink-overtaken": lambda chance: unaligned(shrink(chance), chance),
        "bounded-overtaken": lambda chance: _fuller(unaligned(bounded(chance), chance), chance),
        "restore-overtaken": lambda chance: _fuller(unaligned(restore(chance), chance), chance),
    }
)


# --- parts of them


def make_case(
    job: Job,
    chance: Random,
    *,
    audits: list[Audit],
    inputs: list[Input] | None = None,
    ends: bool = False,
    script=None,
    parallelism: int | None = None,
    table: bool = False,
    rare_points: Sequence[FaultPoint] = (),
) -> Case:
    plugins: dict = {"kafka": (kafka_plugin, kafka_section(chance))}
    if table:
        plugins[PLUGIN] = (TablePlugin(), TableSettings(rows_max=chance.choice((1, 4, 50))))
    graph = job.graph()
    return Case(
        graph=graph,
        plugins=plugins,
        inputs=numbered(chance, "read") if inputs is None else inputs,
        parts={step.name: PARTS_IN if step.source is not None else 2 for step in graph.steps.values()},
        script=script or (run_to_the_end if ends else run_and_stop),
        audits=audits,
        parallelism=parallelism or chance.choice((1, 2, 3)),
        rare_points=rare_points,
        input_first=ends,
    )


def _moved(job: Job, chance: Random, *, audits: list[Audit], inputs: list[Input] | None = None) -> Case:
    """A case that runs through; or is put in the place of itself with fewer subtasks; or is restored from a savepoint
    with more or fewer."""
    before_ms = (chance.randrange(300, 8_000), chance.choice((0, 50, 300, 3_000)))
    before, after = chance.sample((1, 2, 3), 2)
    script, parallelism = chance.choice(
        (
            (run_and_stop, None),
            (run_and_shrink((3, 2, 1), before_ms=before_ms), None),
            (run_stop_and_restore(SAVEPOINT, before_ms=before_ms[0], parallelism=after), before),
        )
    )
    return make_case(job, chance, audits=audits, inputs=inputs, script=script, parallelism=parallelism)


def kafka_section(chance: Random) -> KafkaSettings:
    """Small transactions, and time-outs that faults reach."""
    publish_timeout_ms = chance.choice((1_000, 4_000))
    chosen = {
        "publish_rows_max": chance.choice((2, 7, 50)),
        "publish_timeout": publish_timeout_ms,
        "transaction_timeout": publish_timeout_ms + chance.choice((500, 5_000)),
        "take_over_timeout": chance.choice((500, 3_000)),
        "marker_timeout": chance.choice((200, 1_000)),
        "request_timeout": chance.choice((500, 2_000)),
    }
    return KafkaSettings(main=ClusterSettings().model_copy(update=chosen))


def numbered(
    chance: Random,
    step: str,
    *,
    tag: str = "",
    parts: int = PARTS_IN,
    records: tuple[int, int] = RECORDS,
) -> list[Input]:
    """Records for the parts of what a source reads, each part in order."""
    reached = [0] * parts
    made = []
    for _ in range(chance.randint(*records)):
        part = chance.randrange(parts)
        key = f"k{chance.randrange(KEYS)}"
        value = f"{tag}{part} {reached[part]} {key}"
        made.append(Input(step=step, part=part, key=key.encode(), value=value.encode()))
        reached[part] += 1
    return made


def two_streams(chance: Random) -> list[Input]:
    """Records for two source steps, each record at a place of its own among those of the other."""
    inputs = [*numbered(chance, "read-left", tag="l"), *numbered(chance, "read-right", tag="r")]
    chance.shuffle(inputs)  # of different parts; within each it is put in order again
    return _in_order(inputs)


def parts_of(case: Case, step: str) -> int:
    """In how many parts a source step's input comes in the end; some may be added while the job runs."""
    return max([case.parts[step], *(record.part + 1 for record in case.inputs if record.step == step)])


def more_like(case: Case, chance: Random) -> Iterator[Input]:
    """Further input of a case, without end: the numbers of each part go on where its own input stops."""
    tags: dict[str, str] = {}
    reached: dict[tuple[str, int], int] = {}
    for record in case.inputs:
        tags[record.step] = word(record.value, 0).removesuffix(str(record.part))
        reached[record.step, record.part] = int(word(record.value, 1)) + 1
    parts = [(step, part) for step in tags for part in range(parts_of(case, step))]
    while True:
        step, part = chance.choice(parts)
        number, key = reached.get((step, part), 0), f"k{chance.randrange(KEYS)}"
        reached[step, part] = number + 1
        value = f"{tags[step]}{part} {number} {key}"
        yield Input(step=step, part=part, key=key.encode(), value=value.encode())


def _in_order(inputs: list[Input]) -> list[Input]:
    """The same order of parts, with the records of each part in the order of their numbers."""
    by_part: dict[tuple[str, int], list[Input]] = {}
    for record in sorted(inputs, key=lambda record: int((record.value or b"").split()[1])):
        by_part.setdefault((record.step, record.part), []).append(record)
    return [by_part[record.step, record.part].pop(0) for record in inputs]


def copied() -> Audit:
    """Within each input part and key every number once, in order."""
    return pass_through(group=_part_and_key, item=_number)


def counts(*, sink: str | None = None, state: str | None = None) -> Audit:
    """For each key 1, 2, 3, … in order; and the checkpoints hold the counts."""
    return keyed_count(
        keys=lambda key, value: [word(value, 2)],
        counted=counted_in_output,
        sink=sink,
        state=None if state is None else CountedState(step="count", name=state),
    )


def counted_in_output(key: bytes | None, value: bytes | None) -> tuple[Hashable, int]:
    """What was counted, and how far."""
    return word(value, 0), int(word(value, 1))


def _part_and_key(key: bytes | None, value: bytes | None) -> Hashable:
    return word(value, 0), word(value, 2)


def _number(key: bytes | None, value: bytes | None) -> Hashable:
    return word(value, 1)


def word(value: bytes | None, index: int) -> str:
    return (value or b"").decode().split()[index]
