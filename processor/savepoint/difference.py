"""What is different between two savepoints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from processor.records.batch import Key
from processor.savepoint.opened import Savepoint
from processor.state.stored_keys import StoredKey, author_key, normalise_key

_ABSENT: Final = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A key whose value is another, or that is in one of the two only."""

    key: Key
    before: Any
    """None when ``was_there`` is false."""
    after: Any
    """None when ``is_there`` is false."""
    was_there: bool
    is_there: bool


def difference(before: Savepoint, after: Savepoint, step: str, state: str) -> Iterator[Changed]:
    """Keys of one state that are not the same in both. All values of ``before`` are in memory meanwhile.

    Raises like ``Savepoint.read``.
    """
    old: dict[StoredKey, Any] = {normalise_key(key): value for key, value in before.read(step, state)}
    for key, value in after.read(step, state):
        was = old.pop(normalise_key(key), _ABSENT)
        if was is _ABSENT:
            yield Changed(key=key, before=None, after=value, was_there=False, is_there=True)
        elif was != value or type(was) is not type(value):
            yield Changed(key=key, before=was, after=value, was_there=True, is_there=True)
    for stored, value in old.items():
        yield Changed(key=author_key(stored), before=value, after=None, was_there=True, is_there=False)
