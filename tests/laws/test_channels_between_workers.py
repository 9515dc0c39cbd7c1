"""The laws of channels between workers: one gives what one in memory would have given, however bytes are cut and
turns fall; windows hold; and whatever is full or aligned, everything comes through in the end.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from processor.channels.credits import cost
from processor.channels.memory import MemoryChannel
from processor.contracts.channel import ChannelReceiver, ChannelSender
from processor.ids import Attempt, ChannelId, CheckpointId, EdgeName, StepName
from processor.protocol.messages import CheckpointKind
from processor.records.batch import Batch
from processor.records.batch_codec import encode_batch
from processor.records.elements import Barrier, Element, EndOfInput, Idle, Watermark
from processor.task.input_gate import CutNow, InputChannel, InputGate, Records
from tests.unit.channels.kit import CODEC, EDGE, HERE, THERE, Pair

NAME = EdgeName(origin=StepName("a"), output="", target=StepName("b"), input=0)
TURNS_MAX = 100_000
"""More than any of these needs: who needs more waits for ever."""


def pieces(seed: int) -> Callable[[int], int]:
    """How much of what is at hand comes at once: anything."""
    chance = Random(seed)
    return lambda size: chance.randint(1, size)


def barrier(number: int) -> Barrier:
    return Barrier(attempt=Attempt(1), checkpoint=CheckpointId(number), kind=CheckpointKind.PERIODIC)


def batch(number: int, size: int = 1) -> Batch[Any]:
    """A batch that tells which one it is."""
    return Batch(values=[(number, "x" * size)], timestamps=[number], keys=[number])


def cost_of(element: Batch[Any]) -> int:
    return cost(len(encode_batch(element, CODEC.encode(element.values))))


elements = st.one_of(
    st.builds(batch, st.integers(0, 99), st.integers(0, 200)),
    st.builds(Watermark, st.integers(-(2**62), 2**62)),
    st.builds(barrier, st.integers(1, 9)),
    st.just(Idle()),
)
acts = st.one_of(elements, st.just("take"), st.integers(0, 3))
"""Send an element, take one, or let one of the barriers overtake."""


@settings(max_examples=300)
@example(begins=[], steps=[barrier(1), barrier(1), 1, 0], room=1, seed=0)
@given(
    begins=st.lists(elements.filter(lambda element: not isinstance(element, Barrier)), max_size=3),
    steps=st.lists(acts, max_size=40),
    room=st.integers(1, 400),
    seed=st.integers(0, 2**32),
)
def test_a10_a_channel_between_workers_gives_what_one_in_memory_would(begins, steps, room, seed):
    pair = Pair(window_bytes=2**20, room=room, piece=pieces(seed))
    sender, receiver = pair.here.sender(THERE, EDGE, CODEC), pair.there.receiver(HERE, EDGE, CODEC, begins)
    memory = MemoryChannel(10**6)
    for element in begins:
        memory.send(element)
    for step in steps:
        if step == "take":
            if memory.peek() is not None:
                assert receiver.take() == memory.take()
        elif isinstance(step, int):
            if step < len(memory.barriers()):
                ours, theirs = receiver.barriers()[step], memory.barriers()[step]
                assert receiver.overtake(ours) == memory.overtake(theirs)
        else:
            sender.send(step)
            memory.send(step)
            pair.settle()
        assert receiver.peek() == memory.peek()
        assert list(receiver.barriers()) == list(memory.barriers())


CHANNELS = tuple(
    ChannelId(edge=edge, producer=0, consumer=consumer) for edge in (0, 1) for consumer in (0, 1)
)
"""The first two from here to there, the others back."""


class Crossing:
    """Two workers with two channels in each direction, whose turns come anyhow."""

    def __init__(self, window_bytes: int, room: int, seed: int) -> None:
        self.pair = Pair(window_bytes=window_bytes, room=room, piece=pieces(seed))
        ends = [(self.pair.here, self.pair.there, THERE, HERE)] * 2
        ends += [(self.pair.there, self.pair.here, HERE, THERE)] * 2
        self.senders: list[ChannelSender] = []
        self.receivers: list[ChannelReceiver] = []
        for (sends, takes, to, origin), channel in zip(ends, CHANNELS, strict=True):
            self.senders.append(sends.sender(to, channel, CODEC))
            self.receivers.append(takes.receiver(origin, channel, CODEC))
        self.sent: list[list[Element]] = [[] for _ in CHANNELS]
        self.taken: list[list[Element]] = [[] for _ in CHANNELS]
        self.step_bytes = 0
        """The most that one step has sent."""

    def send(self, channel: int, sizes: list[int]) -> None:
        """One step of a producer: looks before it, and not within."""
        if not self.senders[channel].ready():
            return
        made = [batch(len(self.sent[channel]) + n, size) for n, size in enumerate(sizes)]
        self.step_bytes = max(self.step_bytes, sum(map(cost_of, made)))
        for element in made:
            self.senders[channel].send(element)
        self.sent[channel] += made

    def mark(self, channel: int) -> None:
        mark = Watermark(len(self.sent[channel]))
        self.senders[channel].send(mark)
        self.sent[channel].append(mark)

    def take(self, channel: int) -> bool:
        if self.receivers[channel].peek() is None:
            return False
        self.taken[channel].append(self.receivers[channel].take())
        return True

    def in_flight(self) -> list[int]:
        figures = (*self.pair.here.figures(), *self.pair.there.figures())
        return [figure.in_flight_bytes for figure in figures]


crossings = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(0, 3), st.lists(st.integers(0, 300), min_size=1, max_size=3)),
        st.tuples(st.just("mark"), st.integers(0, 3)),
        st.tuples(st.just("take"), st.integers(0, 3)),
        st.tuples(st.just("here")),
        st.tuples(st.just("there")),
    ),
    max_size=80,
)


@settings(max_examples=300)
@given(
    crossings, st.integers(1, 3_000), st.integers(1, 2_000), st.integers(0, 2**32), st.sets(st.integers(0, 3))
)
def test_windows_hold_and_everything_comes_through(steps, window_bytes, room, seed, asleep):
    """``asleep``: channels whose consumers take nothing until all the others are through."""
    crossing = Crossing(window_bytes, room, seed)
    for what, *rest in steps:
        match what:
            case "here":
                crossing.pair.here.turn()
            case "there":
                crossing.pair.there.turn()
            case "take" if rest[0] not in asleep:
                crossing.take(*rest)
            case "send":
                crossing.send(*rest)
            case "mark":
                crossing.mark(*rest)
        assert all(size < window_bytes + crossing.step_bytes for size in crossing.in_flight())
    awake = set(range(len(CHANNELS))) - asleep
    for some in (awake, set(range(len(CHANNELS)))):
        for _ in range(TURNS_MAX):
            moved = crossing.pair.here.turn() | crossing.pair.there.turn()
            taken = [crossing.take(channel) for channel in some]
            if not any(taken) and not moved:
                break
        for channel in some:
            assert crossing.taken[channel] == crossing.sent[channel]
            assert crossing.senders[channel].ready()


class Aligning:
    """Producers in two steps here, one consumer there that aligns their barriers, with small windows."""

    def __init__(self, *, overtakes: bool, window_bytes: int, room: int, seed: int) -> None:
        self.pair = Pair(window_bytes=window_bytes, room=room, piece=pieces(seed))
        channels = [ChannelId(edge=0, producer=producer, consumer=0) for producer in (0, 1)]
        self.senders = [self.pair.here.sender(THERE, channel, CODEC) for channel in channels]
        self.gate = InputGate(
            [
                InputChannel(
                    input=0, receiver=self.pair.there.receiver(HERE, channel, CODEC), edge=NAME, producer=n
                )
                for n, channel in enumerate(channels)
            ],
            alignment_timeout_ms=0 if overtakes else None,
        )
        self.sent = [0, 0]
        self.barriers = [0, 0]
        self.found: list[list[int]] = [[], []]
        self.cuts: list[CheckpointId] = []

    def produce(self, producer: int) -> None:
        if self.senders[producer].ready():
            number = self.sent[producer]
            self.senders[producer].send(
                Batch(values=[(producer, number)], timestamps=[number], keys=[producer])
            )
            self.sent[producer] += 1

    def mark(self, producer: int) -> None:
        """A barrier goes whatever is full. Producers have the same ones, each at its own time."""
        self.barriers[producer] += 1
        self.senders[producer].send(barrier(self.barriers[producer]))

    def consume(self) -> bool:
        cut = self.gate.overtake(0)
        event = cut or self.gate.next(0)
        match event:
            case CutNow(checkpoint=checkpoint):
                self.cuts.append(checkpoint)
            case Records(batch=records):
                ((producer, number),) = records.values
                self.found[producer].append(number)
        return event is not None


@settings(max_examples=300)
@given(
    st.lists(
        st.sampled_from(["send 0", "send 1", "mark 0", "mark 1", "here", "there", "consume"]), max_size=120
    ),
    st.booleans(),
    st.integers(1, 2_000),
    st.integers(1, 500),
    st.integers(0, 2**32),
)
def test_a09_a10_no_alignment_waits_for_a_channel_that_is_full(steps, overtakes, window_bytes, room, seed):
    aligning = Aligning(overtakes=overtakes, window_bytes=window_bytes, room=room, seed=seed)
    for step in steps:
        match step.split():
            case ["send", producer]:
                aligning.produce(int(producer))
            case ["mark", producer]:
                aligning.mark(int(producer))
            case ["here"]:
                aligning.pair.here.turn()
            case ["there"]:
                aligning.pair.there.turn()
            case ["consume"]:
                aligning.consume()
    last = max(aligning.barriers)
    for producer, sender in enumerate(aligning.senders):
        while aligning.barriers[producer] < last:
            aligning.mark(producer)
        sender.send(EndOfInput())
    for _ in range(TURNS_MAX):
        moved = aligning.pair.here.turn() | aligning.pair.there.turn()
        if not aligning.consume() and not moved:
            break
    assert aligning.gate.ended
    assert aligning.found == [list(range(sent)) for sent in aligning.sent]
    assert aligning.cuts == [CheckpointId(number) for number in range(1, last + 1)]
