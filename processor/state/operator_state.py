"""State of a subtask instead of a key, as authors declare it, with what becomes of it at another parallelism."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar, cast

from processor.ids import KeyGroupRange, StepName
from processor.records.batch import Key
from processor.state.broadcast_map import BroadcastMap
from processor.state.declarations import Declared, declared, described_by
from processor.state.items import Items
from processor.state.map_keys import described_map_keys, map_keys
from processor.state.schema_text import state_text
from processor.state.snapshot import Block
from processor.state.type_schema import BROADCAST, SPLIT_LIST, UNION_LIST, StateSchema
from processor.state.value_types import described, may_be_none, value_type

T = TypeVar("T")
K = TypeVar("K", bound=Key)
V = TypeVar("V")
H = TypeVar("H")


class Redistribution(Enum):
    """What the subtasks of a restored step get of what those of before had."""

    SPLIT = "split"
    """All of it, one after another, in parts of equal size; with as many subtasks as before each what it had."""
    UNION = "union"
    """Each gets all of it."""
    SAME = "same"
    """All had the same, and so do these."""


class Held(Protocol):
    """The running form of such a state, as the engine uses it."""

    version: int

    def begin(self) -> None: ...

    def undo(self) -> None: ...

    def frozen(self) -> Any: ...

    def restore(self, keys: Sequence[Key], values: Sequence[Any]) -> None: ...

    def blocks(self, frozen: Any, groups: KeyGroupRange) -> Iterator[Block]: ...

    @property
    def kind(self) -> Any: ...


class OperatorState(Declared[H], Generic[H]):
    """A state of one subtask."""

    @abstractmethod
    def schema(self) -> StateSchema:
        """Kind and types. Raises JobError for a type whose values cannot be kept."""

    def described(self) -> str:
        return state_text(self.schema())

    @property
    def redistribution(self) -> Redistribution:
        """By its kind."""
        return REDISTRIBUTIONS[self.schema().kind]

    @abstractmethod
    def open(self, name: str, step: StepName) -> H:
        """What the author uses while the step runs; a ``Held``."""


REDISTRIBUTIONS: Final = {
    SPLIT_LIST: Redistribution.SPLIT,
    UNION_LIST: Redistribution.UNION,
    BROADCAST: Redistribution.SAME,
}
"""By the kind that a schema names; others are kinds of state of keys."""


class _ListState(OperatorState[Items[T]], Generic[T]):
    """A list of the subtask."""

    _form: ClassVar[str]
    """Its kind, as a schema names it."""

    def __init__(self, kind: type[T]) -> None:
        """``kind`` is the type of the items, see ``ValueState``."""
        super().__init__()
        self.kind = kind

    def schema(self) -> StateSchema:
        return StateSchema(self._form, described(self.kind))

    def open(self, name: str, step: StepName) -> Items[T]:
        return Items(value_type(self.kind, step=step, state=name, declared=self.described()))


class SplitListState(_ListState[T], Generic[T]):
    """Declares a list of the subtask: ``waiting = SplitListState(Order)`` in the body of a ``Transform``.

    In a method, ``self.waiting`` is an ``Items`` with ``append``, ``extend``, ``get``, ``set``, ``clear``, ``len``.
    When the job is restored with another parallelism, all items are dealt out evenly, in order. They are in
    memory, and written whole with every checkpoint before which they changed.
    """

    _form = SPLIT_LIST


class UnionListState(_ListState[T], Generic[T]):
    """Declares a list like ``SplitListState``, but that at a restore every subtask gets the items of all of them.

    They come in the order of the subtasks. ``Transform.on_start`` keeps of them what it wants: what all keep, all
    get several times over at the next restore.
    """

    _form = UNION_LIST


class BroadcastState(OperatorState[BroadcastMap[K, V]], Generic[K, V]):
    """Declares a map that all subtasks have alike: ``rules = BroadcastState(str, Rule)`` in the body of a
    ``KeyedBroadcastProcess``.

    In a method, ``self.rules`` is a ``BroadcastMap`` to read, with ``get``, ``in``, ``keys``, ``values``, ``items``,
    ``len``. Only ``on_broadcast`` changes it, by ``context.writable(self.rules)``.
    """

    def __init__(self, keys: type[K], kind: type[V]) -> None:
        """Types of keys and values as of ``MapState``."""
        super().__init__()
        self.keys = keys
        self.kind = kind

    def schema(self) -> StateSchema:
        return StateSchema(BROADCAST, described(self.kind), described_map_keys(self.keys))

    def open(self, name: str, step: StepName) -> BroadcastMap[K, V]:
        of = self.described()
        values = value_type(self.kind, step=step, state=name, declared=of, as_bytes=may_be_none(self.kind))
        return BroadcastMap(map_keys(self.keys, step=step, state=name, declared=of), values)


def declared_operator_states(function: type) -> Mapping[str, OperatorState[Any]]:
    """Those of a class, see ``declared``."""
    return cast(Mapping[str, OperatorState[Any]], declared(function, OperatorState))


def described_operator_states(function: type) -> Mapping[str, str]:
    """Their descriptions, see ``described_by``."""
    return described_by(function, OperatorState)
