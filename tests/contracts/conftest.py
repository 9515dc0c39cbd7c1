"""Fixtures of the contract tests: the same promises on a real Kafka and on a simulated one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from tests.contracts.cluster_rigs import Lab, open_place, place_of
from tests.topics import TopicFactory

EVERYWHERE = [pytest.param("kafka", marks=pytest.mark.kafka), "simulated", "slow-markers"]
"""A real Kafka, a simulated one, and one where commits reach some partitions late."""


@pytest.fixture(params=EVERYWHERE)
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """For tests of the seam itself."""
    opened = Lab(open_place(request.param, lambda: request.getfixturevalue("kafka")))
    yield opened
    opened.close()


@pytest.fixture(params=EVERYWHERE)
def place(request: pytest.FixtureRequest) -> str:
    """Bootstrap servers, as the fixture `kafka`, of a real Kafka or of a simulated one: for tests of what stands
    above the seam."""
    return open_place(request.param, lambda: request.getfixturevalue("kafka")).bootstrap


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> TopicFactory:
    """Makes topics on the Kafka that the test asks for, by `place` or by `kafka`."""
    bootstrap = request.getfixturevalue("place" if "place" in request.fixturenames else "kafka")

    def make(name: str = "topic", *, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        return place_of(bootstrap).topic(name, partitions=partitions, config=config)

    return make
