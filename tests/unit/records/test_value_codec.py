"""Values of an edge come back as they were, whatever msgpack would have made of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.errors import JobError, UserCodeError
from processor.records.value_codec import ValueCodec

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    st.binary(max_size=5),
)
hashable = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4)
plain = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(hashable, inner, max_size=3),
    ),
    max_leaves=8,
)


def shape(value: object) -> object:
    """A value with its types: 1, 1.0 and True are three, and so are a list and a tuple."""
    if isinstance(value, (list, tuple)):
        return type(value), [shape(item) for item in value]
    if isinstance(value, dict):
        return dict, [(shape(key), shape(item)) for key, item in value.items()]
    return type(value), value


integers = st.one_of(st.integers(), st.integers(-(2**63) - 2, -(2**63)), st.integers(2**64 - 2, 2**64 + 2))
members = st.one_of(scalars, integers)
of_one_kind = st.one_of(
    st.lists(integers, max_size=5),
    st.lists(st.lists(members, max_size=3).map(tuple), max_size=5),
    st.lists(st.lists(members, max_size=3), max_size=5),
    st.lists(st.dictionaries(st.text(max_size=3), members, max_size=3), max_size=5),
    st.lists(st.dictionaries(st.one_of(st.text(max_size=3), st.integers()), members, max_size=3), max_size=5),
    st.lists(st.tuples(st.lists(scalars, max_size=2)), max_size=3),
)


@given(st.one_of(st.lists(plain, max_size=5), of_one_kind))
def test_plain_values_come_back_with_their_types(values):
    codec = ValueCodec(None, "here")
    encoded = codec.encode(values)
    assert codec.verify(encoded) == values
    assert [shape(value) for value in codec.decode(encoded)] == [shape(value) for value in values]


@dataclass(frozen=True)
class Point:
    x: int
    at: datetime


class Event(msgspec.Struct):
    name: str
    where: Point | None = None


def test_plain_values_in_files_of_earlier_releases_are_read():
    pack, ext = msgspec.msgpack.encode, msgspec.msgpack.Ext
    old = pack([ext(1, pack(["a", ext(3, b"18446744073709551616")])), ext(2, pack([["k", 1]])), None])
    assert ValueCodec(None, "here").decode(old) == [("a", 2**64), {"k": 1}, None]


def nested(depth: int) -> bytes:
    encoded = msgspec.msgpack.encode([])
    for _ in range(depth):
        encoded = msgspec.msgpack.encode([msgspec.msgpack.Ext(1, encoded)])
    return encoded


@pytest.mark.parametrize(
    "encoded",
    [
        b"",
        b"\xc1",
        b"\xc1" + msgspec.msgpack.encode([1]),
        *(
            msgspec.msgpack.encode([msgspec.msgpack.Ext(code, wrapped)])
            for code, wrapped in (
                (1, b"\x05"),
                (2, b"\x91\x01"),
                (2, msgspec.msgpack.encode([[[1], 2]])),
                (3, b"x"),
                (3, b"1" * 5_000),
                (9, b""),
            )
        ),
        nested(5_000),
    ],
)
def test_what_was_never_written_is_refused(encoded):
    with pytest.raises(UserCodeError):
        ValueCodec(None, "here").verify(encoded)
    with pytest.raises(JobError):
        ValueCodec(None, "here").decode(memoryview(encoded))


def test_records_come_back_as_their_type():
    values = [Event("a", Point(1, datetime(2026, 1, 2, tzinfo=UTC))), Event("b")]
    codec = ValueCodec(Event, "here")
    assert codec.decode(codec.encode(values)) == values


def test_what_could_not_be_read_back_is_refused_before_a_checkpoint_holds_it():
    codec = ValueCodec(int, "from step 'a' to input 0 of step 'b'")
    with pytest.raises(UserCodeError, match=r"from step 'a' to input 0 of step 'b'.*checkpoint.unaligned"):
        codec.verify(codec.encode(["no int"]))
    with pytest.raises(UserCodeError, match="plain values"):
        ValueCodec(None, "here").encode([object()])


def test_values_of_the_type_of_before_tell_what_to_do():
    encoded = ValueCodec(str, "here").encode(["text"])
    with pytest.raises(JobError, match="stop the job with a savepoint"):
        ValueCodec(int, "here").decode(encoded)
