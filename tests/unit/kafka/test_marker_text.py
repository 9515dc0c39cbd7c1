"""A marker as text of a group's offset, and back (R15)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.kafka.cluster import GroupOffset
from connectors.kafka.marker_store import METADATA_CHARS_MAX, marker_offset, stored_marker
from processor.errors import LogConflict
from processor.ids import Attempt, CheckpointId, Incarnation, Marker

markers = st.builds(
    Marker,
    incarnation=st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=64).map(Incarnation),
    attempt=st.integers(0, 2**40).map(Attempt),
    checkpoint=st.integers(0, 2**62).map(CheckpointId),
    rows=st.integers(0, 2**50),
)


@given(markers)
def test_r15_a_marker_comes_back_as_it_was(marker: Marker) -> None:
    stored = marker_offset(marker)
    assert len(stored.metadata) <= METADATA_CHARS_MAX
    assert stored_marker(stored, "g") == marker


def test_no_offset_is_no_marker() -> None:
    assert stored_marker(None, "g") is None


@pytest.mark.parametrize("text", ["", "a|b", "a|1|b", "a|1|2|3", "|1|2", "a|-1|2", "a|1.5|2"])
def test_r15_what_no_publisher_wrote_is_refused_by_name(text: str) -> None:
    with pytest.raises(LogConflict, match="group 'g' holds offset 5"):
        stored_marker(GroupOffset(offset=5, metadata=text), "g")


@pytest.mark.parametrize("incarnation", ["a|b", "x" * METADATA_CHARS_MAX])
def test_an_incarnation_that_cannot_be_stored_is_refused(incarnation: str) -> None:
    marker = Marker(
        incarnation=Incarnation(incarnation), attempt=Attempt(1), checkpoint=CheckpointId(1), rows=0
    )
    with pytest.raises(ValueError, match="incarnation"):
        marker_offset(marker)
