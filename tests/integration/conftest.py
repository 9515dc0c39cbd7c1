"""Fixtures of the integration tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contracts.kafka_proxy import proxied_broker
from tests.integration.disturbed import Proxied


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    """A broker of the module's tests, and a proxy before it."""
    with proxied_broker(tmp_path_factory.mktemp("proxied") / "broker") as (broker, proxy):
        yield broker.bootstrap, proxy
