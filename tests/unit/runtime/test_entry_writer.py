"""Taking places of the log when the store does not always answer (R5, R6)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from processor.errors import Unavailable
from processor.runtime.entry_writer import EntryWriter
from processor.storage.decision_log import DecisionLog, Lost, Taken
from tests.unit.operators.kit import SetClock
from tests.unit.runtime.kit import CountedChance
from tests.unit.storage.entries_made import checkpoint, seal
from tests.unit.storage.memory_log import MemoryLog

TIMEOUT_MS = 1_000


class Scene:
    def __init__(self) -> None:
        self.store = MemoryLog()
        self.clock = SetClock()
        self.log = DecisionLog(self.store)
        self.writer = EntryWriter(
            log=self.log,
            chance=CountedChance(),
            clock=self.clock,
            pause=self._pause,
            timeout_ms=TIMEOUT_MS,
        )

    def _pause(self, pause_ms: int) -> None:
        self.clock.now_ms += pause_ms


def test_an_entry_gets_a_nonce_and_its_time():
    scene = Scene()
    assert scene.writer.take(replace(checkpoint(1, 1, 1), nonce="", taken_ms=0)) == Taken()
    (entry,) = scene.log.read_all().checkpoints()
    assert entry.nonce
    assert entry.taken_ms == scene.clock.now_ms


def test_an_entry_that_was_signed_is_taken_as_it_is():
    scene = Scene()
    signed = scene.writer.sign(replace(checkpoint(1, 1, 1), nonce=""))
    assert scene.writer.take(signed) == Taken()
    assert scene.log.read_all().entries == (signed,)


@pytest.mark.parametrize("lost", ["unsure_before", "unsure_after"])
def test_r06_an_unknown_outcome_is_asked_about_again_until_it_is_known(lost):
    scene = Scene()
    setattr(scene.store, lost, 3)
    assert scene.writer.take(replace(seal(1, 1), nonce="")) == Taken()
    assert len(scene.log.read_all().entries) == 1


def test_r06_one_that_stays_unknown_is_neither_made_nor_failed():
    scene = Scene()
    scene.store.unsure_after = 10**6
    started_ms = scene.clock.now_ms
    with pytest.raises(Unavailable):
        scene.writer.take(replace(seal(1, 1), nonce=""))
    assert scene.clock.now_ms - started_ms <= 2 * TIMEOUT_MS


def test_r01_a_place_that_somebody_else_has_is_lost():
    scene = Scene()
    theirs = seal(1, 7)
    scene.log.take(theirs)
    assert scene.writer.take(replace(checkpoint(1, 1, 1), nonce="")) == Lost(by=theirs)
