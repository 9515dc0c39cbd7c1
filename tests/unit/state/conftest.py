from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from processor.contracts.state_store import KeyedState, StateBackend
from tests.unit.state.fakes import BACKENDS, Place, make_backend


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> StateBackend:
    return make_backend(request.param, tmp_path / "local")


@pytest.fixture
def place() -> Place:
    return Place()


@pytest.fixture
def open_state(backend: StateBackend, place: Place) -> Iterator[Callable[..., KeyedState]]:
    """Opens states of the backend; all are closed at the end."""
    opened: list[KeyedState] = []

    def open_(tables: dict[str, Any], restored: Any = (), **more: Any) -> KeyedState:
        opened.append(backend.open(place.request(tables, restored, **more)))
        return opened[-1]

    yield open_
    for state in opened:
        state.close()
