"""Importing the connector is cheap: the client library loads when a cluster is opened."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "statement",
    [
        "from connectors.kafka.plugin import plugin; plugin.settings_model()",
        "import connectors.kafka; connectors.kafka.KafkaSource; connectors.kafka.KafkaSink",
    ],
)
def test_the_client_library_is_not_loaded_before_it_is_used(statement: str) -> None:
    code = (
        f"import sys; {statement}; sys.exit(any(name.startswith('confluent_kafka') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_an_unknown_name_is_an_attribute_error() -> None:
    import connectors.kafka

    with pytest.raises(AttributeError, match="KafkaTable"):
        connectors.kafka.KafkaTable  # noqa: B018
    assert set(connectors.kafka.__all__) <= set(dir(connectors.kafka))
