"""The kafka section: what it takes, what it refuses, and the client's names for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from connectors.kafka.client_properties import ALLOWED, OURS
from connectors.kafka.settings import ClusterSettings, KafkaSettings, kafka_settings
from processor.errors import SettingsError

SECRET = "canary-4711"


def main(**cluster: Any) -> ClusterSettings:
    return KafkaSettings.model_validate({"main": {"bootstrap_servers": "host:9092", **cluster}}).main


def test_clusters_stand_beside_main_by_name() -> None:
    settings = KafkaSettings.model_validate(
        {"main": {"bootstrap_servers": "a:1"}, "other": {"bootstrap_servers": "b:1"}}
    )
    assert {name: each.bootstrap_servers for name, each in settings.clusters().items()} == {
        "main": "a:1",
        "other": "b:1",
    }


def test_a_cluster_nobody_configured_is_named() -> None:
    with pytest.raises(SettingsError, match=r"'west'.*Set kafka.west.bootstrap_servers"):
        KafkaSettings().cluster("west")


def test_a_cluster_in_use_needs_an_address() -> None:
    with pytest.raises(SettingsError, match=r"Set kafka.main.bootstrap_servers, such as localhost:9092"):
        KafkaSettings().main.client_properties("main")


def test_a_setting_of_a_cluster_at_the_wrong_place_is_explained() -> None:
    with pytest.raises(ValidationError, match=r"write kafka\.main\.bootstrap_servers"):
        KafkaSettings.model_validate({"bootstrap_servers": "host:1"})


@pytest.mark.parametrize(
    "wrong",
    [
        {"bootstrap_server": "host:1"},
        {"transaction_timeout": "60"},
        {"publish_rows_max": 0},
        {"marker_topic": "no spaces"},
        {"topic_map": {"a": "b/c"}},
        {"producer": {"compression": "rar"}},
        {"consumer": {"out_of_retention": "ignore"}},
    ],
)
def test_slips_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        main(**wrong)


def test_case_13_a_publish_that_outlasts_its_transaction_is_refused_with_both_values() -> None:
    with pytest.raises(
        ValidationError, match="transaction_timeout is 10s, which is not longer than publish_timeout, 30s"
    ):
        main(transaction_timeout="10s")


@pytest.mark.parametrize(
    "name",
    [
        "plugin.library.paths",
        "sasl.kerberos.kinit.cmd",
        "ssl.engine.location",
        "ssl.ca.location",
        "sasl.oauthbearer.token.endpoint.url",
    ],
)
def test_properties_that_run_code_or_read_files_are_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="only from a file of the operator"):
        main(properties={name: "x"})


@pytest.mark.parametrize("name", sorted(OURS))
def test_what_exactly_once_rests_on_cannot_be_set(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="which exactly-once rests on"):
        main(properties={name: "x"})
    file = tmp_path / "client.properties"
    file.write_text(f"# ours\n{name} = x\n")
    with pytest.raises(SettingsError, match=f"line 2 of .* sets '{name}'"):
        main(properties_file=file).client_properties("main")


def test_allowed_and_reserved_names_are_apart() -> None:
    assert not ALLOWED & OURS


def test_an_operators_file_may_set_the_others(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("sasl.kerberos.service.name=kafka\n\n# a comment\nclient.rack = r1\n")
    properties = main(properties_file=file, properties={"client.rack": "r2"}).client_properties("main")
    assert properties["sasl.kerberos.service.name"] == "kafka"
    assert properties["client.rack"] == "r2"
    assert properties["bootstrap.servers"] == "host:9092"


def test_an_operators_file_that_is_missing_or_malformed_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        main(properties_file=tmp_path / "none").client_properties("main")
    file = tmp_path / "client.properties"
    file.write_text(f"password {SECRET}")
    with pytest.raises(SettingsError, match=r"line 1 of .* is not of the form") as refused:
        main(properties_file=file).client_properties("main")
    assert SECRET not in str(refused.value)


def test_sasl_and_tls_are_mapped_to_the_clients_names(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text(f"{SECRET}\n")
    cluster = main(
        security={
            "protocol": "sasl_ssl",
            "sasl_mechanism": "SCRAM-SHA-512",
            "username": "me",
            "password_file": password,
            "ca_file": "/ca.pem",
            "certificate_file": "/cert.pem",
            "key_file": "/key.pem",
            "key_password": SECRET,
            "verify_hostname": False,
        }
    )
    expected = {
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": SECRET,
        "ssl.ca.location": "/ca.pem",
        "ssl.certificate.location": "/cert.pem",
        "ssl.key.location": "/key.pem",
        "ssl.key.password": SECRET,
        "ssl.endpoint.identification.algorithm": "none",
    }
    properties = cluster.client_properties("main")
    assert {name: properties[name] for name in expected} == expected


def test_secrets_are_in_no_text_of_the_settings() -> None:
    cluster = main(
        security={
            "protocol": "sasl_plaintext",
            "sasl_mechanism": "PLAIN",
            "username": "me",
            "password": SECRET,
        }
    )
    assert SECRET not in repr(cluster) + str(cluster) + cluster.model_dump_json()


@pytest.mark.parametrize(
    ("security", "reason"),
    [
        ({"protocol": "sasl_ssl"}, "needs sasl_mechanism"),
        ({"sasl_mechanism": "PLAIN"}, "has no SASL"),
        ({"protocol": "sasl_ssl", "sasl_mechanism": "PLAIN"}, "needs username"),
        ({"protocol": "sasl_ssl", "sasl_mechanism": "PLAIN", "username": "u"}, "needs password"),
        (
            {
                "protocol": "sasl_ssl",
                "sasl_mechanism": "PLAIN",
                "username": "u",
                "password": SECRET,
                "password_file": "/p",
            },
            "both set",
        ),
        ({"protocol": "ssl", "certificate_file": "/c"}, "go together"),
    ],
)
def test_security_that_does_not_fit_together_is_explained(security: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason) as refused:
        main(security=security)
    assert SECRET not in str(refused.value)


def test_the_client_takes_every_allowed_property() -> None:
    from confluent_kafka import Consumer, KafkaException

    unknown = []
    for name in sorted(ALLOWED):
        try:
            Consumer({"group.id": "g", name: "not a value of anything"})
        except KafkaException as refused:
            if "No such configuration property" in str(refused):
                unknown.append(name)
    assert unknown == []


def test_a_section_as_plain_data_is_validated() -> None:
    assert kafka_settings({"kafka": {"main": {"bootstrap_servers": "a:1"}}}).main.bootstrap_servers == "a:1"
    assert kafka_settings({}) == KafkaSettings()
