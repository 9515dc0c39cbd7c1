"""The developer's broker is a real Kafka: what it acknowledged outlives SIGKILL, and up is idempotent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from connectors.kafka import dev_broker
from connectors.kafka.dev_process import ProcessIdentity
from tests.topics import TopicFactory, create_topic
from tests.waiting import wait_until

pytestmark = [pytest.mark.kafka]

ANSWER_S = 30.0


def produce(bootstrap: str, topic: str, values: list[bytes], **settings: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, **settings})
    if "transactional.id" in settings:
        producer.init_transactions(ANSWER_S)
        producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(ANSWER_S) == 0
    if "transactional.id" in settings:
        producer.commit_transaction(ANSWER_S)


def read_all(bootstrap: str, topic: str) -> list[bytes]:
    """Everything committed in partition 0, up to its end."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
        }
    )
    values: list[bytes] = []

    def at_end() -> bool:
        message = consumer.poll(0.1)
        if message is None:
            return False
        error = message.error()
        if error is None:
            value = message.value()
            assert isinstance(value, bytes)
            values.append(value)
            return False
        assert error.code() == KafkaError._PARTITION_EOF, error
        return True

    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        wait_until(at_end, ANSWER_S, f"the end of {topic} is read")
    finally:
        consumer.close()
    return values


def test_what_is_produced_is_read(kafka: str, topic: TopicFactory) -> None:
    name = topic("round-trip")
    produce(kafka, name, [b"one", b"two"])
    assert read_all(kafka, name) == [b"one", b"two"]


def test_a_transaction_is_read_once_committed(kafka: str, topic: TopicFactory) -> None:
    name = topic("transaction")
    produce(kafka, name, [b"all", b"or nothing"], **{"transactional.id": name})
    assert read_all(kafka, name) == [b"all", b"or nothing"]


def test_a_topic_has_the_partitions_and_settings_asked_for(kafka: str, topic: TopicFactory) -> None:
    name = topic("wide", partitions=3, config={"cleanup.policy": "compact"})
    with_consumer = Consumer({"bootstrap.servers": kafka, "group.id": "looker"})
    try:
        assert len(with_consumer.list_topics(name, timeout=ANSWER_S).topics[name].partitions) == 3
    finally:
        with_consumer.close()


def test_a_topic_that_nobody_made_stays_unmade(kafka: str) -> None:
    """A misspelt topic is an error, not a new and empty topic."""
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": "looker"})
    try:
        found = consumer.list_topics("never-made", timeout=ANSWER_S).topics["never-made"]
        assert found.error is not None
        assert found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    finally:
        consumer.close()


def test_a_killed_broker_keeps_what_it_acknowledged(private_kafka: dev_broker.BrokerProcess) -> None:
    name = create_topic(private_kafka.bootstrap, "kept")
    produce(private_kafka.bootstrap, name, [b"before"], acks="all")

    private_kafka.kill()
    assert not private_kafka.is_running()
    assert dev_broker.brokers_answering(private_kafka.bootstrap, 0.5) == 0

    again = private_kafka.restart()
    assert again.bootstrap == private_kafka.bootstrap
    assert again.pid != private_kafka.pid
    produce(again.bootstrap, name, [b"after"])
    assert read_all(again.bootstrap, name) == [b"before", b"after"]


def test_a_paused_broker_is_silent_until_resumed(private_kafka: dev_broker.BrokerProcess) -> None:
    private_kafka.pause()
    assert private_kafka.is_running()
    assert dev_broker.brokers_answering(private_kafka.bootstrap, 0.5) == 0

    private_kafka.resume()
    wait_until(
        lambda: dev_broker.brokers_answering(private_kafka.bootstrap) == 1,
        ANSWER_S,
        "the broker answers",
    )


@pytest.mark.slow
def test_a_cluster_goes_on_without_one_of_its_brokers(private_cluster: dev_broker.Cluster) -> None:
    name = create_topic(private_cluster.bootstrap, "replicated", replicas=3)
    produce(private_cluster.bootstrap, name, [b"three alive"], acks="all")

    private_cluster.brokers[0].kill()
    produce(private_cluster.bootstrap, name, [b"two alive"], acks="all")

    whole = private_cluster.with_restarted(0)
    produce(whole.bootstrap, name, [b"three again"], acks="all")
    assert read_all(whole.bootstrap, name) == [b"three alive", b"two alive", b"three again"]


def test_up_twice_is_one_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(dev_broker.BOOTSTRAP_VARIABLE, raising=False)
    port = dev_broker.free_ports(1)[0]
    try:
        first = dev_broker.up(tmp_path, port=port)
        assert dev_broker.up(tmp_path) == first == f"127.0.0.1:{port}"
        now = dev_broker.status(tmp_path)
        assert now.answers
        assert now.bootstrap == first
    finally:
        dev_broker.down(tmp_path)
    assert dev_broker.status(tmp_path).origin is dev_broker.Origin.NOWHERE
    dev_broker.down(tmp_path)  # nothing there: nothing to do


def test_when_docker_cannot_bring_the_image_the_jars_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A Docker daemon that reaches no image registry is common, and no reason to have no Kafka."""
    programs = tmp_path / "bin"
    programs.mkdir()
    docker = programs / "docker"
    docker.write_text('#!/bin/sh\ncase "$*" in *" up "*) echo no such image >&2; exit 1 ;; esac\n')
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv(dev_broker.BOOTSTRAP_VARIABLE, raising=False)
    directory = tmp_path / "kafka"
    try:
        dev_broker.up(directory, port=dev_broker.free_ports(1)[0])
        assert dev_broker.status(directory).origin is dev_broker.Origin.JARS
        assert "no such image" in capfd.readouterr().err
    finally:
        dev_broker.down(directory)


def test_a_record_of_docker_without_its_daemon_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Docker was stopped, and its containers with it: `down` must not need it back."""
    monkeypatch.delenv(dev_broker.BOOTSTRAP_VARIABLE, raising=False)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    nobody = f"127.0.0.1:{dev_broker.free_ports(1)[0]}"
    (tmp_path / "docker.json").write_text(json.dumps({"bootstrap": nobody}))
    now = dev_broker.status(tmp_path)
    assert (now.origin, now.answers) == (dev_broker.Origin.DOCKER, False)
    dev_broker.down(tmp_path)
    assert dev_broker.status(tmp_path).origin is dev_broker.Origin.NOWHERE


def test_the_environments_kafka_is_used_and_left_alone(kafka: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(dev_broker.BOOTSTRAP_VARIABLE, kafka)
    assert dev_broker.up() == kafka
    assert dev_broker.status().origin is dev_broker.Origin.ENVIRONMENT


def test_an_environments_kafka_that_is_silent_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = f"127.0.0.1:{dev_broker.free_ports(1)[0]}"
    monkeypatch.setenv(dev_broker.BOOTSTRAP_VARIABLE, nobody)
    monkeypatch.setattr(dev_broker, "OUTSIDE_TIMEOUT_S", 0.5)
    with pytest.raises(dev_broker.BrokerStartError, match=nobody):
        dev_broker.up()


def test_a_recycled_pid_is_not_killed() -> None:
    """The pid file of a broker that is gone may name a stranger: here, this very test's process."""
    stranger = ProcessIdentity(pid=os.getpid(), started="some other time")
    assert not stranger.is_running()
    assert not stranger.signal(signal.SIGKILL)
    stranger.kill()
    stranger.stop(0.0)


def test_a_broker_that_does_not_come_up_shows_its_log(tmp_path: Path) -> None:
    with pytest.raises(dev_broker.BrokerStartError, match="num\\.io\\.threads"):
        dev_broker.start_broker(tmp_path, properties={"num.io.threads": "many"})


def test_a_version_is_a_version(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no Kafka version"):
        dev_broker.start_broker(tmp_path, version="../../elsewhere")


def test_as_a_program_it_explains_itself() -> None:
    asked = subprocess.run(
        [sys.executable, "-m", "connectors.kafka.dev_broker", "sideways"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.returncode == 2
    assert "up [VERSION]|down|status|jars [VERSION]" in asked.stderr
