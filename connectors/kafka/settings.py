"""The ``kafka`` section of the settings: clusters by name, and how they are mapped to the client library."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from connectors.kafka.client_properties import check_property, read_properties_file
from processor.errors import SettingsError
from processor.settings.secret import read_secret_file
from processor.settings.section import Section
from processor.settings.units import Duration, Size, at_least_bytes, at_least_ms, duration_text

if TYPE_CHECKING:
    from connectors.kafka.cluster import Cluster

SECTION: Final = "kafka"
MARKER_TOPIC_DEFAULT: Final = "__processor_markers"
LEGAL_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")


class SecurityProtocol(StrEnum):
    PLAINTEXT = "plaintext"
    SSL = "ssl"
    SASL_PLAINTEXT = "sasl_plaintext"
    SASL_SSL = "sasl_ssl"


class SaslMechanism(StrEnum):
    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"
    GSSAPI = "GSSAPI"
    OAUTHBEARER = "OAUTHBEARER"


class Compression(StrEnum):
    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class OutOfRetention(StrEnum):
    """What to do when a position is no longer kept by the cluster (case 20)."""

    FAIL = "fail"
    EARLIEST = "earliest"
    LATEST = "latest"


class SecuritySettings(Section):
    """How to reach the cluster: encrypted or not, as whom."""

    protocol: SecurityProtocol = Field(
        default=SecurityProtocol.PLAINTEXT, description="Of the listener that bootstrap_servers names."
    )
    sasl_mechanism: SaslMechanism | None = Field(
        default=None,
        description="With a sasl_* protocol. GSSAPI and OAUTHBEARER are set up in the properties_file.",
    )
    username: str | None = Field(default=None, description="For PLAIN and SCRAM.")
    password: SecretStr | None = Field(default=None, description="For PLAIN and SCRAM; or use password_file.")
    password_file: Path | None = Field(
        default=None, description="A file that holds nothing but the password."
    )
    ca_file: Path | None = Field(
        default=None, description="Certificates (PEM) of the authorities to trust; by default the system's."
    )
    certificate_file: Path | None = Field(
        default=None, description="Certificate (PEM) that this client shows, where brokers ask for one."
    )
    key_file: Path | None = Field(default=None, description="Private key (PEM) of the certificate.")
    key_password: SecretStr | None = Field(default=None, description="Of the key file, if it has one.")
    key_password_file: Path | None = Field(default=None, description="A file with the key's password.")
    verify_hostname: bool = Field(
        default=True, description="Whether a broker's certificate must be of its host name."
    )

    @model_validator(mode="after")
    def _consistent(self) -> SecuritySettings:
        sasl = self.protocol in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)
        if sasl and self.sasl_mechanism is None:
            raise ValueError(
                f"protocol {self.protocol.value} needs sasl_mechanism: one of "
                + ", ".join(mechanism.value for mechanism in SaslMechanism)
            )
        if not sasl and self.sasl_mechanism is not None:
            raise ValueError(
                f"sasl_mechanism is set, but protocol {self.protocol.value} has no SASL: use sasl_ssl"
            )
        if self.password is not None and self.password_file is not None:
            raise ValueError("password and password_file are both set: keep one")
        if self.key_password is not None and self.key_password_file is not None:
            raise ValueError("key_password and key_password_file are both set: keep one")
        if (self.certificate_file is None) != (self.key_file is None):
            raise ValueError("certificate_file and key_file go together: set both or none")
        if sasl and self.sasl_mechanism not in (SaslMechanism.GSSAPI, SaslMechanism.OAUTHBEARER):
            if self.username is None:
                raise ValueError(f"sasl_mechanism {self.sasl_mechanism} needs username")
            if self.password is None and self.password_file is None:
                raise ValueError(f"sasl_mechanism {self.sasl_mechanism} needs password or password_file")
        return self

    def properties(self) -> dict[str, Any]:
        """librdkafka's names; reads the secrets' files. Raises SettingsError naming the file."""
        properties: dict[str, Any] = {"security.protocol": self.protocol.value}
        if self.sasl_mechanism is not None:
            properties["sasl.mechanism"] = self.sasl_mechanism.value
            if self.username is not None:
                properties["sasl.username"] = self.username
            password = _secret(self.password, self.password_file, "password_file")
            if password is not None:
                properties["sasl.password"] = password
        if self.protocol in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL):
            for name, path in (
                ("ssl.ca.location", self.ca_file),
                ("ssl.certificate.location", self.certificate_file),
                ("ssl.key.location", self.key_file),
            ):
                if path is not None:
                    properties[name] = str(path)
            key_password = _secret(self.key_password, self.key_password_file, "key_password_file")
            if key_password is not None:
                properties["ssl.key.password"] = key_password
            properties["ssl.endpoint.identification.algorithm"] = "https" if self.verify_hostname else "none"
        return properties


class ProducerSettings(Section):
    """How decided output is sent."""

    compression: Compression = Field(default=Compression.NONE, description="Of batches on the wire and disk.")
    linger: Duration = Field(
        default=5, description="How long a batch waits to become full; a publish never waits longer for it."
    )
    batch_size: Annotated[Size, at_least_bytes(1_024)] = Field(
        default=1_000_000, description="Largest batch for one partition; a topic's own limit is kept too."
    )


class ConsumerSettings(Section):
    """How sources read ahead."""

    queued_records_min: int = Field(
        default=1_000_000,
        ge=1,
        le=10_000_000,
        description="Records read ahead per partition, bounded by queued_size_max.",
    )
    queued_size_max: Annotated[Size, at_least_bytes(1_048_576)] = Field(
        default=64 * 2**20, description="Memory for records read ahead, for each reading subtask."
    )
    fetch_size_per_partition_max: Annotated[Size, at_least_bytes(1_024)] = Field(
        default=1_048_576, description="Most bytes of one partition in one answer."
    )
    fetch_wait: Duration = Field(
        default=100, description="How long a broker may hold an answer back for more records to come."
    )
    fetch_queue_backoff: Duration = Field(
        default=5, description="How soon to fetch again after the read-ahead was full."
    )
    out_of_retention: OutOfRetention = Field(
        default=OutOfRetention.FAIL,
        description="When a position is no longer kept: stop and name it, or go on at the earliest or latest "
        "record and count what was lost. A source may say otherwise.",
    )
    group_offsets: bool = Field(
        default=True,
        description="Whether positions are also written as offsets of a consumer group named after job and "
        "source, for dashboards and lag tools. Nothing is ever read from it.",
    )


class ClusterSettings(Section):
    """One Kafka cluster."""

    bootstrap_servers: str | None = Field(
        default=None, description="host:port,host:port of some brokers. Required for a cluster that is used."
    )
    client_id: str = Field(default="processor", description="Seen in the brokers' logs and quotas.")
    security: SecuritySettings = Field(default_factory=SecuritySettings, description="TLS and SASL.")
    topic_map: Mapping[str, str] = Field(
        default_factory=dict,
        description="Sends topics of the job to others, for a replay or another stage: written name to "
        "real name.",
    )
    producer: ProducerSettings = Field(default_factory=ProducerSettings, description="Writing.")
    consumer: ConsumerSettings = Field(default_factory=ConsumerSettings, description="Reading.")
    properties: Mapping[str, str] = Field(
        default_factory=dict, description="Further plain tuning of the client, by librdkafka's names."
    )
    properties_file: Path | None = Field(
        default=None,
        description="A file of the operator with name=value lines, for client properties that run code or "
        "read files, such as Kerberos and OAuth.",
    )
    marker_topic: str = Field(
        default=MARKER_TOPIC_DEFAULT,
        description="Small topic of three partitions against which markers are kept; never delete it.",
    )
    marker_topic_create: bool = Field(
        default=True, description="Whether to make the marker topic when it is missing."
    )
    publish_rows_max: int = Field(
        default=250_000, ge=1, description="Most rows in one transaction; larger outboxes take several."
    )
    publish_bytes_max: Annotated[Size, at_least_bytes(1_024)] = Field(
        default=64 * 2**20, description="Most bytes in one transaction."
    )
    publish_timeout: Annotated[Duration, at_least_ms(1_000)] = Field(
        default=30_000,
        description="How long one transaction may take; then fewer rows are tried.",
    )
    transaction_timeout: Annotated[Duration, at_least_ms(1_000)] = Field(
        default=60_000,
        description="After which brokers abort a transaction whose sender has died; longer than "
        "publish_timeout, not above the brokers' transaction.max.timeout.ms.",
    )
    take_over_timeout: Annotated[Duration, at_least_ms(500)] = Field(
        default=30_000, description="How long shutting out earlier publishers may take."
    )
    marker_timeout: Annotated[Duration, at_least_ms(100)] = Field(
        default=5_000, description="How long reading a marker may take."
    )
    request_timeout: Annotated[Duration, at_least_ms(100)] = Field(
        default=30_000, description="How long questions about topics, offsets and configuration may take."
    )

    @field_validator("properties")
    @classmethod
    def _allowed(cls, properties: Mapping[str, str]) -> Mapping[str, str]:
        for name in properties:
            problem = check_property(name, "properties")
            if problem is not None:
                raise ValueError(problem)
        return properties

    @field_validator("topic_map")
    @classmethod
    def _legal_topics(cls, topic_map: Mapping[str, str]) -> Mapping[str, str]:
        for written, real in topic_map.items():
            if not LEGAL_TOPIC.fullmatch(real):
                raise ValueError(f"topic_map sends '{written}' to '{real}', which cannot be a topic's name")
        return topic_map

    @field_validator("marker_topic")
    @classmethod
    def _legal_marker_topic(cls, topic: str) -> str:
        if not LEGAL_TOPIC.fullmatch(topic) or topic in (".", ".."):
            raise ValueError(
                f"'{topic}' cannot be a topic's name: letters, digits, '.', '_', '-', at most 249"
            )
        return topic

    @model_validator(mode="after")
    def _publish_fits_transaction(self) -> ClusterSettings:
        # A transaction that its broker aborts before we give up would be repeated for ever (case 13).
        if self.transaction_timeout <= self.publish_timeout:
            raise ValueError(
                f"transaction_timeout is {duration_text(self.transaction_timeout)}, which is not longer than "
                f"publish_timeout, {duration_text(self.publish_timeout)}: raise the one or lower the other"
            )
        return self

    def real_topic(self, topic: str) -> str:
        """The topic that a job's ``topic`` stands for."""
        return self.topic_map.get(topic, topic)

    def client_properties(self, name: str) -> dict[str, Any]:
        """What all clients of this cluster have in common, by librdkafka's names.

        ``name`` is the cluster's name in the settings. Raises SettingsError when it cannot be used.
        """
        if not self.bootstrap_servers:
            raise SettingsError(
                f"the Kafka cluster '{name}' has no address.",
                remedy=f"Set kafka.{name}.bootstrap_servers, such as localhost:9092.",
            )
        properties: dict[str, Any] = {}
        if self.properties_file is not None:
            properties.update(read_properties_file(self.properties_file))
        properties.update(self.properties)
        properties.update(self.security.properties())
        properties["bootstrap.servers"] = self.bootstrap_servers
        properties["client.id"] = self.client_id
        return properties


class KafkaSettings(BaseModel):
    """Clusters by name. ``main`` is the one that sources and sinks use when they name none."""

    model_config = ConfigDict(frozen=True, extra="allow", hide_input_in_errors=True)
    __pydantic_extra__: dict[str, ClusterSettings]

    main: ClusterSettings = Field(
        default_factory=ClusterSettings,
        description="The cluster that sources and sinks use when they name none; others stand beside it.",
    )

    @model_validator(mode="before")
    @classmethod
    def _sections_only(cls, data: object) -> object:
        if isinstance(data, Mapping):
            for name, section in data.items():
                if name in ClusterSettings.model_fields:
                    raise ValueError(f"'{name}' belongs to a cluster: write kafka.main.{name}")
                if not isinstance(section, Mapping | ClusterSettings):
                    raise ValueError(f"'{name}' names a cluster and holds its settings, not a single value")
        return data

    def clusters(self) -> Mapping[str, ClusterSettings]:
        """All clusters by name, in order of name."""
        extra: Mapping[str, ClusterSettings] = self.__pydantic_extra__ or {}
        return dict(sorted({"main": self.main, **extra}.items()))

    def cluster(self, name: str) -> ClusterSettings:
        """Raises SettingsError for a name that nobody configured."""
        clusters = self.clusters()
        if name not in clusters:
            raise SettingsError(
                f"the job uses the Kafka cluster '{name}', but the settings know only {', '.join(clusters)}.",
                remedy=f"Set kafka.{name}.bootstrap_servers.",
            )
        return clusters[name]

    def open(self, name: str) -> Cluster:
        """A cluster to talk to. The seam of the simulation: a subclass may return another implementation."""
        from connectors.kafka.client import ConfluentCluster

        return ConfluentCluster(name, self.cluster(name))


def kafka_settings(sections: Mapping[str, object]) -> KafkaSettings:
    """The section out of what the engine hands to a source or sink."""
    section = sections.get(SECTION)
    if section is None:
        return KafkaSettings()
    if isinstance(section, KafkaSettings):
        return section
    return KafkaSettings.model_validate(section)


def _secret(value: SecretStr | None, path: Path | None, name: str) -> str | None:
    if value is not None:
        return value.get_secret_value()
    return None if path is None else read_secret_file(path, f"security.{name} of a Kafka cluster")
