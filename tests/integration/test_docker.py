"""Kafka and the processor in Docker, wherever an engine is there or can be had; else a skip that says why."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from connectors.kafka import dev_broker
from connectors.kafka.dev_jars import kafka_jars
from tests.integration.docker_engine import (
    BUILD_S,
    ROOT,
    Engine,
    NoDockerError,
    base_image,
    docker_engine,
    kafka_image,
)
from tests.topics import create_topic

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(1500)]

ANSWER_S = 30.0
PRODUCT_IMAGE = "exactly-once-processor:test"


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    try:
        with docker_engine() as found:
            yield found
    except NoDockerError as reason:
        pytest.skip(f"Kafka was not run in Docker: {reason}")


def test_kafka_runs_in_docker(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kafka_jars(dev_broker.DEFAULT_VERSION)
    try:
        image = kafka_image(engine, dev_broker.DEFAULT_VERSION)
    except NoDockerError as reason:
        pytest.skip(f"Kafka was not run in Docker: {reason}")
    monkeypatch.delenv(dev_broker.BOOTSTRAP_VARIABLE, raising=False)
    monkeypatch.setenv("KAFKA_IMAGE", image)
    for name, value in engine.environment.items():
        monkeypatch.setenv(name, value)
    port = dev_broker.free_ports(1)[0]
    try:
        bootstrap = dev_broker.up(tmp_path, port=port)
        assert dev_broker.status(tmp_path).origin is dev_broker.Origin.DOCKER
        assert bootstrap == f"127.0.0.1:{port}"

        name = create_topic(bootstrap, "in-docker")
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
        producer.init_transactions(ANSWER_S)
        producer.begin_transaction()
        producer.produce(name, b"value")
        producer.commit_transaction(ANSWER_S)

        published = engine.run("docker", "ps", "--format", "{{.Ports}}", timeout_s=ANSWER_S).stdout
        assert f"127.0.0.1:{port}->9092" in published
        assert "0.0.0.0" not in published
    finally:
        dev_broker.down(tmp_path)
    assert dev_broker.status(tmp_path).origin is dev_broker.Origin.NOWHERE


def test_the_image_of_the_product_runs_as_nobody_special(engine: Engine) -> None:
    """Built from the locks without a network, so that it stands for machines that cannot reach a registry."""
    try:
        base = base_image(engine)
    except NoDockerError as reason:
        pytest.skip(f"the image was not built: {reason}")
    fill_wheelhouse(engine, base)
    built = engine.run(
        "docker",
        "build",
        "--network=none",
        "--file=docker/Dockerfile",
        f"--build-arg=BASE_IMAGE={base}",
        "--build-arg=PIP_NO_INDEX=1",
        f"--tag={PRODUCT_IMAGE}",
        ".",
        timeout_s=BUILD_S,
    )
    assert built.returncode == 0, built.stdout[-2000:] + built.stderr[-2000:]
    look = "import os, processor, connectors.kafka; print(os.getuid(), processor.__file__)"
    ran = engine.run(
        "docker",
        "run",
        "--rm",
        "--network=none",
        "--read-only",
        "--entrypoint=python3",
        PRODUCT_IMAGE,
        "-c",
        look,
        timeout_s=ANSWER_S,
    )
    assert ran.returncode == 0, ran.stderr
    user, where = ran.stdout.split()
    assert user == "10001"
    assert where.startswith("/opt/processor/")


def fill_wheelhouse(engine: Engine, base: str) -> None:
    """The wheels of the locks for the Python of the base image, checked by their hashes."""
    asked = engine.run(
        "docker",
        "run",
        "--rm",
        "--network=none",
        base,
        "python3",
        "-c",
        "import sys; print('%d.%d' % sys.version_info[:2])",
        timeout_s=ANSWER_S,
    )
    assert asked.returncode == 0, asked.stderr
    for lock in ("runtime", "build"):
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--require-hashes",
                "--only-binary=:all:",
                f"--python-version={asked.stdout.strip()}",
                f"--dest={ROOT / 'build' / 'wheelhouse'}",
                f"--requirement={ROOT / 'requirements' / f'{lock}.txt'}",
            ],
            check=True,
            stdin=subprocess.DEVNULL,
            timeout=BUILD_S,
        )
