"""What can be known of types before anything runs; what cannot is never refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, Any, Literal, NewType, Protocol, TypedDict, TypeVar

import pytest

from processor.operators.process_function import KeyedCoProcess, KeyedProcess
from processor.operators.types import (
    accepts,
    function_types,
    item_type,
    parameter_type,
    return_type,
    same,
    show,
    single_class,
)

T = TypeVar("T")


class Animal: ...


class Dog(Animal): ...


class Named(Protocol):
    name: str


class Row(TypedDict):
    x: int


UserId = NewType("UserId", str)


def function(animal: Animal, times: int) -> Dog:
    return Dog()


def anything(animal, times: Any) -> Any: ...


class Called:
    def __call__(self, animal: Animal) -> Dog:
        return Dog()

    def method(self, animal: Animal) -> Dog:
        return Dog()


def unresolvable(animal: NoSuchName) -> NoSuchName: ...  # type: ignore[name-defined]  # noqa: F821


def test_what_a_function_says():
    assert return_type(function) is Dog
    assert (parameter_type(function), parameter_type(function, 1), parameter_type(function, 2)) == (
        Animal,
        int,
        None,
    )
    assert return_type(partial(function, Dog())) is Dog
    assert parameter_type(partial(function, Dog())) is int
    assert (return_type(Called()), parameter_type(Called())) == (Dog, Animal)
    assert (return_type(Called().method), parameter_type(Called().method)) == (Dog, Animal)
    assert return_type(Dog) is Dog


@pytest.mark.parametrize("unsaid", [anything, lambda v: v, str.upper, unresolvable, print, int])
def test_what_nobody_says_is_not_known(unsaid):
    assert parameter_type(unsaid) is None
    assert unsaid is int or return_type(unsaid) is None


def test_items_of_what_a_function_returns():
    assert item_type(list[int]) is int
    assert item_type(Iterator[str]) is str
    assert item_type(tuple[int, ...]) is int
    assert item_type(str) is str
    assert item_type(tuple[int, str]) is None
    assert item_type(list) is None
    assert item_type(int) is None
    assert item_type(None) is None


class Straight(KeyedProcess[str, Dog, int]): ...


class Below(Straight): ...


class Generics(KeyedProcess[str, T, list[T]]): ...


class Filled(Generics[Dog]): ...


class Two(KeyedCoProcess[str, Dog, Animal, int]): ...


class TwoBelow(Two): ...


def test_types_of_a_keyed_function_also_through_its_bases():
    assert function_types(Straight, KeyedProcess) == (str, Dog, int)
    assert function_types(Below, KeyedProcess) == (str, Dog, int)
    assert function_types(Filled, KeyedProcess)[:2] == (str, Dog)
    assert function_types(Generics, KeyedProcess)[:2] == (str, None)
    assert function_types(KeyedProcess, KeyedProcess) == (None, None, None)
    assert function_types(TwoBelow, KeyedCoProcess) == (str, Dog, Animal, int)
    assert function_types(KeyedCoProcess, KeyedCoProcess) == (None,) * 4


def test_two_types_are_the_same_unless_one_takes_more():
    assert same(int, int)
    assert same(int, None)
    assert same(tuple[str, int], tuple[str, int])
    assert not same(int, bool)
    assert not same(bool, int)
    assert not same(tuple[str, int], tuple[str, bool])
    assert not same(str, bytes)


def test_a_type_has_a_single_class_or_none():
    assert single_class(int) is int
    assert single_class(tuple[str, int]) is tuple
    assert single_class(UserId) is str
    assert single_class(int | str) is None
    assert single_class(Any) is None
    assert single_class(None) is None


@pytest.mark.parametrize(
    ("wanted", "given"),
    [
        (Animal, Dog),
        (Dog, None),
        (None, Dog),
        (Any, Dog),
        (object, Dog),
        (int | str, str),
        (int | None, int),
        (float, int),
        (list[int], list[int]),
        (list, list[int]),
        (list[int], list),
        (Mapping[str, int], dict[str, int]),
        (Named, Dog),
        (Row, dict[str, int]),
        (UserId, str),
        (str, UserId),
        (Annotated[int, "meters"], int),
        (str, Literal["a", "b"]),
        (T, Dog),
        (int, bool),
    ],
)
def test_what_may_be_right_is_let_be(wanted, given):
    assert accepts(wanted, given)


@pytest.mark.parametrize(
    ("wanted", "given"),
    [
        (Dog, Animal),
        (int, str),
        (int, int | None),
        (int | str, bytes),
        (list[int], list[str]),
        (str, int),
        (int, float),
        (UserId, int),
        (int, Literal["a"]),
        (Annotated[int, "meters"], str),
        (dict[str, Dog], dict[str, Animal]),
    ],
)
def test_what_is_certainly_wrong_is_not(wanted, given):
    assert not accepts(wanted, given)


def test_types_are_shown_as_authors_write_them():
    assert show(Dog) == "Dog"
    assert show(None) == "unknown"
    assert show(type(None)) == "None"
    assert show(list[int | None]) == "list[int | None]"
    assert show(tuple[int, ...]) == "tuple[int, ...]"
    assert show(dict[str, Any]) == "dict[str, Any]"
