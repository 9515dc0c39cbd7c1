"""Files of changes put together: what is left is the same, in memory and over temporary files."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processor.savepoint.latest import Latest

KEYS = st.sampled_from([b"a", b"b", b"c", b"", b"long" * 10])
PLACES = st.sampled_from([None, b"x", 1, -(2**63)])
ACTS = st.lists(
    st.tuples(st.lists(st.tuples(KEYS, PLACES), min_size=1, max_size=4), st.none() | st.integers()),
    max_size=12,
)


@pytest.mark.parametrize("parts", [1, 3])
@settings(max_examples=60, deadline=None)
@given(acts=ACTS)
def test_the_latest_of_every_entry_is_left_unless_it_was_removed(parts, acts):
    expected: dict[Any, int] = {}
    with Latest(parts - 1, together_bytes_max=1) as latest:
        for entries, value in acts:
            keys, places = [key for key, _ in entries], [place for _, place in entries]
            if value is None:
                latest.remove(keys, places)
                for entry in entries:
                    expected.pop(entry, None)
            else:
                small = value % 1_000
                latest.add(keys, places, [msgspec.Raw(msgspec.msgpack.encode(small))] * len(keys))
                expected |= dict.fromkeys(entries, small)
        found = {
            (key, place): msgspec.msgpack.decode(value)
            for left in latest.left()
            for key, place, value in zip(left.keys, left.places, left.values, strict=True)
        }
    assert found == expected


def test_no_temporary_file_stays_open(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Latest(10, together_bytes_max=1) as latest:
        latest.add([b"a"], [None], [msgspec.Raw(b"\x01")])
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="closed file"):
        list(latest.left())
