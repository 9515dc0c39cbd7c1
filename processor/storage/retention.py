"""What may be forgotten, and forgetting it (R7, R22).

Two steps, so that a crash leaves garbage at worst and never a hole: a decided entry *condemns* files, and
only then are they deleted; a place is given up only when nothing of its entry is left on the store. What no
entry ever named is swept by a later attempt.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, replace

from processor.contracts.file_store import FileStore
from processor.errors import LogConflict
from processor.fault_points import FaultHook, FaultPoint, no_faults
from processor.ids import Attempt, CheckpointId, Place
from processor.invariant import invariant
from processor.protocol.decisions import LogView, is_published
from processor.protocol.entries import CheckpointEntry, Published, Rewind, Seal
from processor.storage.decision_log import DecisionLog
from processor.storage.layout import attempt_of

RETAINED_MIN = 2
"""The newest decided checkpoint and its parent are always kept (R7)."""


def kept(log: LogView, retained: int) -> tuple[CheckpointEntry, ...]:
    """The checkpoints that are kept: the newest, its ancestors, then the newest others, up to ``retained``.

    The ancestors first: a recovery that cannot read one goes back along them (R3). Beyond the parent, what was
    condemned once stays out, though its entry may still be there and a later one leave room for it.
    """
    newest_first = sorted(log.checkpoints(), key=lambda entry: entry.place, reverse=True)
    doomed = condemned(log)
    entry = log.newest() or next(iter(newest_first), None)  # right after a rewind the old branch stays
    line: list[CheckpointEntry] = []
    while entry is not None and len(line) < max(retained, RETAINED_MIN):
        if len(line) >= RETAINED_MIN and doomed & _states(entry):
            break
        line.append(entry)
        parent, place = entry.parent, entry.place
        entry = next((e for e in newest_first if e.checkpoint == parent and e.place < place), None)
    places = {entry.place for entry in line}
    others = [e for e in newest_first if e.place not in places and not doomed & _states(e)]
    return (*line, *others[: max(retained, RETAINED_MIN) - len(line)])


def in_use(log: LogView, retained: int, published: Published | None) -> frozenset[str]:
    """Names of the files that a recovery may still ask for."""
    names: set[str] = set()
    for entry in kept(log, retained):
        names.update(_states(entry))
        if not is_published(entry, published):
            names.update(_outboxes(entry))
    return frozenset(names)


def condemned(log: LogView) -> frozenset[str]:
    """Every name condemned by an entry that is still there. Nothing of it is ever restored or claimed."""
    return frozenset(name for entry in log.checkpoints() for name in entry.condemned)


def condemned_by(
    log: LogView,
    entry: CheckpointEntry,
    *,
    retained: int,
    published: Published | None,
    given_up: Iterable[str],
    present: Set[str],
    needed_from: CheckpointId,
) -> tuple[str, ...]:
    """What ``entry``, about to be decided after ``log``, condemns.

    Files of checkpoints that fall out of retention with it, outboxes that are published, and ``given_up``:
    files of this attempt's aborted checkpoints. State of checkpoints from ``needed_from`` on stays: a snapshot
    that was cut before this decision may build on it. ``present`` are the names of files that entries named and
    the store has: what is gone already is not condemned again by every entry to come.
    """
    after = LogView(entries=(*log.entries, entry))
    before = condemned(log)
    used = in_use(after, retained, published) | {file.name for file in entry.files()}
    for past in log.checkpoints():
        if past.checkpoint >= needed_from:
            used |= _states(past)
    old = {file.name for past in log.checkpoints() for file in past.files()}
    names = ((old & present) | set(given_up)) - used - before
    return tuple(sorted(names))


def refuse_condemned(log: LogView, entry: CheckpointEntry) -> None:
    """Before a checkpoint is restored or claimed: none of its state is condemned in any entry (R22).

    Its outboxes may be, once they are out. Raises LogConflict.
    """
    found = sorted(condemned(log) & _states(entry))
    if found:
        raise LogConflict(
            f"checkpoint {entry.checkpoint} cannot be restored: its file '{found[0]}' ({len(found)} in all) "
            "is condemned by a newer entry of the decision log, and may be deleted at any moment.",
            remedy="Start from a newer checkpoint, or from a savepoint.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgettable:
    """What may go now: the files first, then the places."""

    files: tuple[str, ...]
    places: tuple[Place, ...]


def forgettable(log: LogView, *, retained: int, present: Set[str]) -> Forgettable:
    """What the entries of the log allow to be deleted.

    Files: those an entry condemns and the store has. Places: of checkpoints that are not kept, once all their
    files are condemned or gone, except the one before a seal or a rewind: a zombie must not find the place
    free that it takes to be the next (R7).
    """
    doomed = condemned(log)
    keeping = kept(log, retained)
    for entry in keeping:
        # Of all but the newest the outboxes are out, and condemned.
        needed = _states(entry) | (_outboxes(entry) if entry is keeping[0] else set())
        invariant(not doomed & needed, "nothing condemned is part of a checkpoint that is kept")
    keep = {entry.place for entry in keeping} | _guarded(log)
    return Forgettable(
        files=tuple(sorted(doomed & present)),
        places=tuple(
            entry.place
            for entry in log.checkpoints()
            if entry.place not in keep and not {file.name for file in entry.files()} & present - doomed
        ),
    )


def orphans(names: Iterable[str], log: LogView, current: Attempt) -> tuple[str, ...]:
    """Files that attempts below ``current`` left behind and that no entry names.

    Of this attempt and of newer ones nothing is taken: its files may be named by an entry to come. After the
    seal of ``current`` no older attempt can decide anything, so what it did not get into an entry never will
    be.
    """
    named = {file.name for entry in log.checkpoints() for file in entry.files()}
    return tuple(
        name
        for name in sorted(names)
        if (attempt := attempt_of(name)) is not None and attempt < current and name not in named
    )


class Retention:
    """Condemns and deletes for one attempt, the one that has sealed the log. Used by one thread at a time."""

    def __init__(
        self,
        *,
        files: FileStore,
        log: DecisionLog,
        view: LogView,
        attempt: Attempt,
        retained: int,
        faults: FaultHook = no_faults,
    ) -> None:
        """``view`` is the log up to and with what this attempt's recovery wrote. Raises Unavailable."""
        self._files = files
        self._log = log
        self._view = view
        self._attempt = attempt
        self._retained = retained
        self._faults = faults
        self._given_up: set[str] = set()
        self._names = files.names("")
        named = condemned(view) | {file.name for entry in view.checkpoints() for file in entry.files()}
        self._present = set(named.intersection(self._names))

    def sweep(self) -> int:
        """Delete what dead attempts left and no entry names; the number of files. Raises Unavailable."""
        found = orphans(self._names, self._view, self._attempt)
        self._names = []
        for name in found:
            self._files.delete(name)
        return len(found)

    def give_up(self, names: Iterable[str]) -> None:
        """Files of an aborted checkpoint of this attempt: the next entry condemns them."""
        self._given_up.update(names)

    def complete(
        self, entry: CheckpointEntry, published: Published | None, *, needed_from: CheckpointId
    ) -> CheckpointEntry:
        """The entry about to be decided, with what it condemns; ``needed_from``: see ``condemned_by``."""
        names = condemned_by(
            self._view,
            entry,
            retained=self._retained,
            published=published,
            given_up=self._given_up,
            present=self._present,
            needed_from=needed_from,
        )
        return replace(entry, condemned=names)

    def decided(self, entry: CheckpointEntry) -> None:
        """The entry has its place."""
        self._view = LogView(entries=(*self._view.entries, entry))
        self._present.update(entry.condemned, (file.name for file in entry.files()))
        self._given_up.difference_update(entry.condemned)

    def forget(self) -> Forgettable:
        """Delete what the log allows to. Idempotent; what a crash or an error leaves, the next call takes.

        Raises Unavailable.
        """
        found = forgettable(self._view, retained=self._retained, present=self._present)
        middle = len(found.files) // 2
        for count, name in enumerate(found.files):
            if count == middle:
                self._faults(FaultPoint.OLDER_HALF_DELETED)
            self._files.delete(name)
            self._present.discard(name)
        for place in found.places:
            self._log.forget(place)
        gone = set(found.places)
        self._view = LogView(entries=tuple(e for e in self._view.entries if e.place not in gone))
        return found


def _guarded(log: LogView) -> set[Place]:
    """The places before a seal or a rewind."""
    return {Place(entry.place - 1) for entry in log.entries if isinstance(entry, Seal | Rewind)}


def _states(entry: CheckpointEntry) -> set[str]:
    return {file.name for subtask in entry.subtasks for file in subtask.state_files()}


def _outboxes(entry: CheckpointEntry) -> set[str]:
    return {outbox.file.name for subtask in entry.subtasks for outbox in subtask.outboxes}
