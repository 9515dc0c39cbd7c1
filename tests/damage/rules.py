"""What must come of damage, by the rule of R8 and what it was done to: shares nothing with what restores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from processor.ids import FileRef
from processor.protocol.entries import CheckpointEntry
from processor.storage.identity import IDENTITY
from processor.storage.layout import FILES_FOLDER
from tests.damage.acts import Act, kind_of
from tests.damage.scenes import Scene

ENTRY = "entry"


@dataclass(frozen=True, slots=True, kw_only=True)
class Went:
    """What became of a start over damage."""

    refused: str
    """The error that ended it; empty when the job went through to its end."""
    said: str
    """What it warned of on the way."""
    wrong: str
    """What is wrong with everything that is out, if it went through."""


def complaint(scene: Scene, act: Act, touched: Sequence[str], went: Went) -> str:
    """What should have been otherwise; empty when all is as it must be."""
    if went.wrong:
        return f"went on, and {went.wrong}"
    outcome = _must(scene, act, touched)
    named = any(_sign(name) in went.refused for name in touched)
    if outcome == "refused" and not went.refused:
        return "was not refused"
    if went.refused and outcome != "refused":
        return f"was refused though it could go on: {went.refused}"
    if went.refused and not (named or _stands_for(scene, act, touched, went.refused)):
        return f"was refused without its name: {went.refused}"
    if outcome == "gone back" and not any(_sign(name) in went.said for name in touched):
        return f"went back without a word about the file: {went.said}"
    return ""


def _must(scene: Scene, act: Act, touched: Sequence[str]) -> str:
    kinds = {kind_of(name) for name in touched}
    if scene.savepoint:
        return "refused"
    if ENTRY in kinds:
        # What retention took away may be missing; but the newest one, if something of it is out, is missed.
        lost = f"{scene.newest.place:016d}.entry"
        return "went on" if act is Act.MISSING and (lost not in touched[0] or not scene.out) else "refused"
    if any(Path(name).name == IDENTITY for name in touched):
        return "went on" if act is Act.MISSING else "refused"
    if not _needed(scene) & _refs(touched):
        return "went on"  # the note of what is published costs a look when it is lost, or no good (R17)
    both = scene.parent is not None and {ref.name for ref in _state(scene.parent)} & _refs(touched)
    return "refused" if scene.out or both else "gone back"


def _needed(scene: Scene) -> set[str]:
    """Names of the files that the newest checkpoint is restored from, and published."""
    refs = _state(scene.newest)
    if not scene.out:
        refs += [outbox.file for files in scene.newest.outboxes().values() for outbox in files]
    return {ref.name for ref in refs}


def _state(entry: CheckpointEntry) -> list[FileRef]:
    return [ref for subtask in entry.subtasks for ref in subtask.state_files()]


def _refs(touched: Sequence[str]) -> set[str]:
    """As entries name files."""
    return {name.removeprefix(f"{FILES_FOLDER}/") for name in touched}


def _sign(name: str) -> str:
    """How an error names the file."""
    if kind_of(name) == ENTRY:
        return f"place {int(Path(name).stem)} "
    return Path(name).name


def _stands_for(scene: Scene, act: Act, touched: Sequence[str], refused: str) -> bool:
    """Whether another name is as good: that of what is missing, when nothing is left to name."""
    if scene.savepoint and act is Act.MISSING:
        return "is neither a savepoint" in refused or "holds no whole checkpoint" in refused
    if scene.savepoint and act is Act.OLDER and kind_of(touched[0]) == ENTRY:
        return "is missing" in refused  # it is whole, and names files of another savepoint
    return act is Act.MISSING and f"checkpoint {scene.newest.checkpoint}" in refused
