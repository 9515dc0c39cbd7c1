"""Steps and states that are called otherwise in a job than in the checkpoint it starts from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from processor.errors import JobError, SettingsError
from processor.ids import EdgeName, StepName
from processor.protocol.entries import (
    CheckpointEntry,
    JobShape,
    ParticipantState,
    StateFile,
    SubtaskSnapshot,
)
from processor.runtime.discovery import participant_name

K = TypeVar("K", bound=str)
V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class Renaming:
    """One ``--rename old=new``: a step by its name, a state as ``step/state``."""

    old: str
    new: str


def read_renamings(given: Iterable[str]) -> tuple[Renaming, ...]:
    """What ``--rename`` was given. Raises SettingsError for what is no renaming."""
    found: list[Renaming] = []
    for text in given:
        old, equals, new = text.partition("=")
        if not (old and equals and new) or "=" in new or old == new:
            raise SettingsError(
                f"--rename '{text}' does not say what was renamed.",
                remedy="Write OLD=NEW, for a state STEP/OLD=STEP/NEW, with the names in the checkpoint first.",
            )
        found.append(Renaming(old=old, new=new))
    return tuple(found)


def renamed(entry: CheckpointEntry, renamings: Iterable[Renaming]) -> CheckpointEntry:
    """The checkpoint as if its steps and states had always been called as they are now.

    It is what a restore goes by, and never written. Raises like ``renamed_shape``.
    """
    renamings = tuple(renamings)
    for renaming in renamings:
        found = _found(entry.shape, renaming, renamings)
        shape = _shape_with(entry.shape, found)
        match found:
            case _Step(old=old, new=new):
                entry = _with_step(entry, shape, old, new)
            case _State(step=step, old=old, new=new):
                entry = _with_state(entry, shape, step, old, new)
            case None:
                pass
    return entry


def renamed_shape(shape: JobShape, renamings: Iterable[Renaming]) -> JobShape:
    """``renamed`` of the shape alone. One that was done already, by an earlier start of the same command, is left.

    Raises JobError for a name that is not there, naming those that are, and for a new name that is there already.
    """
    renamings = tuple(renamings)
    for renaming in renamings:
        shape = _shape_with(shape, _found(shape, renaming, renamings))
    return shape


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    old: StepName
    new: StepName


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    step: StepName
    old: str
    new: str


def _found(shape: JobShape, renaming: Renaming, renamings: tuple[Renaming, ...]) -> _Step | _State | None:
    """What is to be renamed; None: it was done."""
    steps = {*shape.stateful, *shape.sources, *shape.parallelism}
    if renaming.old in steps:
        if renaming.new in steps:
            raise _both(f"step '{renaming.old}'", f"'{renaming.new}'")
        return _Step(old=StepName(renaming.old), new=StepName(renaming.new))
    for (
        step,
        states,
    ) in shape.stateful.items():  # a step's name may have a slash: what is there says where it ends
        old = renaming.old.removeprefix(f"{step}/")
        if old == renaming.old or old not in states:
            continue
        new = renaming.new.removeprefix(f"{step}/")
        if new == renaming.new or not new:
            raise JobError(
                f"--rename {renaming.old}={renaming.new} leads out of step '{step}': a state stays in its step.",
                remedy=f"Write --rename {renaming.old}={step}/NEW.",
            )
        if new in states:
            raise _both(f"state '{old}' of step '{step}'", f"'{new}'")
        return _State(step=step, old=old, new=new)
    there = {*steps, *(f"{step}/{state}" for step, states in shape.stateful.items() for state in states)}
    # Of a state whose step was renamed too, the new name may be given under the old name of the step.
    moved = {
        each.new + renaming.new.removeprefix(each.old)
        for each in renamings
        if renaming.new.startswith(f"{each.old}/")
    }
    if renaming.new in there or moved & there:
        return None
    raise JobError(
        f"--rename {renaming.old}={renaming.new}: the checkpoint has neither '{renaming.old}' nor '{renaming.new}'.",
        remedy=f"Choose one of those that are there: {', '.join(sorted(there)) or 'none'}.",
    )


def _shape_with(shape: JobShape, found: _Step | _State | None) -> JobShape:
    match found:
        case _Step(old=old, new=new):
            return replace(
                shape,
                parallelism=_keys(shape.parallelism, old, new),
                stateful=_keys(shape.stateful, old, new),
                sources=tuple(sorted(new if step == old else step for step in shape.sources)),
            )
        case _State(step=step, old=old, new=new):
            stateful = {**shape.stateful, step: _keys(shape.stateful[step], old, new)}
            return replace(shape, stateful=stateful)
        case None:
            return shape


def _keys(of: Mapping[K, V], old: K, new: K) -> dict[K, V]:
    return {new if key == old else key: value for key, value in of.items()}


def _with_step(entry: CheckpointEntry, shape: JobShape, old: StepName, new: StepName) -> CheckpointEntry:
    def name(step: StepName) -> StepName:
        return new if step == old else step

    def participant(each: ParticipantState) -> ParticipantState:
        return replace(each, name=participant_name(new)) if each.name == participant_name(old) else each

    return replace(
        entry,
        shape=shape,
        subtasks=tuple(_subtask(subtask, name) for subtask in entry.subtasks),
        participants=tuple(map(participant, entry.participants)),
    )


def _with_state(
    entry: CheckpointEntry, shape: JobShape, step: StepName, old: str, new: str
) -> CheckpointEntry:
    def file(held: StateFile) -> StateFile:
        if held.step != step or old not in held.states:
            return held
        kept_as = {**_keys(held.kept_as, old, new), new: held.kept_as.get(old, old)}
        return replace(held, states=_keys(held.states, old, new), kept_as=kept_as)

    subtasks = (
        replace(subtask, keyed=tuple(map(file, subtask.keyed)), operators=tuple(map(file, subtask.operators)))
        for subtask in entry.subtasks
    )
    return replace(entry, shape=shape, subtasks=tuple(subtasks))


def _both(old: str, new: str) -> JobError:
    return JobError(
        f"{old} cannot be renamed to {new}: the checkpoint has both.",
        remedy="Leave the --rename out if it was done before; else choose another new name.",
    )


def _subtask(subtask: SubtaskSnapshot, name: Callable[[StepName], StepName]) -> SubtaskSnapshot:
    def edge(of: EdgeName) -> EdgeName:
        return replace(of, origin=name(of.origin), target=name(of.target))

    return replace(
        subtask,
        subtask=replace(subtask.subtask, chain=name(subtask.subtask.chain)),
        keyed=tuple(replace(held, step=name(held.step)) for held in subtask.keyed),
        operators=tuple(replace(held, step=name(held.step)) for held in subtask.operators),
        sources=tuple(replace(source, step=name(source.step)) for source in subtask.sources),
        channels=tuple(replace(channel, edge=edge(channel.edge)) for channel in subtask.channels),
        event_times=tuple(replace(reached, step=name(reached.step)) for reached in subtask.event_times),
    )
