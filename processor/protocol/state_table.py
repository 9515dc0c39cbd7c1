"""States as tables: which may follow which (D3). What is not in a table can't happen."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Generic, TypeVar

from processor.invariant import invariant

S = TypeVar("S", bound=StrEnum)


class StateTable(Generic[S]):
    """The states of one kind of thing, each with those that may follow it; what nothing follows is an end."""

    def __init__(self, noun: str, first: S, follows: Mapping[S, tuple[S, ...]]) -> None:
        """``noun`` says in errors what has these states. Every state has its row, and a way to it from ``first``."""
        self.noun = noun
        self.first = first
        self._follows = {state: frozenset(after) for state, after in follows.items()}
        for state in type(first):
            invariant(state in self._follows, f"a {state} {noun} has its row")
        reached, left = {first}, [first]
        while left:
            new = self._follows[left.pop()] - reached
            reached |= new
            left += new
        for state in type(first):
            invariant(state in reached, f"there is a way to a {state} {noun}")

    def step(self, before: S, after: S) -> S:
        """The state after; an invariant if the table does not have it behind the one before."""
        invariant(after in self._follows[before], f"a {before} {self.noun} does not become {after}")
        return after

    def is_end(self, state: S) -> bool:
        return not self._follows[state]


class State(Generic[S]):
    """Where one thing is in its table."""

    def __init__(self, table: StateTable[S]) -> None:
        self._table = table
        self.status = table.first

    def to(self, status: S) -> None:
        self.status = self._table.step(self.status, status)

    @property
    def over(self) -> bool:
        return self._table.is_end(self.status)
