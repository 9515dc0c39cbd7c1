"""Where batches leave a subtask: each output is split over the channels of its edge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from processor.contracts.channel import ChannelSender
from processor.errors import UserCodeError
from processor.ids import StepName, owner_of
from processor.invariant import invariant
from processor.operators.per_record import author_error, reached, walk
from processor.records.batch import Batch
from processor.records.elements import Barrier, EndOfInput, Idle, Watermark
from processor.records.key_groups import key_group

_REMEDY: Final = "Mend it, or leave such records out before, by filter."


class Output(Protocol):
    """One edge out of a subtask, with a channel to each consumer subtask it sends to."""

    @property
    def senders(self) -> Sequence[ChannelSender]: ...

    def emit(self, batch: Batch[Any]) -> None: ...


class InTurnOutput:
    """Whole batches; with several consumers, each batch goes to the next one in turn."""

    def __init__(self, senders: Sequence[ChannelSender], *, first: int = 0) -> None:
        """``first``: with whom it begins, so that many producers do not all begin with the same."""
        invariant(len(senders) > 0, "an edge has a consumer")
        self.senders = tuple(senders)
        self._next = first % len(senders)

    def emit(self, batch: Batch[Any]) -> None:
        sender = self.senders[self._next]
        self._next = (self._next + 1) % len(self.senders)
        sender.send(batch)


class KeyedOutput:
    """Each record goes to the subtask that owns its key group; order per key is kept."""

    def __init__(self, senders: Sequence[ChannelSender], max_parallelism: int) -> None:
        invariant(len(senders) > 0, "an edge has a consumer")
        self.senders = tuple(senders)
        self._max_parallelism = max_parallelism
        self._owners = [owner_of(group, len(senders), max_parallelism) for group in range(max_parallelism)]

    def emit(self, batch: Batch[Any]) -> None:
        senders = self.senders
        if len(senders) == 1:
            senders[0].send(batch)
            return
        keys = batch.keys
        invariant(keys is not None, "batches on a keyed edge carry keys")
        assert keys is not None
        owners, limit = self._owners, self._max_parallelism
        indexes: list[list[int]] = [[] for _ in senders]
        for index, key in enumerate(keys):
            indexes[owners[key_group(key, limit)]].append(index)
        _deal_out(batch, senders, indexes)


class PartitionedOutput:
    """Each record goes where the author's function says; the order of those that go to one subtask is kept."""

    def __init__(
        self, senders: Sequence[ChannelSender], number: Callable[[Any], int], step: StepName
    ) -> None:
        """``step`` is the author's name for this partitioning, for errors."""
        invariant(len(senders) > 0, "an edge has a consumer")
        self.senders = tuple(senders)
        self._number = number
        self._step = step

    def emit(self, batch: Batch[Any]) -> None:
        """Raises: UserCodeError with the record's place, for a function that raises or gives no whole number."""
        senders = self.senders
        indexes: list[list[int]] = [[] for _ in senders]
        for index, number in enumerate(self._numbers(batch)):
            indexes[number % len(senders)].append(index)
        _deal_out(batch, senders, indexes)

    def _numbers(self, batch: Batch[Any]) -> list[int]:
        number, walker = self._number, walk(batch.values)
        try:
            numbers = [number(value) for value in walker]
        except Exception as error:
            where = batch.where(reached(batch.values, walker), self._step)
            raise author_error(error, "the function", where=where, remedy=_REMEDY) from error
        for index, given in enumerate(numbers):
            if type(given) is not int:
                raise UserCodeError(
                    f"the function gave {given!r:.80}, which is no whole number.",
                    remedy=_REMEDY,
                    where=batch.where(index, self._step),
                )
        return numbers


def _deal_out(batch: Batch[Any], senders: Sequence[ChannelSender], indexes: Sequence[list[int]]) -> None:
    """To each sender the records of the batch with its indexes."""
    for sender, chosen in zip(senders, indexes, strict=True):
        if len(chosen) == len(batch):
            sender.send(batch)
        elif chosen:
            sender.send(batch.take(chosen))


class BroadcastOutput:
    """Every batch to every subtask. Nobody changes a batch, so they share it."""

    def __init__(self, senders: Sequence[ChannelSender]) -> None:
        invariant(len(senders) > 0, "an edge has a consumer")
        self.senders = tuple(senders)

    def emit(self, batch: Batch[Any]) -> None:
        for sender in self.senders:
            sender.send(batch)


class OutputGate:
    """All outputs of a subtask. Marks go to every channel of every output."""

    def __init__(self, outputs: Sequence[Output]) -> None:
        self.outputs = tuple(outputs)
        self._senders = tuple(sender for output in outputs for sender in output.senders)

    def ready(self) -> bool:
        """Whether the subtask may take another batch in: False while any channel is full."""
        return all(sender.ready() for sender in self._senders)

    def mark(self, mark: Watermark | Barrier | Idle | EndOfInput) -> None:
        for sender in self._senders:
            sender.send(mark)
