"""R20: what the engine needs of any publisher, whatever the outside system: a database, files, a broker.

``PublisherContract`` is the contract; a connector's tests derive from it and say how their system is made.
Here it is shown to be satisfiable, by the outside system in memory.
"""

from __future__ import annotations

from typing import Protocol

import pytest

from processor.contracts.sink import Publisher
from processor.errors import Retriable
from processor.ids import Attempt, CheckpointId, Incarnation, JobName, Marker, PublisherId, StepName
from processor.records.rows import RowBlock
from tests.unit.task.kit import Outside

FIRST = PublisherId(JobName("job"), StepName("out"), 0)
OTHER = PublisherId(JobName("job"), StepName("out"), 1)


def marker(checkpoint: int, rows: int) -> Marker:
    return Marker(
        incarnation=Incarnation("first"),
        attempt=Attempt(1),
        checkpoint=CheckpointId(checkpoint),
        rows=rows,
    )


def block(*values: str) -> RowBlock:
    return RowBlock(topic="out", values=[value.encode() for value in values])


class System(Protocol):
    """The outside system under test."""

    def publisher(self, identity: PublisherId) -> Publisher: ...

    def rows(self) -> list[bytes | None]:
        """What a reader can read."""
        ...


class PublisherContract:
    @pytest.fixture
    def system(self) -> System:
        raise NotImplementedError

    def test_r20_there_is_no_marker_before_the_first_send(self, system):
        publisher = system.publisher(FIRST)
        assert publisher.look() is None
        assert publisher.take_over() is None

    def test_r20_rows_and_marker_are_there_together(self, system):
        publisher = system.publisher(FIRST)
        publisher.take_over()
        publisher.send(marker(1, 2), [block("a"), block("b")])
        assert publisher.wait_visible(10_000)
        assert system.rows() == [b"a", b"b"]
        assert system.publisher(FIRST).take_over() == marker(1, 2)
        assert publisher.look() == marker(1, 2)

    def test_r20_a_send_without_rows_moves_the_marker_only(self, system):
        publisher = system.publisher(FIRST)
        publisher.take_over()
        publisher.send(marker(1, 0), ())
        assert publisher.wait_visible(10_000)
        assert system.rows() == []
        assert system.publisher(FIRST).take_over() == marker(1, 0)

    def test_r20_neither_rows_nor_marker_of_a_publisher_that_was_shut_out(self, system):
        old, new = system.publisher(FIRST), system.publisher(FIRST)
        old.take_over()
        new.take_over()
        with pytest.raises(Retriable):
            old.send(marker(1, 1), [block("old")])
        new.send(marker(1, 1), [block("new")])
        assert new.wait_visible(10_000)
        assert system.rows() == [b"new"]

    def test_r20_rows_that_raise_half_way_leave_nothing(self, system):
        publisher = system.publisher(FIRST)
        publisher.take_over()

        def rows():
            yield block("a")
            raise OSError("the outbox cannot be read")

        with pytest.raises(OSError, match="cannot be read"):
            publisher.send(marker(1, 2), rows())
        assert system.publisher(FIRST).take_over() is None
        assert system.rows() == []

    def test_r10_identities_do_not_touch_each_other(self, system):
        first, other = system.publisher(FIRST), system.publisher(OTHER)
        first.take_over()
        other.take_over()
        first.send(marker(1, 1), [block("a")])
        other.send(marker(5, 1), [block("b")])
        assert system.publisher(FIRST).take_over() == marker(1, 1)
        assert system.publisher(OTHER).take_over() == marker(5, 1)

    def test_r20_any_process_may_go_on(self, system):
        for number in range(1, 4):
            publisher = system.publisher(FIRST)
            seen = publisher.take_over()
            assert (seen.rows if seen else 0) == number - 1
            publisher.send(marker(1, number), [block(str(number))])
            publisher.close()
        assert system.publisher(FIRST).wait_visible(10_000)
        assert system.rows() == [b"1", b"2", b"3"]


class TestInMemory(PublisherContract):
    @pytest.fixture
    def system(self):
        return Outside()
