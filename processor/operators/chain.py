"""The operators of one chain: a tree in which each calls the next, without a channel between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from processor.contracts.completion import Completion
from processor.ids import CheckpointId, StepName
from processor.invariant import invariant
from processor.operators.joined_completion import JoinedCompletion
from processor.operators.operator import (
    MAIN_OUTPUT,
    AnyOperator,
    Collector,
    OperatorContext,
    OperatorSnapshot,
)
from processor.records.batch import Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainLink:
    """Batches of one output of a node go to an input of a later node."""

    origin: int
    """Index into the chain's nodes."""
    output: str = MAIN_OUTPUT
    target: int
    input: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainExit:
    """Batches of one output of a node leave the chain."""

    origin: int
    output: str = MAIN_OUTPUT
    collector: Collector[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainNode:
    """One step; without an operator it is a source, whose batches the subtask brings."""

    step: StepName
    operator: AnyOperator | None


class _ToOperator:
    """Hands batches to one input of an operator."""

    __slots__ = ("_input", "_on_batch", "_out")

    def __init__(self, operator: AnyOperator, input: int, out: Collector[Any]) -> None:
        self._on_batch = operator.on_batch
        self._input = input
        self._out = out

    def emit(self, batch: Batch[Any]) -> None:
        self._on_batch(self._input, batch, self._out)


class _ToSeveral:
    """Hands every batch to several readers, in a fixed order. Nobody changes a batch, so they share it."""

    __slots__ = ("_collectors",)

    def __init__(self, collectors: Sequence[Collector[Any]]) -> None:
        self._collectors = tuple(collectors)

    def emit(self, batch: Batch[Any]) -> None:
        for collector in self._collectors:
            collector.emit(batch)


class _ToNobody:
    """Nobody reads this output."""

    __slots__ = ()

    def emit(self, batch: Batch[Any]) -> None:
        return None


_NOBODY = _ToNobody()


def _joined(collectors: Sequence[Collector[Any]]) -> Collector[Any]:
    if not collectors:
        return _NOBODY
    return collectors[0] if len(collectors) == 1 else _ToSeveral(collectors)


class ChainRunner:
    """Runs the operators of one chain of one subtask, in the subtask's thread.

    ``nodes`` are ordered so that every node comes after the one that feeds it. Walking them in order is
    walking with the records: what a node's timers emit reaches its readers before the watermark (case 46).
    """

    def __init__(
        self, nodes: Sequence[ChainNode], links: Sequence[ChainLink], exits: Sequence[ChainExit]
    ) -> None:
        invariant(len(nodes) > 0, "a chain has at least one step")
        invariant(all(link.origin < link.target for link in links), "a chain's links point forward")
        self._nodes = tuple(nodes)
        outs = self._connect(links, exits)
        self._running = tuple(
            (node.step, node.operator, out)
            for node, out in zip(nodes, outs, strict=True)
            if node.operator is not None
        )
        self._operators = tuple(operator for _, operator, _ in self._running)
        first = nodes[0].operator
        self._first = None if first is None else first.on_batch
        self._first_out = outs[0]

    def _connect(self, links: Sequence[ChainLink], exits: Sequence[ChainExit]) -> tuple[Collector[Any], ...]:
        """Build the readers from the leaves up; returns the main output of every node."""
        outs: list[Collector[Any]] = [_NOBODY] * len(self._nodes)
        for index in range(len(self._nodes) - 1, -1, -1):
            readers: dict[str, list[Collector[Any]]] = {}
            for link in links:
                if link.origin == index:
                    target = self._nodes[link.target].operator
                    invariant(target is not None, "a source has no input")
                    assert target is not None
                    reader = _ToOperator(target, link.input, outs[link.target])
                    readers.setdefault(link.output, []).append(reader)
            for exit in exits:
                if exit.origin == index:
                    readers.setdefault(exit.output, []).append(exit.collector)
            outs[index] = _joined(readers.pop(MAIN_OUTPUT, []))
            operator = self._nodes[index].operator
            if operator is not None:
                operator.connect({tag: _joined(found) for tag, found in readers.items()})
        return tuple(outs)

    def open(self, context_for: Callable[[StepName], OperatorContext]) -> None:
        """Open every operator, first to last. When one raises, those already open are closed."""
        opened: list[AnyOperator] = []
        try:
            for step, operator, _ in self._running:
                operator.open(context_for(step))
                opened.append(operator)
        except BaseException:
            for operator in reversed(opened):
                operator.close()
            raise

    def on_batch(self, input: int, batch: Batch[Any]) -> None:
        """One batch for the first step; of a chain that starts with a source, for the steps after it."""
        if self._first is None:
            self._first_out.emit(batch)
        else:
            self._first(input, batch, self._first_out)

    def on_watermark(self, time_ms: int) -> None:
        for _, operator, out in self._running:
            operator.on_watermark(time_ms, out)

    def on_processing_time(self, now_ms: int) -> None:
        for _, operator, out in self._running:
            operator.on_processing_time(now_ms, out)

    def next_processing_time_ms(self) -> int | None:
        """The earliest moment at which an operator waits for the clock; None: none does."""
        waiting = [operator.next_processing_time_ms() for operator in self._operators]
        return min((moment for moment in waiting if moment is not None), default=None)

    def on_end(self) -> None:
        for _, operator, out in self._running:
            operator.on_end(out)

    def start_anew(self) -> None:
        for operator in self._operators:
            operator.start_anew()

    def cut(self, checkpoint: CheckpointId) -> Completion[OperatorSnapshot]:
        """The cut of every operator in order, as one completion. If one raises, the others are discarded."""
        completions: list[Completion[OperatorSnapshot]] = []
        try:
            for operator in self._operators:
                completions.append(operator.cut(checkpoint))
        except BaseException:
            for completion in completions:
                completion.discard()
            raise
        return JoinedCompletion(completions)

    def decided(self, checkpoint: CheckpointId) -> None:
        for operator in self._operators:
            operator.decided(checkpoint)

    def completed(self, checkpoint: CheckpointId) -> None:
        for operator in self._operators:
            operator.completed(checkpoint)

    def aborted(self, checkpoint: CheckpointId) -> None:
        for operator in self._operators:
            operator.aborted(checkpoint)

    def pressed(self) -> bool:
        return any(operator.pressed() for operator in self._operators)

    def close(self) -> None:
        """Close every operator, last to first; the first error is raised once all were tried."""
        failure: BaseException | None = None
        for operator in reversed(self._operators):
            try:
                operator.close()
            except BaseException as error:
                failure = failure or error
        if failure is not None:
            raise failure
