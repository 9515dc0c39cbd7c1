"""Passwords on a real listener with SASL: the right one works, the wrong one is refused in bounded time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connectors.kafka import KafkaSink, UntilEnd
from connectors.kafka.dev_broker import free_ports, start_broker
from connectors.kafka.settings import KafkaSettings
from processor.errors import ExternalRefusal, Unavailable
from tests.contracts.kafka_rig import Bytes, Reading, Rig, block, marker, numbers
from tests.topics import create_topic

pytestmark = pytest.mark.kafka

PASSWORD = "canary-4711"
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A broker with a plain listener and one that asks for a password: (plain, guarded) addresses."""
    plain, controller, sasl = free_ports(3)
    broker = start_broker(
        tmp_path_factory.mktemp("guarded") / "broker",
        port=plain,
        properties={
            "listeners": f"CLIENT://127.0.0.1:{plain},CONTROLLER://127.0.0.1:{controller},"
            f"GUARDED://127.0.0.1:{sasl}",
            "advertised.listeners": f"CLIENT://127.0.0.1:{plain},GUARDED://127.0.0.1:{sasl}",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT,GUARDED:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.guarded.plain.sasl.jaas.config": f'{JAAS} user_worker="{PASSWORD}";',
        },
    )
    yield broker.bootstrap, f"127.0.0.1:{sasl}"
    broker.stop()


def secured(password: str) -> dict[str, Any]:
    return {
        "request_timeout": "3s",
        "security": {
            "protocol": "sasl_plaintext",
            "sasl_mechanism": "PLAIN",
            "username": "worker",
            "password": password,
        },
    }


def test_rows_go_out_and_come_back_with_a_password(guarded: tuple[str, str], tmp_path: Path) -> None:
    plain, address = guarded
    name = create_topic(plain, "out")
    rig = Rig(address, **secured(PASSWORD))
    publisher = rig.publisher(name)
    publisher.take_over()
    publisher.send(marker(1, 1), [block(name, [b"7"])])
    assert publisher.take_over() == marker(1, 1)
    publisher.close()
    reading = Reading(rig, numbers(name, until=UntilEnd())).to_end()
    assert reading.values() == [7]
    reading.close()


def test_a_wrong_password_is_refused_and_not_told(guarded: tuple[str, str]) -> None:
    plain, address = guarded
    name = create_topic(plain, "out")
    rig = Rig(address, **secured("wrong-" + PASSWORD))
    with pytest.raises((ExternalRefusal, Unavailable)) as refused:
        KafkaSink(name, Bytes()).check(rig.sink_context())
    assert PASSWORD not in str(refused.value)
    assert "uthentication" in str(refused.value), "it says why"


def test_no_secret_is_in_the_settings_text(guarded: tuple[str, str]) -> None:
    settings = KafkaSettings.model_validate({"main": {"bootstrap_servers": guarded[1], **secured(PASSWORD)}})
    assert PASSWORD not in f"{settings!r} {settings} {settings.model_dump_json()}"
