"""Avro with a schema given: as dicts or as a dataclass, and never the wrong schema's bytes."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import msgspec
import pytest

from connectors.formats import Avro
from processor.errors import JobError

SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "customer", "type": "string"},
        {"name": "cents", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}


@dataclass(frozen=True)
class Order:
    customer: str
    cents: int
    note: str | None = None


def test_dicts_without_a_type():
    avro = Avro(SCHEMA)
    order = {"customer": "ann", "cents": 5, "note": None}
    assert avro.decode(avro.encode(order)) == order
    assert avro.value_type() is dict


def test_a_dataclass_with_one():
    avro = Avro(SCHEMA, Order)
    assert avro.decode(avro.encode(Order("ann", 5, "x"))) == Order("ann", 5, "x")
    assert avro.value_type() is Order


def test_a_schema_as_json_text():
    text = msgspec.json.encode(SCHEMA).decode()
    assert Avro(text).decode(Avro(SCHEMA).encode({"customer": "a", "cents": 1})) == {
        "customer": "a",
        "cents": 1,
        "note": None,
    }


@dataclass(frozen=True)
class Rich:
    raw: bytes
    at: datetime
    id: UUID
    price: Decimal
    tags: list[str] = field(default_factory=list)


def test_logical_types_and_bytes_come_back_as_they_went():
    schema = {
        "type": "record",
        "name": "Rich",
        "fields": [
            {"name": "raw", "type": "bytes"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
            {
                "name": "price",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            },
            {"name": "tags", "type": {"type": "array", "items": "string"}},
        ],
    }
    at = datetime(2024, 5, 1, 1, 2, 3, 4, tzinfo=UTC)
    rich = Rich(b"\x00\xff", at, UUID(int=7), Decimal("1.25"), ["x"])
    avro = Avro(schema, Rich)
    assert avro.decode(avro.encode(rich)) == rich


def test_bytes_left_over_are_an_error():
    data = Avro(SCHEMA).encode({"customer": "ann", "cents": 5})
    with pytest.raises(ValueError, match="1 of"):
        Avro(SCHEMA).decode(data + b"\x00")


def test_bytes_cut_off_are_an_error():
    data = Avro(SCHEMA).encode({"customer": "ann", "cents": 5})
    for end in range(len(data)):
        with pytest.raises(Exception):  # noqa: B017 - fastavro raises several types
            Avro(SCHEMA).decode(data[:end])


def test_a_value_that_does_not_fit_the_schema_is_an_error():
    with pytest.raises(Exception, match="cents"):
        Avro(SCHEMA).encode({"customer": "ann"})
    with pytest.raises(Exception):  # noqa: B017
        Avro(SCHEMA).encode({"customer": "ann", "cents": "five"})


def test_a_field_the_schema_lacks_is_not_silently_dropped():
    with pytest.raises(Exception, match="extra"):
        Avro(SCHEMA).encode({"customer": "ann", "cents": 5, "extra": 1})


@pytest.mark.parametrize("schema", ["{", "", '"no-such-type"', {"type": "record", "fields": []}, {"type": 5}])
def test_a_schema_that_is_none_is_refused_before_anything_runs(schema):
    with pytest.raises(JobError, match="Avro schema"):
        Avro(schema)


class Socket:
    """Nothing msgspec knows."""


def test_a_type_that_cannot_be_made_is_refused_before_anything_runs():
    with pytest.raises(JobError, match="Avro cannot read values of type Socket"):
        Avro(SCHEMA, Socket)
