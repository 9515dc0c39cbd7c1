"""A place is taken by one entry, and what became of a try can always be found out (R5, R6)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from processor.errors import DamagedFile, EngineBug, ExternalRefusal, Unavailable
from processor.ids import Place
from processor.protocol.entries import Entry
from processor.storage.decision_log import (
    TAKE_TRIES_MAX,
    DecisionLog,
    Lost,
    Taken,
    two_writer_test,
)
from processor.storage.directory_log import DirectoryLog
from processor.storage.manifest import encode_entry
from tests.unit.storage.disks import AnswerLostDisk, FailingDisk, Tokens
from tests.unit.storage.entries_made import checkpoint, published, seal
from tests.unit.storage.memory_log import MemoryLog

MINE = seal(1, 2, "mine")
OTHERS = seal(1, 3, "others")


def test_r05_a_free_place_is_taken_and_a_taken_one_names_who_has_it():
    store = MemoryLog()
    assert DecisionLog(store).take(MINE) == Taken()
    assert DecisionLog(store).take(OTHERS) == Lost(by=MINE)
    assert DecisionLog(store).read(Place(1)) == MINE


def test_r05_exists_is_resolved_by_the_nonce():
    """A store that repeated our request by itself answers "exists" to our own entry."""
    store = MemoryLog()
    store.content[1] = encode_entry(MINE)
    assert DecisionLog(store).take(MINE) == Taken()


def test_r05_exists_followed_by_not_found_means_again():
    store = MemoryLog()
    store.content[1] = encode_entry(OTHERS)
    store.hidden_reads = 2
    assert DecisionLog(store).take(MINE) == Lost(by=OTHERS)
    assert store.takes == 3


def test_r05_exists_and_not_found_for_ever_is_an_unknown_outcome():
    store = MemoryLog()
    store.content[1] = encode_entry(OTHERS)
    store.hidden_reads = TAKE_TRIES_MAX
    with pytest.raises(Unavailable, match="place 1"):
        DecisionLog(store).take(MINE)


@pytest.mark.parametrize("made", [True, False])
def test_r06_an_unknown_outcome_is_resolved_whether_the_entry_was_made_or_not(made):
    store = MemoryLog()
    store.unsure_after, store.unsure_before = int(made), int(not made)
    log = DecisionLog(store)
    with pytest.raises(Unavailable):
        log.take(MINE)
    assert (log.read(Place(1)) == MINE) is made
    assert log.resolve(MINE) == Taken()
    assert log.read(Place(1)) == MINE


def test_r06_an_unknown_outcome_is_lost_when_a_newer_attempt_has_the_place():
    store = MemoryLog()
    store.unsure_before = 1
    with pytest.raises(Unavailable):
        DecisionLog(store).take(MINE)
    assert DecisionLog(store).take(OTHERS) == Taken()
    assert DecisionLog(store).resolve(MINE) == Lost(by=OTHERS)


def test_r06_an_outcome_that_stays_unknown_says_so_every_time():
    store = MemoryLog()
    store.unsure_before = 3
    log = DecisionLog(store)
    for ask in (log.take, log.resolve, log.resolve):
        with pytest.raises(Unavailable):
            ask(MINE)
    assert log.resolve(MINE) == Taken()


def test_r06_a_lost_answer_on_a_directory_is_resolved(tmp_path):
    log = DecisionLog(DirectoryLog(tmp_path, token=Tokens(), disk=AnswerLostDisk()))
    with pytest.raises(Unavailable):
        log.take(MINE)
    assert log.resolve(MINE) == Taken()


def test_r06_every_failure_of_a_directory_is_resolved(tmp_path):
    for failing in range(1, 8):
        root = tmp_path / str(failing)
        root.mkdir()
        log = DecisionLog(DirectoryLog(root, token=Tokens(), disk=FailingDisk(failing)))
        with pytest.raises(Unavailable):
            log.take(MINE)
        assert log.resolve(MINE) == Taken()
        assert DecisionLog(DirectoryLog(root, token=Tokens())).read_all().entries == (MINE,)


def test_one_nonce_with_two_contents_is_a_bug():
    store = MemoryLog()
    log = DecisionLog(store)
    log.take(MINE)
    with pytest.raises(EngineBug):
        log.take(replace(MINE, attempt=OTHERS.attempt))
    with pytest.raises(EngineBug):
        log.take(replace(MINE, nonce=""))


def filled(places: range) -> MemoryLog:
    store = MemoryLog()
    for place in places:
        store.content[place] = encode_entry(seal(place, place))
    return store


@pytest.mark.parametrize("shown", [0, 1, 4, 6, None])
def test_r05_a_listing_that_is_old_is_walked_past(shown):
    store = filled(range(1, 7))
    store.shown = shown
    view = DecisionLog(store).read_all()
    assert view.next_place == 7
    # What an old listing leaves out is read by walking up from its highest place.
    assert [entry.place for entry in view.entries] == [1, 2, 3, 4, 5, 6]


def test_r05_gaps_below_are_what_retention_leaves():
    store = filled(range(1, 9))
    for place in (2, 3, 5):
        del store.content[place]
    assert [entry.place for entry in DecisionLog(store).read_all().entries] == [1, 4, 6, 7, 8]


def test_r05_an_entry_deleted_between_listing_and_reading_is_a_gap():
    class Deleting(MemoryLog):
        def listed(self) -> list[int]:
            places = super().listed()
            self.content.pop(2, None)
            return places

    store = Deleting()
    store.content = filled(range(1, 4)).content
    assert [entry.place for entry in DecisionLog(store).read_all().entries] == [1, 3]


def test_r08_a_damaged_entry_stops_reading_and_names_its_place():
    store = filled(range(1, 4))
    store.content[3] = store.content[3][:-10]
    with pytest.raises(DamagedFile, match="place 3"):
        DecisionLog(store).read_all()
    store.content[3] = store.content[2]
    with pytest.raises(DamagedFile, match=r"place 3 .* is that of place 2"):
        DecisionLog(store).read_all()


def test_an_empty_log_is_a_log():
    view = DecisionLog(MemoryLog()).read_all()
    assert view.empty
    assert view.next_place == 1


def test_r17_what_is_published_is_recorded_and_losing_it_is_no_damage():
    store = MemoryLog()
    log = DecisionLog(store)
    assert log.published() is None
    log.record_published(published(4))
    log.record_published(published(5))
    assert log.published() == published(5)
    store.notes["published"] = store.notes["published"][:-5]
    assert log.published() is None


def log_with_a_hole() -> MemoryLog:
    """Attempt 1 has sealed at 1 and decided at 2 to 6; retention has taken 2 to 4 away."""
    store = MemoryLog()
    log = DecisionLog(store)
    entries: list[Entry] = [seal(1, 1, "first"), *(checkpoint(place, 1, place) for place in range(2, 7))]
    for entry in entries:
        assert log.take(entry) == Taken()
    for place in range(2, 5):
        log.forget(Place(place))
    return store


@pytest.mark.parametrize("place", [2, 3, 4])
def test_r07_a_seal_does_not_take_a_place_that_retention_has_freed(place):
    """Its attempt read the log long ago, when the place was the next one."""
    store = log_with_a_hole()
    before = DecisionLog(store).read_all()
    outcome = DecisionLog(store).take(seal(place, 2, "slow"))
    assert outcome == Lost(by=before.entries[-1])
    assert DecisionLog(store).read_all() == before
    assert DecisionLog(store).take(seal(7, 2, "slow")) == Taken()


def test_r07_a_seal_that_filled_a_hole_and_died_there_is_void():
    store = log_with_a_hole()
    before = DecisionLog(store).read_all()
    store.content[4] = encode_entry(seal(4, 2, "died"))
    assert DecisionLog(store).read_all() == before
    assert DecisionLog(store).take(seal(7, 2, "next")) == Taken()
    assert DecisionLog(store).read_all().entries == (*before.entries, seal(7, 2, "next"))


def test_r01_a_seal_that_others_have_overtaken_meanwhile_keeps_its_place():
    store = MemoryLog()
    store.unsure_after = 1
    with pytest.raises(Unavailable):
        DecisionLog(store).take(seal(1, 1, "mine"))
    assert DecisionLog(store).take(seal(2, 2, "others")) == Taken()
    assert DecisionLog(store).resolve(seal(1, 1, "mine")) == Taken()


def test_r07_a_forgotten_entry_is_gone():
    store = MemoryLog()
    log = DecisionLog(store)
    entry = checkpoint(1, 1, 1)
    log.take(entry)
    log.forget(entry.place)
    assert log.read(entry.place) is None


def test_r05_a_directory_excludes_a_second_writer_and_the_test_leaves_nothing(tmp_path):
    stores = [DirectoryLog(tmp_path, token=Tokens(start)) for start in (0, 1000)]
    two_writer_test(stores[0], stores[1], Tokens(5000))
    assert stores[0].listed() == []
    assert list((tmp_path / "log").iterdir()) == []


def test_r05_a_store_that_looks_before_it_writes_must_not_hold_the_log():
    store = MemoryLog(careless=True)
    with pytest.raises(ExternalRefusal, match="2 were told that they have it"):
        two_writer_test(store, store, Tokens())


def test_r05_two_handles_that_do_not_see_each_other_must_not_hold_the_log():
    with pytest.raises(ExternalRefusal):
        two_writer_test(MemoryLog(), MemoryLog(), Tokens())


def test_r05_a_store_that_does_not_answer_is_not_judged():
    store = MemoryLog()
    store.unsure_before = 1
    with pytest.raises(Unavailable):
        two_writer_test(store, store, Tokens())
