"""Keys go to the partitions that Kafka's own clients choose, so that topics stay co-partitioned."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from connectors.kafka.dev_jars import (
    MAVEN_TIMEOUT_S,
    MissingToolError,
    find_java,
    kafka_jars,
    project_root,
)
from tests.contracts.kafka_rig import Rig, block, marker, read_committed
from tests.topics import TopicFactory

pytestmark = pytest.mark.kafka

PARTITIONS = 7
CONSOLE_TIMEOUT_S = 90
CLIENT_VERSION = "4.4.0"
"""Of Kafka's own producer, whatever version the broker has."""

KEYS = [
    *(f"user-{n}" for n in range(200)),
    "a",
    "ab",
    "abc",
    "abcd",
    "ключ",
    "鍵",
    "x" * 300,
]


def murmur2(data: bytes) -> int:
    """MurmurHash2 with the seed that Kafka uses, from its description: the answer the test expects."""
    mask, mixer = 0xFFFFFFFF, 0x5BD1E995
    mixed = (0x9747B28C ^ len(data)) & mask
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * mixer & mask
        word = (word ^ word >> 24) * mixer & mask
        mixed = (mixed * mixer & mask) ^ word
    tail = data[whole:]
    if tail:
        mixed = (mixed ^ int.from_bytes(tail, "little")) * mixer & mask
    mixed = (mixed ^ mixed >> 13) * mixer & mask
    return mixed ^ mixed >> 15


def expected_partition(key: bytes) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % PARTITIONS


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_expected_answer_knows_kafkas_published_vectors(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed & 0xFFFFFFFF


def partitions_of(kafka: str, topic: str) -> dict[bytes, set[int]]:
    found: dict[bytes, set[int]] = {}
    for record in read_committed(kafka, topic, PARTITIONS):
        found.setdefault(record.key(), set()).add(record.partition())
    return found


def published(kafka: str, out: str) -> dict[bytes, set[int]]:
    publisher = Rig(kafka).publisher(out)
    publisher.take_over()
    keys = [key.encode() for key in KEYS]
    publisher.send(marker(1, len(keys)), [block(out, [b"v"] * len(keys), keys=keys)])
    assert publisher.wait_visible(20_000)
    publisher.close()
    return partitions_of(kafka, out)


def test_a_key_goes_where_murmur2_says(kafka: str, topic: TopicFactory) -> None:
    ours = published(kafka, topic("ours", partitions=PARTITIONS))
    assert ours == {key.encode(): {expected_partition(key.encode())} for key in KEYS}


def test_rows_without_key_are_spread(kafka: str, topic: TopicFactory) -> None:
    out = topic("spread", partitions=PARTITIONS)
    rig = Rig(kafka)
    publisher = rig.publisher(out)
    for checkpoint in range(1, 31):
        publisher.take_over()
        publisher.send(marker(checkpoint, 1), [block(out, [b"v"])])
    assert publisher.wait_visible(20_000)
    publisher.close()
    assert len({record.partition() for record in read_committed(kafka, out, PARTITIONS)}) > 1


def kafka_tools() -> Path:
    """The folder of Kafka's command line tools, which a broker does without; copied by Maven once."""
    folder = project_root() / "build" / f"kafka-tools-{CLIENT_VERSION}"
    if not list(folder.glob("kafka-tools-*.jar")):
        maven = shutil.which("mvn")
        if maven is None:
            raise MissingToolError("mvn is not on PATH")
        done = subprocess.run(
            [
                maven,
                "--quiet",
                "--batch-mode",
                "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy",
                f"-Dartifact=org.apache.kafka:kafka-tools:{CLIENT_VERSION}",
                f"-DoutputDirectory={folder}",
            ],
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=MAVEN_TIMEOUT_S,
        )
        if done.returncode != 0:
            raise MissingToolError(f"Maven could not bring kafka-tools: {done.stdout.decode()[-500:]}")
    return folder


@pytest.mark.slow
def test_kafkas_own_producer_chooses_the_same_partitions(kafka: str, topic: TopicFactory) -> None:
    try:
        java, jars, tools = find_java(), kafka_jars(CLIENT_VERSION), kafka_tools()
    except MissingToolError as missing:
        pytest.skip(f"Kafka's own producer cannot be run here: {missing}")
    theirs = topic("theirs", partitions=PARTITIONS)
    arguments = ["--bootstrap-server", kafka, "--topic", theirs]
    for name, value in (("parse.key", "true"), ("key.separator", "\t")):
        arguments += ["--reader-property", f"{name}={value}"]
    done = subprocess.run(
        [java, "-cp", f"{jars}/*:{tools}/*", "org.apache.kafka.tools.ConsoleProducer", *arguments],
        input="".join(f"{key}\tv\n" for key in KEYS).encode(),
        capture_output=True,
        check=False,
        timeout=CONSOLE_TIMEOUT_S,
        env={"LC_ALL": "C.UTF-8"},
    )
    assert done.returncode == 0, done.stderr.decode()
    assert partitions_of(kafka, theirs) == published(kafka, topic("ours", partitions=PARTITIONS))
