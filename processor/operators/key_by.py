"""Gives every record its key. The batch gets a column of keys; the edge behind it spreads by key group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from types import NoneType
from typing import Any, TypeVar
from uuid import UUID

from processor.errors import JobError, Where
from processor.operators.operator import BaseOperator, Collector, OperatorContext
from processor.operators.per_record import FailurePolicy, PerRecord
from processor.records.batch import Batch
from processor.records.key_groups import encode_key

V = TypeVar("V")

_NEED_NO_LOOK = frozenset({int, bytes, bool, UUID})
"""Types of which every value is a key."""

_PLAIN_SCALARS = frozenset({str, bytes, int, float, bool, NoneType})

_REMEDY = (
    "Keys are str, bytes, int, bool, UUID, datetime with a time zone, or tuples of them; or give the step "
    "on_error=Skip() to leave such records out and count them."
)


class KeyBy(BaseOperator[V]):
    """Computes the key of every record.

    0, "" and b"" are keys like any other. None is no key: it goes by the step's policy, like a key of a type
    that has no stable bytes and a key function that raises: an error with the record's place, or skipped and
    counted (case 51).
    """

    def __init__(self, key: Callable[[V], Any], *, type_known: bool) -> None:
        """``type_known`` False: the job names no type for the values, so they must be plain."""
        self._key = key
        self._type_known = type_known

    def open(self, context: OperatorContext) -> None:
        self._failures = FailurePolicy(context.step, context)
        self._apply = PerRecord(self._key, self._failures, "the key function").apply

    def on_batch(self, input: int, batch: Batch[V], out: Collector[V]) -> None:
        if not self._type_known:
            _check_plain(batch, self._failures.step)
        done, keys = self._apply(batch)
        if not keys:
            return
        bad = unfit_keys(keys)
        if bad:
            if not self._failures.skips:
                index, problem = bad[0]
                raise self._failures.refusal(done, index, problem, _REMEDY)
            self._failures.skipped(len(bad))
            unfit = {index for index, _ in bad}
            kept = [index for index in range(len(done)) if index not in unfit]
            if not kept:
                return
            done, keys = done.take(kept), [keys[index] for index in kept]
        out.emit(
            Batch(
                values=done.values,
                timestamps=done.timestamps,
                keys=keys,
                headers=done.headers,
                split=done.split,
                offsets=done.offsets,
            )
        )


def unfit_keys(keys: Sequence[Any]) -> list[tuple[int, str]]:
    """Index and problem of every value that cannot be a key; one look at the types for a usual batch."""
    kinds = set(map(type, keys))
    if kinds == {str}:
        try:
            "".join(keys).encode()  # a lone surrogate has no UTF-8 bytes, so no key group
            return []
        except UnicodeEncodeError:
            pass
    elif kinds <= _NEED_NO_LOOK:
        return []
    bad: list[tuple[int, str]] = []
    for index, key in enumerate(keys):
        problem = _problem(key)
        if problem is not None:
            bad.append((index, problem))
    return bad


def _problem(key: Any) -> str | None:
    if key is None:
        return "the key function returned None, which is no key."
    if isinstance(key, datetime) and key.tzinfo is None:
        return f"the key {key!r} is a datetime without a time zone."
    try:
        encode_key(key)
    except JobError as error:
        return error.message
    except UnicodeEncodeError:
        return f"the key {key!r:.80} holds half a surrogate pair, which has no UTF-8 bytes."
    return None


def is_plain(value: Any) -> bool:
    """Whether a value needs no declared type: a str, bytes, int, float, bool, None, or a list, tuple, dict
    of them."""
    kind = type(value)
    if kind in _PLAIN_SCALARS:
        return True
    if kind is list or kind is tuple:
        return all(map(is_plain, value))
    if kind is dict:
        return all(map(is_plain, value)) and all(map(is_plain, value.values()))
    return False


def _check_plain(batch: Batch[Any], step: str) -> None:
    if set(map(type, batch.values)) <= _PLAIN_SCALARS:
        return
    for value in batch.values:
        if not is_plain(value):
            raise JobError(
                f"values of type {type(value).__qualname__} cross to another subtask here, and the job "
                "does not say what type they have.",
                remedy="Say it in one of three ways: .returns(T) behind the step that makes them, a return "
                "annotation on its function, or a source whose format names the type.",
                where=Where(step=step),
            )
