"""How many kills a run of all tests may make: continuous integration makes few, each where nothing else looks.

A test says by its mark how often it kills or stops a process of a job, or a broker below one: `kill(3)`, `kill` for
once. `KILLS=all` in the environment runs everything that such tests know; `make kill-tests` does.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    import pytest

KILLS_MAX: Final = 60
"""Of all tests together, where nothing else is asked for."""

ALL: Final = os.environ.get("KILLS") == "all"

T = TypeVar("T")


def budgeted(few: T, everything: T) -> T:
    """What is run: ``few`` of it, or everything that there is."""
    return everything if ALL else few


def kills_of(test: pytest.Item) -> int:
    """By its nearest mark; 0 for a test that has none."""
    mark = test.get_closest_marker("kill")
    if mark is None:
        return 0
    kills: int = mark.args[0] if mark.args else 1
    return kills


def told(tests: Sequence[pytest.Item]) -> str:
    """One line for each test that kills, most kills first."""
    counted = sorted(((kills_of(test), test.nodeid) for test in tests), reverse=True)
    return "\n".join(f"{kills:4}  {name}" for kills, name in counted if kills)
