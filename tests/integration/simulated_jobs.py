"""The jobs of the simulation that make sense on a real broker, each with what its output must be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from types import MappingProxyType
from typing import Final

from connectors.formats.text import Text
from connectors.kafka.sink import KafkaSink
from processor.simulation.case import Case
from tests.simulation.jobs import JOBS, written_twice
from tests.simulation.matrix import every_state

WITHOUT_KAFKA: Final = frozenset({"table-copy"})


def two_topics(chance: Random) -> Case:
    """One stream into two topics: there is no real table yet."""
    return written_twice(chance, KafkaSink("rows", Text()))


REAL: Final[Mapping[str, Callable[[Random], Case]]] = MappingProxyType(
    {
        **{name: build for name, build in JOBS.items() if name not in WITHOUT_KAFKA},
        "every-state": every_state,
        "two-sinks": two_topics,
    }
)


def case_of(name: str, seed: int) -> Case:
    """The same for everybody who names it by the same seed."""
    return REAL[name](Random(f"{seed}/case"))
