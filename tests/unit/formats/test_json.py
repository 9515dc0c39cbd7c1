"""JSON: typed when read, compact when written."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest

from connectors.formats import AnyJson, Json
from processor.errors import JobError


@dataclass(frozen=True)
class Order:
    customer: str
    cents: int


def test_what_is_written_is_read_back():
    json = Json(Order)
    assert json.decode(json.encode(Order("ann", 5))) == Order("ann", 5)
    assert json.value_type() is Order


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b'{"customer": "ann"}',
        b'{"customer": "ann", "cents": "5"}',
        b'{"customer": "ann", "cents": 5}{}',
        b'{"customer": "\\ud800", "cents": 5}',
        b'{"customer": "\xff", "cents": 5}',
    ],
)
def test_a_record_that_is_no_order_is_an_error(data):
    with pytest.raises(msgspec.DecodeError):
        Json(Order).decode(data)


def test_fields_that_the_type_lacks_are_passed_over():
    assert Json(Order).decode(b'{"customer": "ann", "cents": 5, "new": [1]}') == Order("ann", 5)


def test_null_bytes_of_json_are_the_value_none_and_nothing_else():
    assert Json(type(None)).decode(b"null") is None
    with pytest.raises(msgspec.DecodeError):
        Json(Order).decode(b"null")


def test_decode_is_the_codecs_own_function_without_a_python_frame():
    assert type(Json(Order).decode).__name__ == "builtin_function_or_method"


def test_a_type_that_cannot_be_read_is_refused_by_name():
    with pytest.raises(JobError, match=r"Json cannot read .*list\[int\]"):
        Json(list[int] | list[str])  # type: ignore[arg-type]


class Socket:
    """Nothing msgspec knows."""


@dataclass
class Connection:
    peers: dict[str, list[Socket | None]]
    back: Connection | None = None


@dataclass
class Tree:
    children: list[Tree]


def test_a_type_of_which_no_record_could_be_read_is_refused_when_the_format_is_named():
    for kind in (Socket, Connection):
        with pytest.raises(JobError, match="nobody says how a Socket is read"):
            Json(kind)
    assert Json(Tree).decode(b'{"children": [{"children": []}]}') == Tree([Tree([])])


def test_any_json_writes_whatever_it_gets():
    assert AnyJson().encode(Order("ann", 5)) == b'{"customer":"ann","cents":5}'
    assert AnyJson().encode([1, None, "x"]) == b'[1,null,"x"]'
    assert not hasattr(AnyJson(), "decode")
