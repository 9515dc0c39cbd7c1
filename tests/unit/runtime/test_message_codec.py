"""Messages between processes: whatever is sent is what arrives, and everything else is refused."""

from __future__ import annotations

import enum
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.errors import AttemptFailed
from processor.ids import Attempt, CheckpointId, WorkerId
from processor.protocol.messages import HoldSources
from processor.protocol.worker_messages import Deploy
from processor.runtime.message_codec import Message, decode_message, encode_message

KINDS = get_args(Message)


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Anything that a field of this type may hold, as far as it can be sent."""
    kind = getattr(kind, "__supertype__", kind)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return st.one_of(*map(values, arguments))
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(values(arguments[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values, arguments))
    if origin is Mapping:
        return st.dictionaries(*map(values, arguments), max_size=2)
    if origin is frozenset:
        return st.frozensets(values(arguments[0]), max_size=2)
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        build: Any = kind
        return st.builds(build, **{field.name: values(hints[field.name]) for field in fields(kind)})
    if issubclass(kind, enum.Enum):
        return st.sampled_from(kind)
    if kind is int:
        return st.integers(-(2**63), 2**63 - 1)
    if kind is float:
        return st.floats(allow_nan=False)
    return st.from_type(kind)


@given(st.sampled_from(KINDS).flatmap(values))
def test_d01_every_message_arrives_as_it_was_sent(message: Any):
    arrived = decode_message(encode_message(message))
    assert type(arrived) is type(message)
    assert arrived == message


def test_no_two_messages_have_one_name():
    assert len({kind.__name__ for kind in KINDS}) == len(KINDS)


@given(st.binary(max_size=200))
def test_r21_what_is_no_message_is_refused(content: bytes):
    try:
        message = decode_message(content)
    except AttemptFailed:
        return
    assert decode_message(encode_message(message)) == message


@pytest.mark.parametrize(
    "content",
    [
        msgspec.msgpack.encode(("NoSuchMessage", {})),
        msgspec.msgpack.encode(("Release", {"attempt": "first"})),
        msgspec.msgpack.encode(("Deploy", {"attempt": 1})),
        msgspec.msgpack.encode(("Release",)),
        b"",
    ],
)
def test_r21_an_unknown_or_unfit_message_is_refused_by_name(content: bytes):
    with pytest.raises(AttemptFailed, match="cannot be read"):
        decode_message(content)


def test_a_cut_message_is_refused_at_every_byte():
    whole = encode_message(HoldSources(attempt=Attempt(1), subtask=_subtask(), until=CheckpointId(4)))
    for length in range(len(whole)):
        with pytest.raises(AttemptFailed):
            decode_message(whole[:length])


def test_workers_are_numbers_on_the_way_too():
    deploy = decode_message(encode_message(_deploy()))
    assert isinstance(deploy, Deploy)
    assert deploy.addresses == {WorkerId(0): "unix:/a", WorkerId(1): "unix:/b"}


def _subtask():
    from processor.ids import StepName, SubtaskId

    return SubtaskId(StepName("count"), 3)


def _deploy() -> Deploy:
    from processor.ids import Incarnation
    from tests.unit.storage.entries_made import checkpoint

    return Deploy(
        attempt=Attempt(1),
        incarnation=Incarnation("i"),
        entry=checkpoint(2, 1, 1),
        unconfirmed={},
        parallelism=2,
        addresses={WorkerId(0): "unix:/a", WorkerId(1): "unix:/b"},
    )
