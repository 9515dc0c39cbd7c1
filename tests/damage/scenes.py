"""Checkpoints and savepoints as jobs leave them, made by running one: what damage is done to."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from processor.contracts.job_control import Outcome
from processor.errors import ProcessorError, Unavailable
from processor.fault_points import FaultPoint
from processor.protocol.entries import CheckpointEntry
from tests.damage.job import Words, told
from tests.unit.runtime.kit import CountedChance, JobRun
from tests.unit.task.kit import ListSource, Outside

OWN_FILES = "own files"
"""Of RocksDB: snapshots are its files."""
BACKENDS = ("memory", "rocksdb", OWN_FILES)

DECIDED, PUBLISHED, STOPPED = "decided", "published", "stopped"
SAVEPOINT, NATIVE_SAVEPOINT = "savepoint", "native savepoint"
ALL = [
    (name, backend)
    for backend in BACKENDS
    for name in (DECIDED, PUBLISHED, STOPPED, SAVEPOINT, NATIVE_SAVEPOINT)
]

FIRST_CHECKPOINTS = 2
"""Of the run before the last; what it leaves is what is older."""
SECOND_CHECKPOINTS = 3
CHECKPOINTS_MAX = 8
"""Until one of them has every kind of file."""
POLLS_BEFORE = 24
"""A checkpoint is asked for: enough for some records to be waiting."""
_CHECKPOINT = {"retained": 3, "unaligned": True, "alignment_timeout": "0ms", "interval": "10m"}
_RUNTIME = {"restart": {"strategy": "none"}, "elements_per_turn": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Something a job goes on from."""

    name: str
    backend: str
    directory: Path
    """Of the job; or the savepoint."""
    older: Path
    """The same as it was before; or a savepoint that was taken before."""
    savepoint: bool
    words: Words
    outside: Outside
    chance: CountedChance
    newest: CheckpointEntry
    parent: CheckpointEntry | None

    @property
    def out(self) -> bool:
        """Whether the outside world has output of the newest checkpoint."""
        return any(
            marker.checkpoint == self.newest.checkpoint and marker.rows > 0
            for marker in self.outside.markers.values()
        )

    def copied_to(self, folder: Path) -> Path:
        """A copy of the directory, in a folder that is there, for ``again`` to start from."""
        target = folder / "savepoint" if self.savepoint else folder / "root" / self.directory.name
        shutil.copytree(self.directory, target)
        return target

    def again(self, folder: Path) -> JobRun:
        """The job over what ``copied_to`` left there, with all of its input. Raises ProcessorError."""
        outside = deepcopy(self.outside)
        if self.savepoint:  # whoever starts from it has a log of its own, and no marker is there of that
            outside.markers.clear()
        return made(
            self.backend, folder / "root", self.words.whole(), outside=outside, chance=deepcopy(self.chance)
        )


def made(backend: str, root: Path, source: ListSource, **more: Any) -> JobRun:
    """A run of the job with its checkpoints under ``root``."""
    return JobRun(
        root,
        source=source,
        build=told,
        parallelism=3,
        checkpoint=dict(_CHECKPOINT),
        runtime=dict(_RUNTIME),
        backend={
            "backend": "rocksdb" if backend == OWN_FILES else backend,
            "directory": root.parent / "local",
        },
        own_files=backend == OWN_FILES,
        **more,
    )


def scenes(folder: Path, seed: int, chosen: Sequence[tuple[str, str]] = ALL) -> list[Scene]:
    """The chosen ones, each of a sort and over a backend, made below a folder that is there."""
    make: dict[str, Callable[[Path, str, Random], Scene]] = {
        DECIDED: _decided,
        PUBLISHED: _published,
        STOPPED: _stopped,
        SAVEPOINT: partial(_saved, name=SAVEPOINT),
        NATIVE_SAVEPOINT: partial(_saved, name=NATIVE_SAVEPOINT),
    }
    found = []
    for name, backend in chosen:
        below = folder / f"{name}-{backend}".replace(" ", "-")
        below.mkdir()
        found.append(make[name](below, backend, Random(f"{seed} {name} {backend}")))
    return found


def _decided(folder: Path, backend: str, chance: Random) -> Scene:
    """Killed once a checkpoint was decided, before anything of it was out."""
    return _killed(DECIDED, folder, backend, chance, FaultPoint.ENTRY_TAKEN_NOT_TOLD)


def _published(folder: Path, backend: str, chance: Random) -> Scene:
    """Killed once a checkpoint was published, before that was noted."""
    return _killed(PUBLISHED, folder, backend, chance, FaultPoint.PUBLISHED_NOT_RECORDED)


def _killed(name: str, folder: Path, backend: str, chance: Random, at: FaultPoint) -> Scene:
    words, run = _begun(folder, backend, chance)

    killed = False

    def fault(point: FaultPoint) -> None:
        nonlocal killed
        if point is at and _has_everything(run):
            killed = True
            raise Unavailable("killed here")

    run.faults = fault
    with suppress(ProcessorError):
        _run_for(run, words, CHECKPOINTS_MAX, lambda: None)
    assert killed, f"{name}: the input has ended before there was a checkpoint of every kind of file"
    return _scene(name, folder, backend, words, run, folder / "root" / "told", savepoint=False)


def _stopped(folder: Path, backend: str, chance: Random) -> Scene:
    """Stopped in order: all is out, and noted."""
    words, run = _begun(folder, backend, chance)
    _run_for(run, words, SECOND_CHECKPOINTS, lambda: setattr(run.signals, "asked", True))
    return _scene(STOPPED, folder, backend, words, run, folder / "root" / "told", savepoint=False)


def _saved(folder: Path, backend: str, chance: Random, *, name: str) -> Scene:
    """Stopped with a savepoint, and before with another one."""
    words, run = _begun(folder, backend, chance)
    older, saved = str(folder / "before"), str(folder / "saved")
    for place in (older, saved):
        _run_for(run, words, SECOND_CHECKPOINTS, partial(_stop, run, place, name == NATIVE_SAVEPOINT))
    assert [outcome.refused for outcome in run.answers] == ["", ""], run.answers
    shutil.rmtree(folder / "older")
    Path(older).rename(folder / "older")
    return _scene(name, folder, backend, words, run, Path(saved), savepoint=True)


def _stop(run: JobRun, place: str, native: bool) -> None:
    run.control.stop(place, run.answers.append, native=native)


def _begun(folder: Path, backend: str, chance: Random) -> tuple[Words, JobRun]:
    """A job that has run and was stopped, with a copy of what it left."""
    words = Words(chance=chance)
    run = made(backend, folder / "root", words.source)
    _run_for(run, words, FIRST_CHECKPOINTS, lambda: setattr(run.signals, "asked", True))
    run.signals.asked = False
    shutil.copytree(run.directory.path, folder / "older")
    return words, run


def _run_for(run: JobRun, words: Words, checkpoints: int, then: Callable[[], object]) -> None:
    """Run until so many checkpoints are published and ``then`` has ended it; input comes before and after each is
    asked for."""
    done, asked, polls = 0, False, 0

    def answered(outcome: Outcome) -> None:
        nonlocal done, asked, polls
        done += not outcome.refused
        asked, polls = False, 0

    def on_poll() -> None:
        nonlocal asked, polls
        polls += 1
        if polls < 2 * POLLS_BEFORE:
            words.more()
        if polls >= POLLS_BEFORE and not asked:
            asked = True
            if done < checkpoints:
                run.control.checkpoint(answered)
            else:
                then()

    run.source.on_poll = on_poll
    assert run.run() == 0


def _has_everything(run: JobRun) -> bool:
    view = run.log.read_all()
    entry = view.newest()
    return (
        entry is not None
        and view.parent_of(entry) is not None
        and bool(entry.outboxes())
        and entry.records_in_flight > 0
        and any(held.database or len(part.keyed) > 1 for part in entry.subtasks for held in part.keyed)
    )


def _scene(
    name: str,
    folder: Path,
    backend: str,
    words: Words,
    run: JobRun,
    directory: Path,
    *,
    savepoint: bool,
) -> Scene:
    view = run.log.read_all()
    entry = view.newest()
    assert entry is not None
    return Scene(
        name=name,
        backend=backend,
        directory=directory,
        older=folder / "older",
        savepoint=savepoint,
        words=words,
        outside=run.outside,
        chance=run.chance,
        newest=entry,
        parent=view.parent_of(entry),
    )
