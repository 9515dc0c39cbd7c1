"""Which properties of the client library may be set from where.

Some librdkafka properties run code or read files (``plugin.library.paths`` loads any library,
``sasl.kerberos.kinit.cmd`` is a shell command). Settings pass an allow-list of plain tuning; anything else
comes only from a file of the operator. What exactly-once rests on can be set by nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from processor.errors import SettingsError

PROPERTIES_FILE_BYTES_MAX: Final = 1_048_576

ALLOWED: Final = frozenset(
    {
        "broker.address.family",
        "broker.address.ttl",
        "client.dns.lookup",
        "client.rack",
        "compression.level",
        "connections.max.idle.ms",
        "debug",
        "enable.metrics.push",
        "fetch.error.backoff.ms",
        "fetch.max.bytes",
        "fetch.message.max.bytes",
        "fetch.min.bytes",
        "fetch.wait.max.ms",
        "max.in.flight.requests.per.connection",
        "metadata.max.age.ms",
        "queue.buffering.max.kbytes",
        "queue.buffering.max.messages",
        "receive.message.max.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "socket.connection.setup.timeout.ms",
        "socket.keepalive.enable",
        "socket.nagle.disable",
        "socket.receive.buffer.bytes",
        "socket.send.buffer.bytes",
        "sticky.partitioning.linger.ms",
        "topic.metadata.propagation.max.ms",
        "topic.metadata.refresh.interval.ms",
    }
)
"""Tuning without side effects; may be set in the settings' ``properties``."""

OURS: Final = frozenset(
    {
        "acks",
        "allow.auto.create.topics",
        "auto.commit.enable",
        "auto.offset.reset",
        "delivery.report.only.error",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.gapless.guarantee",
        "enable.idempotence",
        "enable.partition.eof",
        "enable.sparse.connections",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "isolation.level",
        "message.timeout.ms",
        "delivery.timeout.ms",
        "partitioner",
        "request.required.acks",
        "socket.timeout.ms",
        "transaction.timeout.ms",
        "transactional.id",
    }
)
"""What exactly-once rests on: never set from outside."""


def check_property(name: str, where: str) -> str | None:
    """Why ``name`` may not be set in the settings' ``properties``; None when it may."""
    if name in OURS:
        return (
            f"{where} sets '{name}', which exactly-once rests on. Remove it; time-outs and batching have "
            "settings of their own."
        )
    if name not in ALLOWED:
        return (
            f"{where} sets '{name}', which is not among the plain tuning properties. Properties that run "
            "code or read files are taken only from a file of the operator: name it in properties_file."
        )
    return None


def read_properties_file(path: Path) -> Mapping[str, str]:
    """``name=value`` lines of an operator's file; ``#`` begins a comment line.

    Raises SettingsError, naming file and line, never the value.
    """
    try:
        with path.open("rb") as file:
            data = file.read(PROPERTIES_FILE_BYTES_MAX + 1)
        if len(data) > PROPERTIES_FILE_BYTES_MAX:
            raise SettingsError(
                f"the properties file {path} is larger than {PROPERTIES_FILE_BYTES_MAX} bytes.",
                remedy="Name the right file in properties_file.",
            )
        text = data.decode()
    except (OSError, UnicodeDecodeError) as failed:
        raise SettingsError(
            f"the properties file {path} cannot be read: {failed}.",
            remedy="Correct properties_file, or the file's access rights.",
        ) from failed
    properties: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        name, equals, value = stripped.partition("=")
        name = name.strip()
        if not equals or not name:
            raise SettingsError(
                f"line {number} of the properties file {path} is not of the form name=value.",
                remedy="Write one property a line.",
            )
        if name in OURS:
            raise SettingsError(
                f"line {number} of the properties file {path} sets '{name}', which exactly-once rests on.",
                remedy="Remove the line.",
            )
        properties[name] = value.strip()
    return properties
