"""Fixtures of the contract tests: the same promises on a real Kafka and on a simulated one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contracts.cluster_rigs import Lab, open_place

EVERYWHERE = [pytest.param("kafka", marks=pytest.mark.kafka), "simulated", "slow-markers"]


@pytest.fixture(params=EVERYWHERE)
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A cluster: real, simulated, and simulated where commits reach some partitions late."""
    opened = Lab(open_place(request.param, lambda: request.getfixturevalue("kafka")))
    yield opened
    opened.close()
