"""The contract of a LogStore, on every kind there is: a place is taken once, whole, by one who knows it (R5)."""

from __future__ import annotations

import threading

import pytest

from processor.errors import DamagedFile, EngineBug
from processor.storage.decision_log import DecisionLog, Lost, Taken, two_writer_test
from tests.unit.storage.disks import Tokens
from tests.unit.storage.entries_made import published, seal
from tests.unit.storage.store_rigs import KINDS, StoreRig, open_rig

WRITERS = 8


@pytest.fixture(params=KINDS)
def rig(request, tmp_path) -> StoreRig:
    return open_rig(request.param, request, tmp_path)


def test_r05_a_place_is_taken_once_and_keeps_its_first_content(rig):
    one, two = rig.log(), rig.log()
    assert one.listed() == []
    assert one.read(1) is None
    assert one.take(1, b"one")
    assert not two.take(1, b"two")
    assert two.take(2, b"two")
    assert one.read(1) == b"one"
    assert one.listed() == [1, 2]
    one.delete(1)
    one.delete(1)
    assert two.listed() == [2]
    assert two.read(1) is None


def test_r05_of_many_writers_at_once_one_has_the_place(rig):
    for place in range(1, 4):
        gate = threading.Barrier(WRITERS)
        won: list[bytes] = []

        def write(number: int, place: int = place, gate: threading.Barrier = gate, won: list[bytes] = won):
            log, content = rig.log(), b"%d" % number * 5000
            gate.wait(30)
            if log.take(place, content):
                won.append(content)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert rig.log().read(place) == won[0]


def test_r05_the_store_passes_the_two_writer_test_which_leaves_nothing(rig):
    two_writer_test(rig.log(), rig.log(), Tokens(5000))
    assert rig.log().listed() == []
    assert rig.log().take(1, b"first")


def test_r05_the_log_on_it_tells_who_has_a_place(rig):
    log, mine, others = DecisionLog(rig.log()), seal(1, 2, "mine"), seal(1, 3, "others")
    assert log.take(mine) == Taken()
    assert log.take(mine) == Taken()
    assert DecisionLog(rig.log()).take(others) == Lost(by=mine)
    assert DecisionLog(rig.log()).read_all().entries == (mine,)


def test_what_is_not_an_entry_is_not_listed(rig):
    log = rig.log()
    log.take(7, b"x")
    log.take(-3, b"probe")
    for name in ("8.entry", "0000000000000000.entry", "0000000000000009.entry.tmp", "notes.txt"):
        rig.put(f"log/{name}", b"")
    assert log.listed() == [7]
    assert log.read(-3) == b"probe"
    log.delete(-3)
    assert log.read(-3) is None


def test_an_entry_that_is_too_large_is_damage(rig, monkeypatch):
    log = rig.log()
    log.take(1, b"x" * 100)
    for module in ("directory_log", "object_log"):
        monkeypatch.setattr(f"processor.storage.{module}.ENTRY_BYTES_MAX", 50)
    with pytest.raises(DamagedFile, match=r"0000000000000001\.entry.*100 bytes"):
        log.read(1)


def test_r17_a_note_is_replaced_and_one_that_is_not_there_is_none(rig):
    log = rig.log()
    assert log.get_note("published") is None
    log.put_note("published", b"old")
    rig.log().put_note("published", b"new")
    assert log.get_note("published") == b"new"
    assert log.listed() == []
    with pytest.raises(EngineBug):
        log.put_note("../log/0000000000000001.entry", b"")
    rig.put("notes/published", b"\0 no note")
    assert DecisionLog(log).published() is None
    DecisionLog(log).record_published(published(7))
    assert DecisionLog(rig.log()).published() == published(7)
