"""What each subtask gets of the checkpoint an attempt starts from (D4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from processor.contracts.source import Source
from processor.ids import KeyGroupRange, Position, SplitId, StepName
from processor.operators.operator import Restored
from processor.protocol.entries import CheckpointEntry, StateFile, SubtaskSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredSource:
    """A source step as it stood, over all subtasks of then."""

    positions: Mapping[SplitId, Position]
    watermarks: Mapping[SplitId, int]


def bounded(source: Source[Any], positions: Mapping[SplitId, Position]) -> bool:
    """Whether a source as a whole ends: its splits say, as they were resolved once; without any, the source."""
    if not positions:
        return source.bounded
    return all(position.end is not None for position in positions.values())


def restored_source(entry: CheckpointEntry, step: StepName) -> RestoredSource:
    positions: dict[SplitId, Position] = {}
    watermarks: dict[SplitId, int] = {}
    for subtask in entry.subtasks:
        for source in subtask.sources:
            if source.step == step:
                positions.update(source.positions)
                watermarks.update(source.watermarks)
    return RestoredSource(positions=positions, watermarks=watermarks)


def restored_operator(
    subtasks: Iterable[SubtaskSnapshot], step: StepName, key_groups: KeyGroupRange
) -> Restored:
    """Files and event times whose key groups meet the range (R27), and all files of what belongs to no key."""
    keyed: list[StateFile] = []
    operators: list[tuple[int, StateFile]] = []
    watermarks: dict[KeyGroupRange, int] = {}
    for subtask in subtasks:
        for state in subtask.keyed:
            if state.step == step and state.key_groups.intersects(key_groups):
                keyed.append(state)
        operators += ((subtask.subtask.index, held) for held in subtask.operators if held.step == step)
        for reached in subtask.event_times:
            groups, time_ms = reached.key_groups, reached.watermark_ms
            if reached.step == step and groups.intersects(key_groups):
                watermarks[groups] = max(time_ms, watermarks.get(groups, time_ms))
    operators.sort(key=lambda held: held[0])
    return Restored(keyed=tuple(keyed), operators=tuple(file for _, file in operators), watermarks=watermarks)


def processing_time_reached(entry: CheckpointEntry) -> int:
    """The latest processing time of any subtask: none may fall behind it (R28)."""
    return max((subtask.processing_time_ms for subtask in entry.subtasks), default=0)
