"""What each of Kafka's errors means to us: which of the engine's errors it becomes, and the remedy.

The table speaks of errors by name, so that it needs no client library and a simulated broker can use it. A
name that is not in it means that another try may help: the number of tries is the caller's to bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Final, assert_never

from processor.errors import (
    ExternalRefusal,
    PositionLost,
    ProcessorError,
    Retriable,
    TooLarge,
    Unavailable,
    Where,
)


class Meaning(Enum):
    """What an error asks of us."""

    AGAIN = auto()
    """Another try may mend it; a fenced producer too, for taking over again shows who fenced it (R11)."""
    SILENCE = auto()
    """Nobody answered in time."""
    REFUSED = auto()
    """For good: rights, configuration, a topic that is not there."""
    TOO_LARGE = auto()
    """Fewer rows at once may do (R30)."""
    ROW = auto()
    """One row is refused for good, and takes the rows of its request along (R30)."""
    TAKEN_ALONG = auto()
    """A row that was refused only because another row of its request was."""
    LOST = auto()
    """A position is outside of what is kept."""
    END = auto()
    """Not an error: the end of a partition, for now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    meaning: Meaning
    remedy: str = ""


def _refused(remedy: str) -> Entry:
    return Entry(meaning=Meaning.REFUSED, remedy=remedy)


_SILENCE: Final = Entry(
    meaning=Meaning.SILENCE,
    remedy="Start the brokers, or correct its bootstrap_servers; a firewall or an advertised listener that "
    "this machine cannot reach looks the same.",
)
_CREDENTIALS: Final = _refused("Correct the cluster's security settings: mechanism, username, password.")
_TLS: Final = _refused("Correct the cluster's TLS settings: security.protocol, ca_file, certificate_file.")
_ROW: Final = Entry(meaning=Meaning.ROW, remedy="Leave it out with `processor outbox skip`.")

TABLE: Final[Mapping[str, Entry]] = MappingProxyType(
    {
        "_PARTITION_EOF": Entry(meaning=Meaning.END),
        "_TIMED_OUT": _SILENCE,
        "_TIMED_OUT_QUEUE": _SILENCE,
        "_MSG_TIMED_OUT": _SILENCE,
        "_TRANSPORT": _SILENCE,
        "_ALL_BROKERS_DOWN": _SILENCE,
        "_WAIT_COORD": _SILENCE,
        "REQUEST_TIMED_OUT": _SILENCE,
        "_RESOLVE": _refused("Correct the host name in bootstrap_servers."),
        "_SSL": _TLS,
        "_AUTHENTICATION": _CREDENTIALS,
        "SASL_AUTHENTICATION_FAILED": _CREDENTIALS,
        "UNSUPPORTED_SASL_MECHANISM": _CREDENTIALS,
        "ILLEGAL_SASL_STATE": _CREDENTIALS,
        "TOPIC_AUTHORIZATION_FAILED": _refused(
            "Grant the principal Read and Describe on what it reads, Write and Describe on what it writes."
        ),
        "GROUP_AUTHORIZATION_FAILED": _refused("Grant the principal Read on this consumer group."),
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": _refused(
            "Grant the principal Write and Describe on this transactional id."
        ),
        "CLUSTER_AUTHORIZATION_FAILED": _refused(
            "Grant the principal what the message names on the cluster."
        ),
        "UNKNOWN_TOPIC_OR_PART": _refused("Make the topic, or correct its name."),
        "_UNKNOWN_TOPIC": _refused("Make the topic, or correct its name."),
        "UNKNOWN_TOPIC_ID": _refused("Make the topic, or correct its name."),
        "INCONSISTENT_TOPIC_ID": Entry(
            meaning=Meaning.LOST, remedy="The topic was made anew: start the job afresh."
        ),
        "TOPIC_EXCEPTION": _refused(
            "Correct the topic's name: letters, digits, '.', '_' and '-', at most 249."
        ),
        "INVALID_TRANSACTION_TIMEOUT": _refused(
            "Lower the cluster's transaction_timeout, or raise the brokers' transaction.max.timeout.ms."
        ),
        "INVALID_REPLICATION_FACTOR": _refused(
            "The cluster has fewer brokers than replicas are asked for: start more, or lower the brokers' "
            "default.replication.factor, offsets.topic.replication.factor and "
            "transaction.state.log.replication.factor."
        ),
        "POLICY_VIOLATION": _refused("Ask the cluster's operators what their topic policy demands."),
        "INVALID_CONFIG": _refused("Correct the setting that the message names."),
        "TOPIC_DELETION_DISABLED": _refused("The brokers' delete.topic.enable is false."),
        "UNSUPPORTED_VERSION": _refused("Use brokers of Kafka 3.6 or newer."),
        "_UNSUPPORTED_FEATURE": _refused("Use brokers of Kafka 3.6 or newer."),
        "UNSUPPORTED_FOR_MESSAGE_FORMAT": _refused("Use brokers of Kafka 3.6 or newer."),
        "UNSUPPORTED_COMPRESSION_TYPE": _refused("Choose another producer.compression."),
        "SECURITY_DISABLED": _refused("The brokers have no authorizer."),
        "_INVALID_ARG": _refused("Correct the setting that the message names."),
        "MSG_SIZE_TOO_LARGE": Entry(meaning=Meaning.TOO_LARGE),
        "RECORD_LIST_TOO_LARGE": Entry(meaning=Meaning.TOO_LARGE),
        "INVALID_MSG_SIZE": Entry(meaning=Meaning.TOO_LARGE),
        "INVALID_RECORD": _ROW,
        "INVALID_TIMESTAMP": _ROW,
        "_UNKNOWN_PARTITION": _ROW,
        "INVALID_PARTITIONS": _ROW,
        "_INVALID_DIFFERENT_RECORD": Entry(meaning=Meaning.TAKEN_ALONG),
        "OFFSET_OUT_OF_RANGE": Entry(meaning=Meaning.LOST),
        "_AUTO_OFFSET_RESET": Entry(meaning=Meaning.LOST),
        "_LOG_TRUNCATION": Entry(meaning=Meaning.LOST),
    }
)
"""Names as librdkafka spells them; those with a leading underscore are made by the client, not a broker."""

UNKNOWN: Final = Entry(meaning=Meaning.AGAIN)


def entry_of(name: str) -> Entry:
    """What an error of this name means; unknown names mean that another try may help."""
    return TABLE.get(name, UNKNOWN)


def error_for(
    name: str, text: str, *, doing: str, cluster: str, where: Where | None = None
) -> ProcessorError:
    """The engine's error for Kafka's error ``name``.

    ``doing`` completes "Kafka failed while …", ``cluster`` names the cluster as the settings do, ``text`` is
    what the client or the broker said.
    """
    entry = entry_of(name)
    message = f"Kafka cluster '{cluster}' failed while {doing}: {text} ({name})."
    match entry.meaning:
        case Meaning.AGAIN | Meaning.TAKEN_ALONG | Meaning.END:
            return Retriable(message, remedy=entry.remedy, where=where)
        case Meaning.SILENCE:
            silent = f"Kafka cluster '{cluster}' did not answer in time while {doing}: {text} ({name})."
            return Unavailable(silent, remedy=entry.remedy, where=where)
        case Meaning.REFUSED | Meaning.ROW:
            return ExternalRefusal(message, remedy=entry.remedy, where=where)
        case Meaning.TOO_LARGE:
            return TooLarge(message, remedy=entry.remedy, where=where)
        case Meaning.LOST:
            return PositionLost(message, remedy=entry.remedy, where=where)
        case _:
            assert_never(entry.meaning)
