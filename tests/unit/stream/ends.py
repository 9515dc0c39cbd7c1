"""A source and a sink that only describe themselves: building a job runs nothing."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from processor.contracts.sink import Guarantee
from processor.errors import EngineBug

T = TypeVar("T")


class ListSource(Generic[T]):
    bounded = False

    def __init__(self, kind: type[T] | None = None) -> None:
        self.kind = kind

    def value_type(self) -> type[T] | None:
        return self.kind

    def check(self, context: Any) -> None:
        raise EngineBug("building a job runs nothing")

    def enumerator(self, context: Any) -> Any:
        raise EngineBug("building a job runs nothing")

    def reader(self, context: Any) -> Any:
        raise EngineBug("building a job runs nothing")

    def __repr__(self) -> str:
        return f"ListSource({self.kind.__name__ if self.kind else ''})"


class ListSink(Generic[T]):
    def __init__(self, kind: type[T] | None = None, guarantee: Guarantee = Guarantee.EXACTLY_ONCE) -> None:
        self.kind = kind
        self.guarantee = guarantee

    def accepts(self, value: T, /) -> None: ...

    def value_type(self) -> type[T] | None:
        return self.kind

    def check(self, context: Any) -> Any:
        raise EngineBug("building a job runs nothing")

    def encoder(self, context: Any) -> Any:
        raise EngineBug("building a job runs nothing")

    def publisher(self, context: Any, identity: Any) -> Any:
        raise EngineBug("building a job runs nothing")

    def __repr__(self) -> str:
        return f"ListSink({self.kind.__name__ if self.kind else ''})"
