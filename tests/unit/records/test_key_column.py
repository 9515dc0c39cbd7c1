"""A column of keys comes back as it was, of every type and in every mixture."""

from __future__ import annotations

from datetime import UTC, timedelta, timezone

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.errors import JobError
from processor.records.key_column import decode_keys, encode_keys

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
moments = st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-7))]))
plain = [texts, st.binary(max_size=5), st.integers(), st.booleans(), st.uuids(), moments]
any_plain = st.one_of(plain)
columns = st.one_of(
    *(st.lists(kind, min_size=1, max_size=6) for kind in plain),
    st.lists(st.one_of(any_plain, st.lists(any_plain, max_size=3).map(tuple)), min_size=1, max_size=6),
    st.lists(st.tuples(texts, moments, st.tuples(st.integers())), min_size=1, max_size=6),
    st.lists(st.tuples(), min_size=1, max_size=3),
)


def typed(key: object) -> object:
    """A key with its types: True and 1 are two keys."""
    return (tuple, [typed(part) for part in key]) if isinstance(key, tuple) else (type(key), key)


@given(columns)
def test_keys_come_back_with_their_types(keys):
    number, encoded = encode_keys(keys)
    assert [typed(key) for key in decode_keys(number, memoryview(encoded))] == [typed(key) for key in keys]
    assert encode_keys(tuple(keys)) == (number, encoded), "whatever sequence they are in"


@given(st.integers(0, 8), st.one_of(st.binary(max_size=30), columns.map(lambda keys: encode_keys(keys)[1])))
def test_what_are_no_keys_is_a_value_error_or_other_keys(number, encoded):
    try:
        keys = decode_keys(number, encoded)
    except ValueError:
        return
    assert isinstance(keys, list)


def test_keys_in_files_of_earlier_releases_are_read():
    pack = msgspec.msgpack.encode
    assert decode_keys(0, pack(["a", "b"])) == ["a", "b"]
    assert decode_keys(1, pack([1, -2])) == [1, -2]
    assert decode_keys(2, pack([b"a"])) == [b"a"]
    assert decode_keys(3, pack([b"sa", b"i\x01", b"o\x01", b"t\x00\x00\x00\x02sx"])) == ["a", 1, True, ("x",)]


def test_bytes_that_nest_without_end_are_refused():
    encoded = b"\x90"
    for _ in range(5_000):
        encoded = msgspec.msgpack.encode([(6, encoded)])
    with pytest.raises(ValueError, match="no keys"):
        decode_keys(6, encoded)


def test_what_cannot_be_a_key_is_the_authors_to_correct():
    with pytest.raises(JobError, match="float cannot be used"):
        encode_keys([1.5])  # type: ignore[list-item]
