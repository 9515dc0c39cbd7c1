"""What is kept, what is condemned, what is deleted (R7, R22): garbage at worst, never a hole."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from processor.errors import EngineBug, LogConflict, Unavailable
from processor.fault_points import FaultHook, FaultPoint, no_faults
from processor.ids import Attempt, CheckpointId
from processor.protocol.decisions import LogView
from processor.protocol.entries import CheckpointEntry, Published, Rewind, Seal
from processor.storage.decision_log import DecisionLog
from processor.storage.retention import (
    Retention,
    condemned_by,
    forgettable,
    in_use,
    kept,
    orphans,
    refuse_condemned,
)
from tests.unit.storage.entries_made import checkpoint, published, rewind, seal
from tests.unit.storage.memory_files import MemoryFiles
from tests.unit.storage.memory_log import MemoryLog


def log_of(*entries) -> LogView:
    return LogView(entries=entries)


def made(place: int, number: int, **more) -> CheckpointEntry:
    """Checkpoint ``number`` with a state file and an outbox named after it."""
    return checkpoint(
        place, 1, number, states=(f"a1/c-0/s{number}",), outboxes=(f"a1/c-0/o{number}",), **more
    )


FIVE = log_of(seal(1, 1), *[made(number + 1, number) for number in range(1, 6)])
NEWEST = CheckpointId(5)
ALL_FILES = {file.name for entry in FIVE.checkpoints() for file in entry.files()}


def test_r07_the_newest_its_parent_and_as_many_more_as_asked_are_kept():
    assert [entry.checkpoint for entry in kept(FIVE, 2)] == [5, 4]
    assert [entry.checkpoint for entry in kept(FIVE, 1)] == [5, 4]
    assert [entry.checkpoint for entry in kept(FIVE, 4)] == [5, 4, 3, 2]
    assert [entry.checkpoint for entry in kept(FIVE, 9)] == [5, 4, 3, 2, 1]
    assert kept(log_of(seal(1, 1)), 3) == ()


def test_r07_after_going_back_the_parent_is_kept_and_not_the_one_between():
    """Checkpoint 5 could not be read: attempt 2 went back to 4 and decided 6."""
    log = log_of(*FIVE.entries, seal(7, 2), made(8, 6, parent=4))
    assert [entry.checkpoint for entry in kept(log, 2)] == [6, 4]


def test_r03_r07_ancestors_are_kept_before_a_branch_that_was_left():
    """Checkpoint 5 could not be read: should 6 and 4 be damaged too, 3 is there to go back to."""
    log = log_of(*FIVE.entries, seal(7, 2), made(8, 6, parent=4))
    assert [entry.checkpoint for entry in kept(log, 3)] == [6, 4, 3]
    assert [entry.checkpoint for entry in kept(log, 6)] == [6, 4, 3, 2, 1, 5]


def test_r07_r22_what_was_condemned_is_not_kept_again_when_there_is_room_for_it():
    """Checkpoint 5 was left behind and condemned; after the rewind it is among the newest by its place."""
    last = replace(made(8, 6, parent=4), condemned=("a1/c-0/s5",))
    log = log_of(*FIVE.entries, seal(7, 2), last, seal(9, 3), rewind(10, 3, parent=6), made(11, 7, parent=0))
    assert [entry.checkpoint for entry in kept(log, 3)] == [7, 6, 4]


def test_r07_after_a_rewind_the_branch_left_is_kept_until_the_new_one_has_checkpoints():
    left = log_of(*FIVE.entries, seal(7, 2), rewind(8, 2, parent=5))
    assert [entry.checkpoint for entry in kept(left, 2)] == [5, 4]
    first = log_of(*left.entries, made(9, 6, parent=0))
    assert [entry.checkpoint for entry in kept(first, 2)] == [6, 5]


def test_r22_an_entry_condemns_what_falls_out_of_retention_and_what_is_published():
    new = made(7, 6)
    names = condemned_by(
        FIVE,
        new,
        retained=2,
        published=published(5),
        given_up=["a1/c-0/aborted"],
        present=ALL_FILES,
        needed_from=NEWEST,
    )
    states = [f"a1/c-0/s{number}" for number in range(1, 5)]
    outboxes = [f"a1/c-0/o{number}" for number in range(1, 6)]
    assert names == tuple(sorted([*states, *outboxes, "a1/c-0/aborted"]))


def test_r07_outboxes_that_are_not_known_to_be_out_stay():
    new = made(7, 6)
    for note in (published(4), None):
        names = condemned_by(
            FIVE, new, retained=2, published=note, given_up=[], present=ALL_FILES, needed_from=NEWEST
        )
        assert "a1/c-0/o5" not in names
        assert "a1/c-0/o1" in names  # of a checkpoint that is not kept at all


def test_r22_what_the_new_entry_names_is_never_condemned():
    """Undecided outboxes go along (R9), and a snapshot may share files with an aborted one."""
    new = checkpoint(7, 1, 6, states=("a1/c-0/s1", "a1/c-0/s6"), outboxes=("a1/c-0/aborted",))
    names = condemned_by(
        FIVE,
        new,
        retained=2,
        published=published(5),
        given_up=["a1/c-0/aborted"],
        present=ALL_FILES,
        needed_from=NEWEST,
    )
    assert not {"a1/c-0/s1", "a1/c-0/s6", "a1/c-0/aborted"} & set(names)


def test_r22_state_that_a_snapshot_under_way_may_build_on_is_not_condemned():
    """Checkpoint 6 is decided while 7 and 8 are under way, cut when 3 was the newest decided one."""
    names = condemned_by(
        FIVE, made(7, 6), retained=2, published=published(5), given_up=["a1/c-0/s3"], present=ALL_FILES,
        needed_from=CheckpointId(3),
    )  # fmt: skip
    states = {name for name in names if "/s" in name}
    assert states == {"a1/c-0/s1", "a1/c-0/s2"}
    assert "a1/c-0/o3" in names, "its output is out, and nothing builds on it"


def test_r22_what_is_condemned_or_gone_is_not_condemned_again():
    last = replace(FIVE.checkpoints()[-1], condemned=("a1/c-0/s1",))
    log = log_of(*FIVE.entries[:-1], last)
    names = condemned_by(
        log,
        made(7, 6),
        retained=2,
        published=None,
        given_up=[],
        present=ALL_FILES - {"a1/c-0/s2"},
        needed_from=NEWEST,
    )
    assert "a1/c-0/s1" not in names
    assert "a1/c-0/s2" not in names
    assert "a1/c-0/s3" in names


def test_r22_only_condemned_files_are_deleted_and_only_places_without_files():
    last = replace(FIVE.checkpoints()[-1], condemned=("a1/c-0/s1", "a1/c-0/o1", "a1/c-0/s2", "a1/c-0/gone"))
    log = log_of(*FIVE.entries[:-1], last)
    found = forgettable(log, retained=2, present=ALL_FILES)
    assert found.files == ("a1/c-0/o1", "a1/c-0/s1", "a1/c-0/s2")
    assert found.places == (2,)  # of the third, the outbox is there and not condemned


def test_r07_the_entry_before_a_seal_or_a_rewind_is_never_deleted():
    entries = [
        seal(1, 1), made(2, 1), made(3, 2), seal(4, 2), made(5, 3), rewind(6, 2, parent=3),
        made(7, 4, parent=0), made(8, 5), made(9, 6),
    ]  # fmt: skip
    found = forgettable(log_of(*entries), retained=2, present=set())
    assert found.places == (2, 7)


def test_a_log_that_condemns_what_is_kept_is_a_bug():
    last = replace(FIVE.checkpoints()[-1], condemned=("a1/c-0/s4",))
    with pytest.raises(EngineBug):
        forgettable(log_of(*FIVE.entries[:-1], last), retained=2, present=ALL_FILES)


def test_r22_nothing_condemned_is_restored():
    last = replace(FIVE.checkpoints()[-1], condemned=("a1/c-0/s3", "a1/c-0/o4"))
    log = log_of(*FIVE.entries[:-1], last)
    refuse_condemned(log, log.checkpoints()[3])  # its outbox is out, and that is all
    with pytest.raises(LogConflict, match=r"checkpoint 3 .*a1/c-0/s3"):
        refuse_condemned(log, log.checkpoints()[2])


def test_r22_a_sweep_touches_only_older_attempts_and_only_what_no_entry_names():
    names = [
        "a1/c-0/s5",
        "a1/c-0/left",
        "a2/c-0/left",
        "a3/c-0/mine",
        "a4/c-0/newer",
        "other",
        "a10/c-0/newer",
    ]
    assert orphans(names, FIVE, Attempt(3)) == ("a1/c-0/left", "a2/c-0/left")


# --- over whole lives of a job


class Killed(BaseException):
    pass


class Life:
    """A job that decides, aborts, dies while it deletes, restarts, goes back, and rewinds."""

    def __init__(self, retained: int) -> None:
        self.retained = retained
        self.files = MemoryFiles()
        self.store = MemoryLog()
        self.log = DecisionLog(self.store)
        self.attempt = 0
        self.next_number = 1
        self.tokens = 0
        self.note: Published | None = None
        self.undecided: list[str] = []
        self.parent: CheckpointEntry | None = None
        self.history: list[Seal | Rewind | CheckpointEntry] = []
        self.restart()

    def write(self, kind: str) -> str:
        self.tokens += 1
        name = f"a{self.attempt}/c-0/{self.tokens:06d}.{kind}"
        self.files.put(name, b"x")
        return name

    def take(self, entry: Seal | Rewind | CheckpointEntry) -> None:
        self.log.take(entry)
        self.history.append(entry)

    def restart(self, *, back: bool = False, rewinds: bool = False) -> None:
        """A new attempt seals, goes on from the newest checkpoint or its parent, or rewinds."""
        self.attempt += 1
        view = self.log.read_all()
        self.take(seal(view.next_place, self.attempt))
        newest = view.newest()
        parent = view.parent_of(newest) if newest is not None else None
        self.parent = parent if back and parent is not None else newest
        view = self.log.read_all()
        if rewinds and newest is not None:
            self.take(rewind(view.next_place, self.attempt, parent=newest.checkpoint))
            self.parent = None
        if self.parent is not None:
            refuse_condemned(view, self.parent)
            self.note = published(self.parent.checkpoint)
        self.undecided = []
        self.open()

    def open(self, faults: FaultHook = no_faults) -> None:
        self.retention = Retention(
            files=self.files,
            log=self.log,
            view=self.log.read_all(),
            attempt=Attempt(self.attempt),
            retained=self.retained,
            faults=faults,
        )

    def sweep(self) -> None:
        self.retention.sweep()

    def abort(self) -> None:
        self.undecided.append(self.write("outbox"))
        self.retention.give_up([self.write("state")])

    def decide(self) -> None:
        view = self.log.read_all()
        self.undecided.append(self.write("outbox"))
        parent = self.parent.checkpoint if self.parent is not None else 0
        plain = checkpoint(
            view.next_place,
            self.attempt,
            self.next_number,
            parent=parent,
            states=(self.write("state"),),
            outboxes=tuple(self.undecided),
        )
        entry = self.retention.complete(plain, self.note, needed_from=plain.checkpoint)
        self.take(entry)
        self.next_number += 1
        self.undecided = []
        self.parent = entry
        self.retention.decided(entry)

    def publish(self) -> None:
        if self.parent is not None:
            self.note = published(self.parent.checkpoint)

    def forget(self) -> None:
        self.publish()
        self.retention.forget()

    def dies_while_forgetting(self) -> None:
        def hook(point: FaultPoint) -> None:
            if point is FaultPoint.OLDER_HALF_DELETED:
                raise Killed

        self.publish()
        self.open(hook)
        with suppress(Killed):
            self.retention.forget()
        self.restart()

    def disk_fails_while_forgetting(self) -> None:
        class Failing(MemoryFiles):
            left = 1

            def delete(self, name: str) -> None:
                if not self.left:
                    raise Unavailable("no answer")
                self.left -= 1
                super().delete(name)

        failing = Failing()
        failing.content = self.files.content
        self.files, whole = failing, self.files
        self.publish()
        self.open()
        with suppress(Unavailable):
            self.retention.forget()
        self.files = whole
        self.open()

    def check(self) -> None:
        view = self.log.read_all()
        there = {entry.place for entry in view.entries}
        for entry in self.history:
            if isinstance(entry, Seal | Rewind):
                assert entry.place in there
                assert entry.place == 1 or entry.place - 1 in there
        if self.parent is not None:
            assert self.parent in view.entries
            for name in (
                file.name for subtask in self.parent.subtasks for file in (s.file for s in subtask.keyed)
            ):
                assert name in self.files.content
        assert in_use(view, self.retained, self.note) <= set(self.files.content)
        newest = view.newest()
        if newest is not None and newest.parent:
            assert view.parent_of(newest) is not None


ACTS = (
    "decide",
    "abort",
    "forget",
    "sweep",
    "restart",
    "dies_while_forgetting",
    "disk_fails_while_forgetting",
)


@given(
    st.integers(2, 4),
    st.lists(st.sampled_from([*ACTS, "decide", "forget", "back", "rewind"]), min_size=5, max_size=40),
)
@example(3, ["decide", "decide", "decide", "back", "decide", "rewind"])
@settings(max_examples=300)
def test_r07_r22_no_life_of_a_job_loses_what_a_recovery_needs_and_garbage_goes(retained, acts):
    life = Life(retained)
    for act in acts:
        match act:
            case "back":
                life.restart(back=True)
            case "rewind":
                life.restart(rewinds=True)
            case _:
                getattr(life, act)()
        life.check()
    # Left in peace, it gets rid of everything but what is kept and the outbox that is out last.
    life.restart()
    for _ in range(retained + 2):
        life.decide()
        life.forget()
        life.check()
    life.sweep()
    view = life.log.read_all()
    newest = view.newest()
    assert newest is not None
    keeping = kept(view, retained)
    states = {s.file.name for entry in keeping for subtask in entry.subtasks for s in subtask.keyed}
    last = {o.file.name for subtask in newest.subtasks for o in subtask.outboxes}
    assert set(life.files.content) == states | last
    guarded = {e.place - 1 for e in view.entries if isinstance(e, Seal | Rewind)}
    assert {e.place for e in view.checkpoints()} <= {e.place for e in keeping} | guarded
    assert CheckpointId(life.next_number - 1) == newest.checkpoint
