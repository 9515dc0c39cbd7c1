"""What a log says: attempts, branches, parents, identities; with gaps that retention leaves."""

from __future__ import annotations

from dataclasses import replace

from processor.ids import Attempt, CheckpointId, Incarnation, Place, PublisherId, StepName
from processor.protocol.decisions import LogView, expected_of, is_published, rows_of
from processor.protocol.entries import Published, SinkRecord
from tests.unit.storage.entries_made import INCARNATION, JOB, checkpoint, rewind, seal


def sinks(parallelism: int, name: str = "out") -> tuple[SinkRecord, ...]:
    return (
        SinkRecord(sink=StepName(name), parallelism=parallelism, cluster="c", marker_store="m", targets={}),
    )


def sealed(place: int, attempt: int, parallelism: int, name: str = "out"):
    return replace(seal(place, attempt), sinks=sinks(parallelism, name))


def identities(*indexes: int, name: str = "out") -> tuple[PublisherId, ...]:
    return tuple(PublisherId(JOB, StepName(name), index) for index in indexes)


def view(*entries) -> LogView:
    return LogView(entries=entries)


def test_an_empty_log():
    log = view()
    assert log.empty
    assert (log.incarnation, log.next_place, log.newest_attempt, log.newest_id) == (None, 1, 0, 0)
    assert (log.newest(), log.newest_seal(), log.newest_rewind()) == (None, None, None)


def test_the_next_place_and_the_highest_numbers():
    log = view(seal(1, 1), checkpoint(2, 1, 1), seal(3, 4))
    assert (log.incarnation, log.next_place, log.newest_attempt, log.newest_id) == (INCARNATION, 4, 4, 1)
    assert log.sealed(Attempt(4))
    assert not log.sealed(Attempt(3))


def test_r03_the_branch_is_what_follows_the_newest_rewind():
    log = view(
        seal(1, 1),
        checkpoint(2, 1, 1),
        checkpoint(3, 1, 2, parent=1),
        seal(4, 2),
        rewind(5, 2, parent=2),
        checkpoint(6, 2, 3, parent=0),
        checkpoint(7, 2, 4, parent=3),
    )
    assert [entry.checkpoint for entry in log.branch()] == [3, 4]
    newest = log.newest()
    assert newest is not None
    assert newest.checkpoint == 4
    parent = log.parent_of(newest)
    assert parent is not None
    assert parent.checkpoint == 3
    assert log.parent_of(parent) is None


def test_r03_right_after_a_rewind_the_branch_is_empty_and_the_ids_go_on():
    log = view(seal(1, 1), checkpoint(2, 1, 8), seal(3, 2), rewind(4, 2, parent=8))
    assert log.newest() is None
    assert log.newest_id == 8


def test_r07_ids_of_a_branch_that_was_forgotten_are_not_given_again():
    """Its checkpoints are gone; the rewind still names the newest of them."""
    assert view(seal(3, 2), rewind(4, 2, parent=8)).newest_id == 8


def test_r07_gaps_below_are_no_holes():
    log = view(seal(1, 1), checkpoint(7, 1, 6, parent=5), checkpoint(8, 1, 7, parent=6), seal(9, 2))
    newest = log.newest()
    assert newest is not None
    assert log.next_place == 10
    parent = log.parent_of(newest)
    assert parent is not None
    assert log.parent_of(parent) is None, "no longer kept"


def test_r08_after_going_back_the_parent_is_the_one_restored():
    log = view(
        seal(1, 1), checkpoint(2, 1, 1), checkpoint(3, 1, 2), seal(4, 2), checkpoint(5, 2, 3, parent=1)
    )
    newest = log.newest()
    assert newest is not None
    parent = log.parent_of(newest)
    assert parent is not None
    assert (newest.checkpoint, parent.checkpoint) == (3, 1)


def test_r18_identities_of_every_seal_since_and_the_one_in_force():
    log = view(sealed(1, 1, 3), checkpoint(2, 1, 1), sealed(3, 2, 2), sealed(4, 3, 1))
    assert log.publishers_since(Place(2), JOB) == identities(0, 1, 2)
    assert log.publishers_since(Place(3), JOB) == identities(0, 1)
    assert log.publishers_since(Place(4), JOB) == identities(0)


def test_r18_a_removed_sink_counts_while_its_seal_was_in_force():
    log = view(sealed(1, 1, 1, "old"), checkpoint(2, 1, 1), sealed(3, 2, 1, "new"))
    assert set(log.publishers_since(Place(2), JOB)) == {
        *identities(0, name="old"),
        *identities(0, name="new"),
    }


def test_r18_identities_that_an_entry_names_count_too():
    entry = checkpoint(2, 1, 1, outboxes=("a.outbox",))
    log = view(seal(1, 1), entry)
    assert log.publishers_since(Place(2), JOB) == tuple(sorted({*entry.outboxes(), *expected_of(entry)}))


def test_r04_r17_published_means_recorded_or_nothing_to_publish():
    empty, full = checkpoint(2, 1, 1), checkpoint(3, 1, 2, outboxes=("a.outbox",))
    note = Published(incarnation=INCARNATION, attempt=Attempt(1), checkpoint=CheckpointId(2))
    assert is_published(empty, None)
    assert not is_published(full, None)
    assert is_published(full, note)
    assert not is_published(full, replace(note, checkpoint=CheckpointId(1))), "set back by a zombie"
    assert not is_published(full, replace(note, incarnation=Incarnation("other")))
    assert sum(rows_of(full).values()) > 0
    assert rows_of(empty) == {}
