"""Whatever types values and keys have: written as Avro and read back they are what they were (C2)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from io import BytesIO
from typing import Any
from uuid import UUID

import fastavro
import msgspec
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from processor.records.key_groups import encode_key
from processor.savepoint.avro_file import read_avro, write_avro
from processor.savepoint.held import HeldEntries
from processor.state.schema_text import state_text
from processor.state.type_schema import LIST, MAP, VALUE, StateSchema
from processor.state.value_types import described
from tests.laws.random_types import built, shapes
from tests.unit.state.fakes import MemoryFiles

SCALARS = (
    st.text(max_size=3)
    | st.binary(max_size=3)
    | st.integers()
    | st.booleans()
    | st.uuids()
    | st.datetimes(
        min_value=datetime(1900, 1, 1), timezones=st.sampled_from([UTC, timezone(timedelta(hours=2))])
    )
)
KEYS: st.SearchStrategy[Any] = SCALARS | st.lists(SCALARS, max_size=2).map(tuple)
SOME_KEYS = st.lists(st.text(), max_size=4) | st.lists(st.integers(), max_size=4) | st.lists(KEYS, max_size=4)


def entries(keys: list[Any], places: list[Any], values: list[Any]) -> HeldEntries:
    raws = [msgspec.Raw(msgspec.msgpack.encode(value)) for value in values]
    return HeldEntries(keys=keys, places=places, values=raws)


def through_avro(schema: StateSchema | None, some: list[HeldEntries]) -> list[HeldEntries]:
    files = MemoryFiles()
    names = iter("abcdef")
    table: dict[str, Any] = {
        "step": "count",
        "table": "state",
        "state": "" if schema is None else state_text(schema),
    }
    ref = write_avro(lambda: files.create(next(names)), lambda: iter(some), **table)
    if ref is None:
        return []
    # Any Avro tool can: without what is said in its header, and without the job.
    plain = list(fastavro.reader(BytesIO(files.content[ref.name])))
    assert len(plain) == sum(len(each.keys) for each in some)
    return list(read_avro(files, ref, **table))


def exactly(keys: list[Any]) -> list[bytes]:
    return list(map(encode_key, keys))


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_c2_values_of_every_type_come_back(data):
    shape = data.draw(shapes())
    try:
        kind, values = built(shape)
        schema = described(kind)
    except Exception:
        return  # no type that can be declared
    found = data.draw(st.lists(values, max_size=3))
    many: Any = list[kind]  # type: ignore[valid-type]
    try:
        expected = msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=many)
    except msgspec.ValidationError:
        return  # a default that is not of the type
    keys = [f"k{at}" for at in range(len(found))]
    for state, places in ((VALUE, []), (MAP, keys)):
        keyed = StateSchema(state, schema, described(str) if state == MAP else None)
        back = through_avro(keyed, [entries(keys, places, found)] if found else [])
        read = [value for each in back for value in each.read_as(kind)]
        assert read == expected
        assert [key for each in back for key in each.keys] == keys
    back = through_avro(StateSchema(LIST, schema), [entries(["k"], [], [found])])
    assert back[0].read_as(many) == [expected]


@settings(max_examples=60, deadline=None)
@given(st.lists(SOME_KEYS, max_size=3), st.lists(KEYS, min_size=6, max_size=6))
@example([["a"], [1]], ["x"] * 6)
@example([["a"], ["b"]], ["x", 1, "y", "y", "y", "y"])
def test_c2_keys_of_every_type_come_back_as_what_they_were(chunks, places):
    chunks = [keys for keys in chunks if keys]
    schema = StateSchema(MAP, described(int), described(str))
    some = [
        entries(keys, places[number:][: len(keys)], [0] * len(keys)) for number, keys in enumerate(chunks)
    ]
    back = through_avro(schema, some)
    flat = [key for keys in chunks for key in keys]
    assert exactly([key for each in back for key in each.keys]) == exactly(flat)
    assert exactly([place for each in back for place in each.places]) == exactly(
        [place for each in some for place in each.places]
    )


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(KEYS, st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=5))
def test_c2_timers_come_back(timers):
    keys, times = [key for key, _ in timers], [time for _, time in timers]
    back = through_avro(None, [HeldEntries(keys=keys, places=times, values=[])])
    assert exactly([key for each in back for key in each.keys]) == exactly(keys)
    assert [time for each in back for time in each.places] == times


INTS = st.integers(-(2**63), 2**63 - 1) | st.integers(2**63, 2**64 - 1)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(INTS, st.none() | INTS | st.text(max_size=2), st.dictionaries(INTS, INTS, max_size=2)),
        min_size=1,
        max_size=4,
    )
)
def test_c2_ints_of_64_bits_without_a_sign_come_back(values):
    kind = tuple[int, int | str | None, dict[int, int]]
    schema = StateSchema(VALUE, described(kind))
    keys = list(range(len(values)))
    back = through_avro(schema, [entries(keys, [], values)])
    assert [value for each in back for value in each.read_as(kind)] == values


class Node(msgspec.Struct):
    at: datetime
    of: list[Node] | dict[int, Node] | None = None
    ids: tuple[UUID, ...] = ()


NODES = st.recursive(
    st.builds(Node, at=st.datetimes(timezones=st.none() | st.just(UTC))),
    lambda nodes: st.builds(
        Node,
        at=st.datetimes(timezones=st.none() | st.just(UTC)),
        of=st.lists(nodes, max_size=2) | st.dictionaries(st.integers(0, 3), nodes, max_size=2),
        ids=st.lists(st.uuids(), max_size=2).map(tuple),
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(NODES, min_size=1, max_size=3))
def test_c2_records_that_contain_themselves_come_back(values):
    schema = StateSchema(VALUE, described(Node))
    back = through_avro(schema, [entries(list(range(len(values))), [], values)])
    assert [value for each in back for value in each.read_as(Node)] == values
