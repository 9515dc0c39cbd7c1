"""What an author writes for a keyed ``process``: a class with states, side outputs and a few methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, Generic, TypeVar

from processor.errors import JobError
from processor.operators.broadcast_context import BroadcastContext
from processor.operators.context import Context
from processor.records.batch import Key

K = TypeVar("K", bound=Key)
V = TypeVar("V")
R = TypeVar("R")
W = TypeVar("W")
T = TypeVar("T")
F = TypeVar("F", bound="StepFunction")


class SideOutput(Generic[T]):
    """Declares a second output: ``alerts = SideOutput(Alert)`` in the body of a class.

    In a method, ``self.alerts.emit(...)`` sends a value there, with key and timestamp of the record or timer
    at hand. The job reads it with ``watched.side(Watch.alerts)``; what nobody reads goes nowhere.
    """

    def __init__(self, kind: type[T]) -> None:
        self.kind = kind

    def emit(self, value: T) -> None:
        # The engine puts the running output into the instance, which Python finds first.
        raise JobError(
            "a side output was used outside of a running job.",
            remedy="Emit only inside the methods that the engine calls, such as on_record and on_timer.",
        )


class StepFunction:
    """What all classes that an author derives from have in common: one instance serves one subtask."""


class KeyedFunction(StepFunction, Generic[K, W]):
    """What the classes for streams with keys have in common.

    One instance serves all keys of a subtask; what belongs to a key is kept in ``ValueState`` and its like. Other
    attributes are not part of checkpoints. Under ``on_error=Skip()`` a record or timer for which a method
    raises leaves no trace: its state changes, timers and emitted values are taken back. Changes the method
    made to other attributes, or to the outside world, are not.
    """

    _record_methods: ClassVar[tuple[str, ...]]
    """Of each input, in order, the method that takes its records."""

    def on_timer(self, time_ms: int, /, context: Context[K, W]) -> None:
        """Called for every timer of ``context.timers`` that is due, in order of (time, key)."""
        raise NotImplementedError(f"{type(self).__name__} sets timers and has no on_timer")

    def on_completed(self, checkpoint: int, /) -> None:
        """A checkpoint that this subtask took part in is decided, and all of its output is out.

        News, once at most: after a crash it may be missing, and that of a later checkpoint tells as much. There
        is no key at hand, so state cannot be used and nothing emitted. Likewise ``on_aborted``.
        """

    def on_aborted(self, checkpoint: int, /) -> None:
        """A checkpoint was given up: what was meant for it goes along with the next."""


class KeyedProcess(KeyedFunction[K, W], Generic[K, V, W]):
    """A function with state, for a stream with keys K and values V, that emits values W."""

    _record_methods = ("on_record",)

    def on_record(self, value: V, /, context: Context[K, W]) -> None:
        """Called for every record, in the order of the stream."""
        raise NotImplementedError(f"{type(self).__name__} has no on_record")


class KeyedCoProcess(KeyedFunction[K, W], Generic[K, V, R, W]):
    """A function of two streams with keys K, one of values V and one of values R, that emits values W.

    What is known of a key is shared: state that one stream's records set is there for those of the other, and
    a timer is the key's, whoever set it. Records of one key meet in one subtask, those of each stream in
    order; which of two records of different streams comes first is not promised.
    """

    _record_methods = ("on_left", "on_right")

    def on_left(self, value: V, /, context: Context[K, W]) -> None:
        """Called for every record of the stream that ``connect`` was called on."""
        raise NotImplementedError(f"{type(self).__name__} has no on_left")

    def on_right(self, value: R, /, context: Context[K, W]) -> None:
        """Called for every record of the stream that was given to ``connect``."""
        raise NotImplementedError(f"{type(self).__name__} has no on_right")


class KeyedBroadcastProcess(KeyedFunction[K, W], Generic[K, V, R, W]):
    """A function of a stream with keys K and values V, and of one of values R that reaches every subtask; it emits
    values W.

    What it keeps of R is in ``BroadcastState``, which every subtask has alike; all methods read it.
    Which of two records of different streams comes first is not promised, and may differ between subtasks.
    """

    _record_methods = ("on_record",)

    def on_record(self, value: V, /, context: Context[K, W]) -> None:
        """Called for every record of the stream with keys, in the order of the stream."""
        raise NotImplementedError(f"{type(self).__name__} has no on_record")

    def on_broadcast(self, value: R, /, context: BroadcastContext) -> None:
        """Called in every subtask for every record of the stream that is broadcast, in the same order in all. There
        is no key at hand. It must do the same everywhere: go by the record and the broadcast state alone."""
        raise NotImplementedError(f"{type(self).__name__} has no on_broadcast")


_TAKEN: Final = "_processor_taken"
"""Attribute of an instance that a subtask has made its own."""


def made(make: Callable[[], Any], base: type[F]) -> F:
    """A new instance of an author's class, for one subtask. Raises JobError for another class, or one that is not
    new."""
    function = make()
    if not isinstance(function, base):
        raise JobError(
            f"the factory returned a {type(function).__qualname__}, which is no {base.__name__}.",
            remedy=f"Return a new instance of a class derived from {base.__name__}.",
        )
    if vars(function).get(_TAKEN):
        raise JobError(
            f"the factory returned the same {type(function).__qualname__} twice; every subtask needs its own.",
            remedy="Make a new instance at every call.",
        )
    vars(function)[_TAKEN] = True
    return function


def record_methods(function: KeyedFunction[Any, Any]) -> tuple[tuple[str, Callable[..., None]], ...]:
    """For each input the name of the method that takes its records, and the method."""
    names = function._record_methods
    return tuple((name, getattr(function, name)) for name in names)


def declared_sides(function: type) -> Mapping[str, SideOutput[Any]]:
    """Side outputs of a class by attribute name, those of its bases first."""
    found: dict[str, SideOutput[Any]] = {}
    for cls in reversed(function.__mro__):
        for name, attribute in vars(cls).items():
            if isinstance(attribute, SideOutput):
                found[name] = attribute
    return found
