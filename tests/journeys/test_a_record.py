"""The path of a record: from a split of the source to an outbox, through every room it passes.

Read this first, then `test_a_checkpoint.py`, which takes the record from its outbox to the outside.
"""

from __future__ import annotations

from processor.ids import owner_of
from processor.records.batch import Batch
from processor.records.key_groups import key_group
from tests.journeys.house import House, Word
from tests.unit.task.kit import Outside


def test_a_record_goes_from_its_split_to_an_outbox(tmp_path):
    house = House(
        tmp_path,
        {
            "book/0": [Word("to", 10), Word("be", 20), Word("or", 30)],
            "book/1": [Word("to", 15)],
        },
        Outside(),
    )
    reader = next(subtask for subtask in house.read if _places(subtask) == {"book/0": 0})
    first = house.read.index(reader)
    other = 1 - first

    # 1. The source polls its split and returns a batch; its position moves behind it. Nothing else happened.
    assert house.step(house.read[first])
    assert _places(house.read[first]) == {"book/0": 2}, "batch_records_max is 2 in this house"

    # 2. The subtask of the source stamped event time by the author's function, and followed the batch with a
    #    watermark: the largest time seen, less the disorder of 5 ms.
    # 3. Each record went to the subtask that owns the key group of its key; marks went to everybody.
    owners = {word: owner_of(key_group(word, 128), 2, 128) for word in ("to", "be", "or")}
    for consumer in range(2):
        mine = [word for word in ("to", "be") if owners[word] == consumer]
        assert house.waiting(first, consumer) == ([mine] if mine else []) + [20 - 5]
    sent = house.channel(first, owners["to"]).peek()
    assert isinstance(sent, Batch)
    assert sent.keys is not None
    assert (sent.keys[0], sent.timestamps[0], sent.split, sent.offsets) == (
        "to",
        10,
        "book/0",
        [0] if owners["be"] != owners["to"] else [0, 1],
    )

    # 4. A gate takes one element at a time. Event time waits: the other channel has not told its time.
    to = house.count[owners["to"]]
    assert house.step(to)
    house.run(to)
    assert to.parts.chain.next_processing_time_ms() is None
    assert house.waiting(first, owners["to"]) == []

    # 5. The chain called its operators one after another: the running count, then the sink.
    # 6. The count is state of the key "to": the same word from the other split goes on from it.
    house.run(house.read[other])
    house.run(to)

    # 7. The sink encoded each result and appended it to its outbox. Nothing is outside, and nothing on the disk.
    house.run(*house.read)
    house.run(*house.count)
    assert house.out() == []
    assert house.files("outbox") == []

    # It only goes out by the other path; here, to see what is in the outboxes, that path is run to its end.
    house.time_passes(1_000)
    house.run(*house.read)
    house.run(*house.count)
    while house.background():
        pass
    results = house.out()
    assert sorted(results) == sorted(
        [
            "Keyed(key='to', value=1)",
            "Keyed(key='to', value=2)",
            "Keyed(key='be', value=1)",
            "Keyed(key='or', value=1)",
        ]
    )
    of_to = [row for row in results if "'to'" in row]
    assert of_to == sorted(of_to), "in order per key"


def _places(subtask) -> dict[str, int]:
    return {str(split): place.next for split, place in subtask.intake.positions().items()}
