"""From whatever an attempt left behind to a checkpoint to go on from, rule by rule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from processor.errors import DamagedFile, Fenced, JobError, LogConflict
from processor.ids import NO_CHECKPOINT, Attempt, CheckpointId, Incarnation, Marker
from processor.protocol.entries import CheckpointEntry, Published, Rewind, Seal
from processor.protocol.recovery_messages import (
    FinishSavepoint,
    LookAtMarkers,
    OpenAll,
    PublishAll,
    RecoveryAction,
    TakePlace,
    VerifyFiles,
)
from processor.protocol.recovery_request import FRESH
from tests.protocol.recovery_world import STARTED, World, publisher, sink_record

P0, P1, P2 = publisher(0), publisher(1), publisher(2)


class Died(Exception):
    """The attempt ends here."""


def dies_at(world: World, kind: type[RecoveryAction], number: int = 1) -> None:
    """Let the next recovery die before its ``number``-th action of a kind."""
    left = number

    def before(action: RecoveryAction) -> None:
        nonlocal left
        if isinstance(action, kind):
            left -= 1
            if left == 0:
                world.before = lambda action: None
                raise Died

    world.before = before


def once_before(world: World, kind: type[RecoveryAction], what) -> None:
    """Something happens just before the recovery's next action of a kind."""

    def before(action: RecoveryAction) -> None:
        if isinstance(action, kind):
            world.before = lambda action: None
            what()

    world.before = before


def opened(world: World) -> list:
    return [o.publisher for action in world.did if isinstance(action, OpenAll) for o in action.openings]


def running(world: World, **more):
    """A first attempt that has recovered."""
    return world.recover(**more)


# --- R1, R2


def test_r01_the_first_act_is_to_look_the_second_to_seal():
    world = World()
    running(world)
    assert world.kinds()[:4] == ["LookAtMarkers", "ReadLog", "MintIncarnation", "TakePlace"]
    seal = world.entries[0]
    assert isinstance(seal, Seal)
    assert (seal.place, seal.attempt, seal.incarnation) == (1, 1, "minted")


def test_r01_every_attempt_is_higher_and_keeps_the_incarnation():
    world = World()
    attempts = [running(world).attempt for _ in range(3)]
    assert attempts == [1, 2, 3]
    assert {entry.incarnation for entry in world.entries} == {"minted"}


def test_r01_who_loses_the_race_for_the_seal_reads_again_and_seals_higher():
    world = World()
    running(world)
    once_before(world, TakePlace, world.seal)
    assert running(world).attempt == 3
    assert [entry.attempt for entry in world.entries if isinstance(entry, Seal)] == [1, 2, 3]


def test_r01_a_decision_that_slips_in_before_the_seal_is_published():
    world = World()
    first = running(world)
    once_before(world, TakePlace, lambda: world.decide(first, rows={P0: 2}))
    second = running(world)
    assert second.checkpoint == 2
    assert world.out == {P0: [(2, 0), (2, 1)]}


def test_r01_an_attempt_that_was_overtaken_while_recovering_stops_quietly():
    world = World()
    # The seal is its own; the place of its first checkpoint goes to a newer attempt's seal.
    dies = [0]

    def before(action: RecoveryAction) -> None:
        if isinstance(action, TakePlace) and isinstance(action.entry, CheckpointEntry) and not dies[0]:
            dies[0] = 1
            world.seal()

    world.before = before
    with pytest.raises(Fenced, match="newer attempt"):
        running(world)


def test_r02_a_marker_of_another_incarnation_stops_loudly_naming_both():
    world = World()
    running(world)
    world.entries.clear()  # the directory was emptied
    with pytest.raises(LogConflict, match="minted") as caught:
        running(world)
    assert "empty" in caught.value.message
    assert "--take-over minted" in caught.value.remedy
    assert world.entries == [], "nothing was touched"


def test_r02_take_over_leaves_the_other_history_behind():
    world = World()
    running(world)
    world.markers = {
        P0: Marker(incarnation=Incarnation("x"), attempt=Attempt(9), checkpoint=CheckpointId(40), rows=1)
    }
    with pytest.raises(LogConflict, match="incarnation x"):
        running(world)
    recovered = running(world, take_over="x")
    assert recovered.markers[P0].incarnation == "minted"


@pytest.mark.parametrize(("attempt", "checkpoint"), [(9, 1), (1, 9)])
def test_r02_a_log_that_has_lost_its_end_is_found_by_looking(attempt, checkpoint):
    world = World()
    running(world)
    world.markers[P0] = Marker(
        incarnation=Incarnation("minted"),
        attempt=Attempt(attempt),
        checkpoint=CheckpointId(checkpoint),
        rows=1,
    )
    with pytest.raises(LogConflict, match="lost its end"):
        running(world)
    assert world.kinds() == ["LookAtMarkers", "ReadLog"]


def test_r02_an_attempt_that_still_runs_does_not_look_like_a_lost_log():
    """It decides and publishes while the new one starts: between its two looks, whichever comes first."""
    for kind in ("LookAtMarkers", "ReadLog"):
        world = World()
        first = running(world)

        def goes_on(world=world, first=first):
            entry = world.decide(first, rows={P0: 1})
            world.publish(entry, first.attempt)

        def before(action, world=world, kind=kind, goes_on=goes_on):
            if type(action).__name__ == kind:
                world.before = lambda action: None
                goes_on()

        world.before = before
        assert running(world).checkpoint == 2


def test_r02_two_first_attempts_at_once_do_not_take_each_other_for_another_job():
    world = World()
    first: list = []

    def before(action):
        if type(action).__name__ == "ReadLog" and not first:
            first.append(True)
            other = World(entries=world.entries, markers=world.markers)
            other.recover()

    world.before = before
    assert running(world).attempt == 2


# --- R4


def test_r04_a_fresh_run_decides_resolved_positions_before_anything_runs():
    world = World()
    recovered = running(world)
    entry = recovered.entry
    assert (entry.checkpoint, entry.parent, entry.expected) == (1, NO_CHECKPOINT, ())
    assert entry.subtasks == (STARTED,)
    assert world.entries[-1] == entry
    assert recovered.next_checkpoint == 2
    assert recovered.next_place == 3


def test_r04_latest_is_resolved_once():
    world = World()
    running(world)
    running(world)
    running(world)
    assert world.resolved == 1


def test_r04_an_attempt_that_died_before_the_first_checkpoint_is_followed_by_one_that_takes_it():
    world = World()
    dies_at(world, TakePlace, 2)
    with pytest.raises(Died):
        running(world)
    assert running(world).checkpoint == 1


def test_r04_a_checkpoint_without_output_counts_as_published():
    world = World()
    world.decide(running(world))
    running(world)
    assert not any(isinstance(action, PublishAll) for action in world.did)


# --- publishing what was decided


def test_r11_what_was_decided_is_published_recorded_and_only_then_restored():
    world = World()
    first = running(world)
    entry = world.decide(first, rows={P0: 3})
    recovered = running(world)
    assert recovered.entry == entry
    assert world.out == {P0: [(2, 0), (2, 1), (2, 2)]}
    assert world.note is not None
    assert world.note.checkpoint == 2
    kinds = world.kinds()
    order = ["TakePlace", "VerifyFiles", "PublishAll", "Record", "OpenAll"]
    assert [kind for kind in kinds if kind in order] == order


def test_r16_a_publish_that_died_half_way_goes_on_from_the_next_row():
    world = World()
    first = running(world)
    entry = world.decide(first, rows={P0: 3})
    world.publish(entry, first.attempt, rows=2)
    running(world)
    assert world.out == {P0: [(2, 0), (2, 1), (2, 2)]}


def test_r08_files_are_verified_before_publishing():
    world = World()
    entry = world.decide(running(world), rows={P0: 1})
    world.forget_outboxes(entry)
    # The outbox is gone, and nothing of it is out: it is not published half, the parent is restored.
    recovered = running(world)
    assert recovered.checkpoint == 1
    assert world.out == {}


def test_r17_a_lost_note_costs_one_look_at_the_markers():
    world = World()
    first = running(world)
    entry = world.decide(first, rows={P0: 2})
    world.publish(entry, first.attempt)
    world.forget_outboxes(entry)  # published, so they are deleted; and the note is lost
    recovered = running(world)
    assert recovered.entry == entry, "outboxes that are out are not asked for"
    assert world.out == {P0: [(2, 0), (2, 1)]}
    assert not any(isinstance(action, PublishAll) for action in world.did)


def test_r17_some_identities_out_and_their_outboxes_gone():
    world = World()
    first = running(world, parallelism=2)
    entry = world.decide(first, rows={P0: 1, P1: 2})
    world.publish(entry, first.attempt, P0)
    world.files = {name for name in world.files if str(P0) not in name}
    running(world, parallelism=2)
    assert world.out == {P0: [(2, 0)], P1: [(2, 0), (2, 1)]}
    verified = next(action for action in world.did if isinstance(action, VerifyFiles))
    assert list(verified.entry.outboxes()) == [P1]


def test_r11_a_marker_of_another_history_is_not_taken_for_ours():
    """Same checkpoint, same rows, another incarnation: a job that ran twice from the same input."""
    world = World()
    entry = world.decide(running(world), rows={P0: 2})
    other = Incarnation("other")
    world.markers[P0] = Marker(incarnation=other, attempt=Attempt(1), checkpoint=entry.checkpoint, rows=2)
    with pytest.raises(LogConflict):
        running(world, take_over="other")
    assert world.note is None, "it is not recorded as published"


# --- R8, going back


def test_r08_nothing_published_the_parent_is_restored_and_the_unreadable_one_never_comes_out():
    world = World()
    first = running(world)
    newest = world.decide(first, rows={P0: 2})
    world.damage(newest)
    recovered = running(world)
    assert recovered.entry.checkpoint == 1
    assert recovered.next_checkpoint == 3, "above every id in the log"
    assert world.markers[P0] == recovered.markers[P0]
    with pytest.raises(Fenced):  # the old attempt wakes up and publishes
        world.publish(newest, first.attempt)
    assert world.out == {}


def test_r08_after_going_back_the_next_checkpoint_is_published_though_an_attempt_died_between():
    world = World()
    newest = world.decide(running(world), rows={P0: 2})
    world.damage(newest)
    running(world)
    recovered = running(world)  # and again, from the parent
    parent = recovered.entry
    entry = world.decide(recovered, rows={P0: 1}, parent=parent)
    assert running(world).entry == entry
    assert world.out == {P0: [(3, 0)]}


def test_r08_some_published_stops_by_name():
    world = World()
    first = running(world, parallelism=2)
    newest = world.decide(first, rows={P0: 2, P1: 2})
    world.publish(newest, first.attempt, P1)
    world.damage(newest)
    with pytest.raises(LogConflict, match="checkpoint 2 can't be read, and some of it is published"):
        running(world, parallelism=2)


def test_r08_r11_repaired_after_it_stopped_half_way_back_it_is_published():
    world = World()
    first = running(world, parallelism=2)
    newest = world.decide(first, rows={P0: 2, P1: 2})
    world.publish(newest, first.attempt, P1)
    names = set(world.files)
    world.damage(newest)
    with pytest.raises(LogConflict):
        running(world, parallelism=2)
    world.files = names  # the operator restores the file; P0 was opened by the attempt that went back
    assert running(world, parallelism=2).entry == newest
    assert world.out == {P0: [(2, 0), (2, 1)], P1: [(2, 0), (2, 1)]}


def test_r08_r11_repaired_it_is_published_under_an_identity_that_was_idle_before_it():
    world = World()
    first = running(world, parallelism=2)
    parent = world.decide(first, rows={P0: 1})
    world.publish(parent, first.attempt)
    world.record(parent)
    newest = world.decide(first, rows={P0: 2, P1: 2}, parent=parent)
    names = set(world.files)
    world.damage(newest)
    assert running(world, parallelism=2).entry == parent
    world.files = names  # the operator restores the file, before another checkpoint is decided
    assert running(world, parallelism=2).entry == newest
    assert world.out == {P0: [(2, 0), (3, 0), (3, 1)], P1: [(3, 0), (3, 1)]}


def test_r08_all_published_and_recorded_stops_by_name():
    world = World()
    first = running(world)
    newest = world.decide(first, rows={P0: 1})
    world.publish(newest, first.attempt)
    world.record(newest)
    world.damage(newest)
    with pytest.raises(DamagedFile, match="published already"):
        running(world)


def test_r08_all_published_and_the_note_lost_stops_by_name():
    world = World()
    first = running(world)
    newest = world.decide(first, rows={P0: 1})
    world.publish(newest, first.attempt)
    world.damage(newest)
    with pytest.raises(LogConflict, match="published"):
        running(world)


def test_r08_neither_newest_nor_parent_can_be_read():
    world = World()
    recovered = running(world)
    parent = world.decide(recovered)
    newest = world.decide(recovered)
    world.damage(parent)
    world.damage(newest)
    with pytest.raises(DamagedFile, match=r"neither checkpoint 3 .* nor its parent 2"):
        running(world)


def test_r08_no_parent_to_go_back_to():
    world = World()
    recovered = running(world)
    newest = world.decide(recovered)
    world.entries = [e for e in world.entries if e is newest or isinstance(e, Seal)]
    world.damage(newest)
    with pytest.raises(DamagedFile, match="no parent"):
        running(world)


def test_r14_no_marker_where_decided_output_may_be_out_is_the_operators_choice():
    world = World()
    newest = world.decide(running(world), rows={P0: 1})
    world.damage(newest)
    world.markers.clear()
    with pytest.raises(LogConflict, match="can't be known"):
        running(world)


# --- R3, rewinds


def test_r03_fresh_takes_two_entries_and_changes_the_branch():
    world = World()
    first = running(world)
    world.decide(first)
    recovered = running(world, origin=FRESH, accept_duplicates=True)
    seal, rewind, start = world.entries[-3:]
    assert isinstance(seal, Seal)
    assert isinstance(rewind, Rewind)
    assert isinstance(start, CheckpointEntry)
    assert (rewind.token, rewind.origin, rewind.parent) == (FRESH, FRESH, 2)
    assert (start.checkpoint, start.parent) == (3, NO_CHECKPOINT)
    assert recovered.entry == start


def refuses_to_rewind(world: World, **more) -> None:
    entries = list(world.entries)
    with pytest.raises(LogConflict, match="would publish some of it again"):
        world.recover(**more)
    added = world.entries[len(entries) :]
    assert not any(isinstance(entry, Rewind) for entry in added)


def test_r03_the_same_command_line_twice_does_not_rewind_twice():
    world = World()
    world.decide(running(world))
    running(world, origin=FRESH, accept_duplicates=True)
    second = running(world, origin=FRESH, accept_duplicates=True)
    world.decide(second)
    third = running(world, origin=FRESH, accept_duplicates=True)
    assert third.checkpoint == 4
    assert sum(isinstance(entry, Rewind) for entry in world.entries) == 1


def test_r03_a_request_of_another_name_rewinds_again():
    world = World()
    world.decide(running(world))
    running(world, origin=FRESH, token="one", accept_duplicates=True)
    running(world, origin=FRESH, token="two", accept_duplicates=True)
    assert [e.token for e in world.entries if isinstance(e, Rewind)] == ["one", "two"]


def test_r03_what_the_old_branch_decided_is_published_before_it_is_left():
    world = World()
    world.decide(running(world), rows={P0: 1})
    running(world, origin=FRESH, accept_duplicates=True)
    assert world.out == {P0: [(2, 0)]}


def test_r03_a_rewind_behind_published_output_is_refused():
    world = World()
    world.decide(running(world), rows={P0: 1})
    refuses_to_rewind(world, origin=FRESH)


def test_r03_into_other_topics_it_is_allowed():
    world = World()
    world.decide(running(world), rows={P0: 1})
    recovered = running(world, origin=FRESH, sinks=[sink_record(targets={"counts2": "t2"})])
    assert recovered.entry.parent == NO_CHECKPOINT


def test_r03_a_branch_that_has_just_begun_does_not_hide_what_an_older_one_published():
    world = World()
    world.decide(running(world), rows={P0: 1})
    running(world, origin=FRESH, sinks=[sink_record(targets={"counts2": "t2"})])
    refuses_to_rewind(world, origin=FRESH, token="again")


def test_r03_nor_does_a_rewind_whose_attempt_died_before_its_first_checkpoint():
    world = World()
    world.decide(running(world), rows={P0: 1})
    dies_at(world, TakePlace, 3)
    with pytest.raises(Died):
        running(world, origin=FRESH, sinks=[sink_record(targets={"counts2": "t2"})])
    assert isinstance(world.entries[-1], Rewind)
    refuses_to_rewind(world, origin=FRESH, token="again")


def test_r03_a_rewind_that_died_before_its_first_checkpoint_is_finished_by_the_same_command():
    world = World()
    world.decide(running(world))
    dies_at(world, TakePlace, 3)
    with pytest.raises(Died):
        running(world, origin=FRESH, accept_duplicates=True)
    recovered = running(world, origin=FRESH, accept_duplicates=True)
    assert recovered.checkpoint == 3
    assert sum(isinstance(entry, Rewind) for entry in world.entries) == 1


def test_r03_a_rewind_that_died_is_finished_even_by_a_plain_start():
    world = World()
    world.savepoint("saved", world.decide(running(world)))
    dies_at(world, TakePlace, 3)
    with pytest.raises(Died):
        running(world, origin="saved")
    world.copied.clear()
    running(world)
    assert world.copied == ["saved"]


def test_r03_starting_from_the_savepoint_the_job_stopped_with_needs_no_leave():
    world = World()
    first = running(world)
    entry = world.decide(first, rows={P0: 1}, stop=True)
    world.publish(entry, first.attempt)
    world.savepoint("saved", entry)
    recovered = running(world, origin="saved")
    assert world.copied == ["saved"]
    assert recovered.entry.parent == NO_CHECKPOINT
    rewind = next(entry for entry in world.entries if isinstance(entry, Rewind))
    assert rewind.token == "minted-2", "by default the savepoint's id"


@pytest.mark.parametrize("rows", [{}, {P0: 1}])
def test_r03_r08_a_savepoint_replaces_its_own_unreadable_checkpoint_if_that_has_no_output(rows):
    world = World()
    first = running(world)
    published = world.decide(first, rows={P0: 1})
    world.publish(published, first.attempt)
    newest = world.decide(first, rows=rows, parent=published, stop=True)
    world.savepoint("saved", newest)
    world.damage(newest)
    if rows:
        refuses_to_rewind(world, origin="saved")
    else:
        assert running(world, origin="saved").entry.parent == NO_CHECKPOINT
        assert world.copied == ["saved"]


def test_r04_ids_start_above_the_origins():
    world = World()
    other = World()
    recovered = running(other)
    world.savepoint("saved", other.decide(recovered, 70))
    assert running(world, origin="saved").checkpoint == 71


def test_r03_an_origin_that_does_not_fit_is_refused_before_the_branch_changes():
    world = World()
    world.savepoint("saved", world.decide(running(world)))
    world.unfit = True
    with pytest.raises(JobError):
        running(world, origin="saved")
    assert not any(isinstance(entry, Rewind) for entry in world.entries)


@pytest.mark.parametrize("rows", [{}, {P0: 1}])
def test_r24_the_savepoint_of_a_stop_is_finished_by_the_next_attempt_once(rows):
    world = World()
    first = running(world)
    world.decide(first, rows=rows, stop=True, savepoint="saved")
    running(world)
    assert world.savepoints == [2]
    assert world.note is not None
    assert world.note.savepoint_settled
    running(world)
    assert world.savepoints == [2], "whoever has moved it since does not find it again"


def test_r24_an_attempt_that_died_while_finishing_a_savepoint_is_followed_by_one_that_does():
    world = World()
    world.decide(running(world), rows={P0: 1}, stop=True, savepoint="saved")
    dies_at(world, FinishSavepoint)
    with pytest.raises(Died):
        running(world)
    running(world)
    assert world.savepoints == [2]


def test_r24_nobody_waits_for_the_savepoint_of_a_checkpoint_that_was_no_stop():
    world = World()
    world.decide(running(world), rows={P0: 1}, savepoint="saved")
    running(world)
    assert world.savepoints == []


def test_r24_a_savepoint_that_is_settled_is_left_alone():
    world = World()
    first = running(world)
    entry = world.decide(first, rows={P0: 1}, stop=True, savepoint="saved")
    world.publish(entry, first.attempt)
    world.note = Published(
        incarnation=entry.incarnation,
        attempt=entry.attempt,
        checkpoint=entry.checkpoint,
        savepoint_settled=True,
    )
    running(world)
    assert world.savepoints == []


def test_r24_a_drained_savepoint_is_refused_before_the_branch_changes():
    world = World()
    first = running(world)
    drained = replace(world.decide(first, rows={P0: 1}, stop=True), drained=True)
    world.publish(drained, first.attempt)
    world.savepoint("saved", drained)
    with pytest.raises(JobError, match="checkpoint 2 in 'saved' was drained") as caught:
        running(world, origin="saved")
    assert "--fresh" in caught.value.remedy
    assert not any(isinstance(entry, Rewind) for entry in world.entries)


def test_r24_a_rewind_that_was_done_is_not_refused_because_its_origin_was_drained_since():
    """The same command line again, of a job that started from the directory of another, which has ended."""
    world, other = World(), World()
    origin = other.decide(running(other))
    world.savepoint("other", origin)
    running(world, origin="other", token="once")
    world.savepoint("other", replace(origin, drained=True))
    running(world, origin="other", token="once")
    assert sum(isinstance(entry, Rewind) for entry in world.entries) == 1


# --- R14, R15, R18


def test_r14_every_identity_is_opened_by_the_new_attempt():
    world = World()
    first = running(world, parallelism=2)
    world.decide(first, rows={P0: 2})
    recovered = running(world, parallelism=2)
    assert recovered.markers[P0] == Marker(
        incarnation=Incarnation("minted"), attempt=Attempt(2), checkpoint=CheckpointId(2), rows=2
    )
    assert recovered.markers[P1].rows == 0
    assert world.markers == dict(recovered.markers)


def test_r14_a_recovery_that_died_while_opening_is_repeated():
    world = World()
    entry = world.decide(running(world), rows={P0: 2})
    dies_at(world, OpenAll)
    with pytest.raises(Died):
        running(world)
    assert running(world).entry == entry
    assert world.out == {P0: [(2, 0), (2, 1)]}


def test_r14_an_older_attempt_that_takes_over_afterwards_stops_quietly():
    world = World()
    first = running(world)
    entry = world.decide(first, rows={P0: 2})
    running(world)
    with pytest.raises(Fenced):
        world.publish(entry, first.attempt)


def test_r18_two_shrinking_restarts_leave_no_old_subtask_unopened():
    world = World()
    running(world, parallelism=3)
    running(world, parallelism=2)  # sealed and opened, but nothing decided
    running(world, parallelism=1)
    assert opened(world) == [P0, P1, P2]


def test_r18_what_an_old_subtask_has_decided_is_published_under_its_own_identity():
    world = World()
    world.decide(running(world, parallelism=3), rows={P0: 1, P2: 2})
    running(world, parallelism=1)
    assert world.out == {P0: [(2, 0)], P2: [(2, 0), (2, 1)]}
    assert {P0, P1, P2} == set(opened(world))


def test_r18_growing_opens_the_new_ones():
    world = World()
    running(world)
    assert set(running(world, parallelism=3).markers) == {P0, P1, P2}


def test_r18_after_a_rewind_the_identities_of_the_branch_left_are_opened_too():
    world = World()
    world.decide(running(world, parallelism=3))
    running(world, parallelism=1, origin=FRESH, accept_duplicates=True)
    assert opened(world) == [P0, P1, P2]


@pytest.mark.parametrize("changed", [{"cluster": "c2"}, {"marker_store": "m2"}])
def test_r15_another_cluster_or_marker_topic_under_the_old_name_stops_loudly(changed):
    world = World()
    running(world)
    with pytest.raises(LogConflict, match="made anew"):
        running(world, sinks=[sink_record(**changed)])
    assert sum(isinstance(entry, Seal) for entry in world.entries) == 1, "before anything was sealed"


def test_r18_a_topic_made_anew_stops_loudly_unless_the_operator_accepts_it():
    world = World()
    running(world)
    anew = [sink_record(targets={"counts": "t9"})]
    with pytest.raises(LogConflict, match="'counts' was made anew"):
        running(world, sinks=anew)
    running(world, sinks=anew, accept_duplicates=True)


def test_r02_looking_takes_nothing_over():
    world = World()
    running(world, parallelism=2)
    look = world.did[0]
    assert isinstance(look, LookAtMarkers)
    assert look.publishers == (P0, P1)
