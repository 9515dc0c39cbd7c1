"""Running totals an author can name, and the shape of their own."""

from __future__ import annotations

from collections.abc import Callable
from types import NoneType
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from processor.errors import JobError
from processor.operators.types import return_type
from processor.records.batch import Key

A = TypeVar("A")
K = TypeVar("K", bound=Key)
V_contra = TypeVar("V_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)
W = TypeVar("W")


class Aggregate(Protocol[V_contra, A, R_co]):
    """How values of one key become a total.

    The return annotation of ``create`` is the type with which totals are kept. A total is never None, and
    ``add`` returns the new one without changing the old.
    """

    def create(self) -> A:
        """The total of no values."""
        ...

    def add(self, total: A, value: V_contra, /) -> A: ...

    def merge(self, left: A, right: A, /) -> A:
        """The total of the values of both."""
        ...

    def result(self, total: A, /) -> R_co:
        """What goes out."""
        ...


class Keyed(msgspec.Struct, Generic[K, W], frozen=True):
    """A key and what was made for it."""

    key: K
    value: W


class Count:
    """How many values."""

    def create(self) -> int:
        return 0

    def add(self, total: int, value: object, /) -> int:
        return total + 1

    def merge(self, left: int, right: int, /) -> int:
        return left + right

    def result(self, total: int, /) -> int:
        return total


class Sum(Generic[V_contra]):
    """The sum of whole numbers. (Sums of floats depend on the order of the values; write your own, and mean
    it.)"""

    def __init__(self, of: Callable[[V_contra], int]) -> None:
        self._of = of

    def create(self) -> int:
        return 0

    def add(self, total: int, value: V_contra, /) -> int:
        return total + self._of(value)

    def merge(self, left: int, right: int, /) -> int:
        return left + right

    def result(self, total: int, /) -> int:
        return total


AnyAggregate = Aggregate[Any, Any, Any]


def total_type(how: Any) -> Any:
    """The type of an aggregate's totals, as its ``create`` declares it. Raises JobError for what is no aggregate or
    does not say."""
    missing = [
        name for name in ("create", "add", "merge", "result") if not callable(getattr(how, name, None))
    ]
    if isinstance(how, type) or missing:
        raise JobError(
            f"aggregate is given {how!r:.80}, which is no aggregate"
            + (f": it has no {missing[0]}." if missing else " but a class."),
            remedy="Give an instance, such as Count() or Sum(lambda order: order.cents).",
        )
    found = return_type(how.create)
    if found in (None, NoneType):
        raise JobError(
            f"{type(how).__name__} does not say the type of its totals, which are kept as state.",
            remedy="Annotate the return type of its create, such as def create(self) -> int.",
        )
    return found
