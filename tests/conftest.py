"""Fixtures that any test may ask for: a real Kafka, one to break, and topics."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from connectors.kafka import dev_broker
from tests.topics import TopicFactory, create_topic

if TYPE_CHECKING:
    from tests.s3_server import S3Server
    from tests.store_servers import AzureServer, HdfsServer, KerberisedHdfsServer

# Nothing is timed: beside other work any example may be slow. Examples share a test's fixtures knowingly.
settings.register_profile(
    "untimed",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Bootstrap servers of a Kafka that all tests of the run share: leave it as you found it.

    The one of KAFKA_BOOTSTRAP_SERVERS if that is set, else one started for this run and stopped with it.
    The developer's own broker (`make kafka-up`) is not used: tests fill it, and two runs would meet in it.
    """
    outside = os.environ.get(dev_broker.BOOTSTRAP_VARIABLE)
    if outside:
        yield dev_broker.up()
        return
    directory = tmp_path_factory.mktemp("kafka")
    yield dev_broker.up(directory, port=dev_broker.free_ports(1)[0])
    dev_broker.down(directory)


@pytest.fixture
def private_kafka(tmp_path: Path) -> Iterator[dev_broker.BrokerProcess]:
    """A broker of this test alone, from Kafka's jars: to be killed, paused and restarted at will.

    Whatever runs in its folder at the end, a restarted broker too, is killed.
    """
    directory = tmp_path / "broker"
    yield dev_broker.start_broker(directory)
    last = dev_broker.BrokerProcess.attached(directory)
    if last is not None:
        last.kill()


@pytest.fixture
def private_cluster(tmp_path: Path) -> Iterator[dev_broker.Cluster]:
    """Three brokers of this test alone; three replicas, two of them in sync."""
    directory = tmp_path / "cluster"
    yield dev_broker.start_cluster(directory, brokers=3)
    for folder in sorted(directory.iterdir()):
        last = dev_broker.BrokerProcess.attached(folder)
        if last is not None:
            last.kill()


@pytest.fixture
def topic(kafka: str) -> TopicFactory:
    """Makes topics on the shared Kafka: `topic("clicks", partitions=4)` returns the name of a new one."""

    def make(name: str = "topic", *, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        return create_topic(kafka, name, partitions=partitions, config=config)

    return make


@pytest.fixture(scope="session")
def shared_s3() -> Iterator[S3Server]:
    from tests.s3_server import S3Server  # imported when it is asked for: it is large

    server = S3Server()
    yield server
    server.close()


@pytest.fixture
def s3(shared_s3: S3Server) -> Iterator[S3Server]:
    """An S3 server of this process, for buckets of one's own."""
    shared_s3.behave()
    yield shared_s3
    shared_s3.behave()


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    """HDFS, for folders of one's own; the test is skipped where it was not brought."""
    from tests.store_servers import hdfs_server

    with hdfs_server(tmp_path_factory.mktemp("hdfs")) as server:
        yield server


@pytest.fixture(scope="session")
def kerberised_hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KerberisedHdfsServer]:
    """HDFS that asks for Kerberos; likewise."""
    from tests.store_servers import kerberised_hdfs_server

    with kerberised_hdfs_server(tmp_path_factory.mktemp("kerberised")) as server:
        yield server


@pytest.fixture(scope="session")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureServer]:
    """An emulator of Azure's blobs, for containers of one's own; likewise."""
    from tests.store_servers import azure_server

    with azure_server(tmp_path_factory.mktemp("azure")) as server:
        yield server
