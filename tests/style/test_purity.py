"""The protocol decides without clock, chance, thread or I/O; one place imports Kafka's clients."""

from __future__ import annotations

import ast

from tests.style.sources import PRODUCT, imports, python_files

WORLD = {
    "asyncio",
    "concurrent",
    "datetime",
    "http",
    "io",
    "logging",
    "multiprocessing",
    "os",
    "pathlib",
    "queue",
    "random",
    "secrets",
    "select",
    "signal",
    "socket",
    "structlog",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "uuid",
}
KAFKA_CLIENTS = {
    "AIOConsumer",
    "AIOProducer",
    "AdminClient",
    "Consumer",
    "DeserializingConsumer",
    "Producer",
    "SerializingProducer",
}
# All else is written against the narrow protocol of connectors/kafka/cluster, and so runs in the simulation.
KAFKA_CLIENT_PLACES = {
    "connectors/kafka/client.py": "the real cluster: topics, offsets, and its parts put together",
    "connectors/kafka/client_groups.py": "the real cluster: committed offsets of groups",
    "connectors/kafka/client_producer.py": "the real cluster: transactions and sends",
    "connectors/kafka/client_reader.py": "the real cluster: reading partitions",
    "connectors/kafka/dev_server.py": "asks a broker for development for its metadata, imported when it does",
}


def test_the_protocol_touches_nothing_outside() -> None:
    sources = python_files("processor/protocol")
    assert sources, "processor/protocol is not there"
    found = [
        f"{source.name}:{statement.lineno} imports {name}"
        for source in sources
        for name, statement in imports(source.tree)
        if name.split(".")[0] in WORLD
    ]
    found += [
        f"{source.name}:{node.lineno} calls {node.func.id}"
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"open", "print", "input"}
    ]
    assert not found, found


def test_kafkas_clients_are_imported_only_by_the_real_cluster() -> None:
    found = []
    for source in python_files(*PRODUCT):
        if source.name in KAFKA_CLIENT_PLACES:
            continue
        for name, statement in imports(source.tree):
            package, *rest = name.split(".")
            # `import confluent_kafka` would reach them all by attribute.
            if package == "confluent_kafka" and (
                not rest or rest[-1] in KAFKA_CLIENTS | {"*", "admin", "aio"}
            ):
                found.append(f"{source.name}:{statement.lineno} imports {name}")
    assert not found, found


def test_the_places_of_kafkas_clients_are_there() -> None:
    """An entry of the allow-list that fits nothing would quietly allow a new file of that name."""
    names = {source.name for source in python_files(*PRODUCT)}
    assert set(KAFKA_CLIENT_PLACES) <= names
