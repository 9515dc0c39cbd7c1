"""The path of a checkpoint: from "now" to published, and what a crash at the worst moment leaves of it.

Read `test_a_record.py` first: it ends where this begins, with output in outboxes that nobody outside can see.
"""

from __future__ import annotations

import pytest

from processor.protocol.entries import CheckpointEntry, Seal
from processor.storage.decision_log import Lost
from tests.journeys.house import INTERVAL_MS, House, Word
from tests.unit.task.kit import Outside

WORDS = {
    "book/0": [Word("to", 10), Word("be", 20)],
    "book/1": [Word("to", 15), Word("be", 25)],
}
COUNTED = sorted(f"Keyed(key='{word}', value={count})" for word in ("to", "be") for count in (1, 2))


@pytest.fixture
def outside() -> Outside:
    return Outside()


def words() -> dict[str, list[Word]]:
    return {split: list(found) for split, found in WORDS.items()}


def begun(path, outside: Outside) -> House:
    """A house in which all words are counted, and their output is in the outboxes."""
    house = House(path, words(), outside)
    house.run(*house.read)
    house.run(*house.count)
    return house


def test_a_checkpoint_from_its_barriers_to_its_completion(tmp_path, outside):
    # 0. Before anything ran: the attempt sealed the log (R1), decided a first checkpoint of resolved start
    #    positions (R4), and opened every identity (R14).
    house = begun(tmp_path, outside)
    seal, start = house.log.entries
    assert isinstance(seal, Seal)
    assert isinstance(start, CheckpointEntry)
    assert (seal.attempt, start.checkpoint, start.outboxes()) == (1, 1, {})
    assert {house.outside.markers[house.identity(index)].checkpoint for index in range(2)} == {1}

    # 1. Pacing says "now", and the coordinator wants barriers injected.
    house.time_passes(INTERVAL_MS)

    # 2. The driver carried the order; each source subtask records its positions and puts the barrier into
    #    every channel, between two batches.
    assert house.step(house.read[0])
    assert [house.waiting(0, consumer) for consumer in range(2)] == [["barrier 2"], ["barrier 2"]]

    # 3. Gates align: with the barrier of one channel only, that channel waits.
    house.run(*house.count)
    assert house.waiting(0, 0) == []
    house.step(house.read[1])
    assert house.waiting(1, 0) == ["barrier 2"]

    # 4. The second barrier completes the alignment: the cut, in the subtask's thread and without I/O.
    house.run(*house.count)
    assert house.files("state") == []
    assert house.files("outbox") == []

    # 5. The completion writes state and outbox, in the background, synced.
    house.executor.run()
    assert len(house.files("state")) == 2, "one of each counting subtask"
    assert 1 <= len(house.files("outbox")) <= 2, "one of each that has rows"

    # 6. Each subtask acknowledges with its files, and lists all its undecided outboxes (R9).
    assert house.coordinator.decided == 1
    house.executor.deliver()

    # 7. All are in, and the checkpoint before is published: the driver takes one place of the log by
    #    create-if-absent, with the whole manifest as its content. That entry is the decision (R5).
    assert house.log.newest() == start, "not decided yet"
    house.background()
    decided = house.log.newest()
    assert decided is not None
    assert (decided.checkpoint, decided.parent, decided.place) == (2, 1, 3)
    assert sum(box.rows for boxes in decided.outboxes().values() for box in boxes) == 4
    assert set(house.files("outbox")) <= {file.name for file in decided.files()}
    late = house._log.take(Seal(**{**_fields(seal), "place": decided.place, "nonce": "somebody else"}))
    assert late == Lost(by=decided), "a place is taken once"
    assert house.coordinator.decided == 2
    assert house.out() == [], "decided, and not published"

    # 8. Publish goes out: each identity takes over, compares the marker, sends rows and marker together (R11).
    house.background()
    assert sorted(house.out()) == COUNTED
    for publisher, boxes in decided.outboxes().items():
        marker = house.outside.markers[publisher]
        assert (marker.checkpoint, marker.rows) == (2, sum(box.rows for box in boxes))
    assert house.recorded() is None
    until(house, lambda: house.recorded() is not None)
    assert house.recorded() == 2
    assert house.driver.published == decided

    # 9. Another checkpoint later, retention forgets what no rule keeps: the outboxes are out, so they go (R7).
    while house.background():
        pass
    house.time_passes(INTERVAL_MS)
    house.run(*house.read, *house.count)
    while house.background():
        pass
    assert house.files("outbox") == []
    assert sorted(house.out()) == COUNTED, "and nothing comes twice"


def _fields(seal: Seal) -> dict:
    return {name: getattr(seal, name) for name in seal.__dataclass_fields__}


def until(house: House, happened) -> None:
    """Background work, one piece at a time, until something has happened."""
    while not happened():
        assert house.background(1), "there is nothing left to do"


def test_a_crash_before_the_decision_forgets_the_output_and_makes_it_again(tmp_path, outside):
    house = begun(tmp_path, outside)
    house.time_passes(INTERVAL_MS)
    house.run(*house.read, *house.count)
    house.executor.run()  # every file is written; nobody has acknowledged
    assert house.files("outbox")
    house.die()

    again = begun(tmp_path, outside)
    assert again.log.newest_attempt == 2
    assert again.out() == []
    again.time_passes(INTERVAL_MS)
    again.run(*again.read, *again.count)
    while again.background():
        pass
    assert sorted(again.out()) == COUNTED


def test_a_crash_after_the_decision_publishes_it_and_goes_on_from_it(tmp_path, outside):
    house = begun(tmp_path, outside)
    house.time_passes(INTERVAL_MS)
    house.run(*house.read, *house.count)
    until(house, lambda: house.log.newest_id == 2)
    assert house.out() == []
    house.die()

    # The next attempt's recovery seals, publishes what was decided, records it, opens all identities.
    again = House(tmp_path, words(), outside)
    assert sorted(again.out()) == COUNTED
    assert again.recorded() == 2
    assert {again.outside.markers[again.identity(index)].attempt for index in range(2)} == {2}

    # It goes on from there: positions and counts are those of the checkpoint.
    again.run(*again.read, *again.count)
    assert sorted(again.out()) == COUNTED
    again.source.records["book/0"].append(Word("to", 40))
    again.run(*again.read)
    again.run(*again.count)
    again.time_passes(INTERVAL_MS)
    again.run(*again.read, *again.count)
    while again.background():
        pass
    assert "Keyed(key='to', value=3)" in again.out()
    assert len(again.out()) == len(COUNTED) + 1


def test_a_crash_in_the_middle_of_publishing_sends_nothing_twice(tmp_path, outside):
    house = begun(tmp_path, outside)
    house.time_passes(INTERVAL_MS)
    house.run(*house.read, *house.count)
    until(house, lambda: house.log.newest_id == 2)
    house.outside.lost_answers = 1  # the first commit goes through, and its answer is lost
    until(house, house.out)
    house.die()
    again = House(tmp_path, words(), outside)
    assert sorted(again.out()) == COUNTED
