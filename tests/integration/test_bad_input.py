"""Bad input gets an error before anything runs: what is wrong, its value, what to do, and an exit code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from connectors.kafka.dev_broker import free_ports, start_broker
from processor.errors import ExternalRefusal, JobError, SettingsError, Unavailable
from tests.integration.command import Said, run_processor
from tests.integration.scenario import Scenario
from tests.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

ACL_TIMEOUT_S = 30.0

PASSWORD = "canary-4712"
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"

WRONG_JOBS = {
    "wrong_type": (
        "step 'write'",
        "values of type str | None",
        "the stream has int",
        "convert them with map",
    ),
    "missing_state_type": ("step 'total'", "Untyped does not say the type of its totals", "Annotate"),
    "one_name_twice": ("two steps of job 'one-name-twice' have the name 'step'", "another name"),
    "missing_key": ("step 'read'", "needs a key", "Put key_by right before it"),
    "weaker_sink": ("step 'write'", "at-least-once", "exactly-once", "guarantee=Guarantee.AT_LEAST_ONCE"),
    "builds_nothing": ("tests.integration.wrong_jobs:builds_nothing",),
    "not_there": ("tests.integration.wrong_jobs", "not_there"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """Settings that are wrong, and what the error must be."""

    settings: Mapping[str, str] = field(default_factory=dict)
    code: int = SettingsError.exit_code
    words: tuple[str, ...]


WRONG_SETTINGS = {
    "unknown topic to read": Wrong(
        settings={"kafka.main.topic_map.in": "nowhere-to-read"},
        code=ExternalRefusal.exit_code,
        words=("step 'read'", "topic 'nowhere-to-read'", "does not exist", "topic_map"),
    ),
    "unknown topic to write": Wrong(
        settings={"kafka.main.topic_map.out": "nowhere-to-write"},
        code=ExternalRefusal.exit_code,
        words=("step 'write'", "topic 'nowhere-to-write' (by topic_map for 'out') does not exist", "Make it"),
    ),
    "transaction longer than the brokers allow": Wrong(
        settings={"kafka.main.transaction_timeout": "1h"},
        words=(
            "kafka.main.transaction_timeout is 1h",
            "transaction.max.timeout.ms is 900000 (15m)",
            "Lower the one or raise the other",
        ),
    ),
    "transaction shorter than a publish": Wrong(
        settings={"kafka.main.transaction_timeout": "10s", "kafka.main.publish_timeout": "20s"},
        words=("transaction_timeout is 10s", "publish_timeout, 20s", "raise the one or lower the other"),
    ),
    "a duration without unit": Wrong(
        settings={"checkpoint.interval": "10"}, words=("checkpoint.interval", "10", "10s")
    ),
    "an unknown setting": Wrong(
        settings={"checkpoint.intervall": "10s"}, words=("checkpoint.intervall", "checkpoint.interval")
    ),
    "a secret in clear": Wrong(
        settings={"kafka.main.security.password": PASSWORD},
        words=("kafka.main.security.password", "file:PATH"),
    ),
    "an unknown section": Wrong(settings={"chekpoint.interval": "10s"}, words=("chekpoint",)),
    "a value of another kind": Wrong(
        settings={"runtime.parallelism": "many"}, words=("runtime.parallelism", "many")
    ),
    "parallelism above the maximum": Wrong(
        settings={"runtime.parallelism": "200"},
        code=JobError.exit_code,
        words=("200", "128"),
    ),
}


def refused(scenario: Scenario, code: int, *words: str) -> Said:
    """The job does not begin: nothing is decided, and the error says everything."""
    said = run_processor("run", scenario.reference, *scenario.options)
    assert said.code == code, said
    for word in words:
        assert word in said.err, f"'{word}' is not said:\n{said}"
    assert "Traceback" not in said.err, said
    assert PASSWORD not in said.err, said
    assert not list(scenario.checkpoints.glob("*/log/*.entry")), "something has run"
    return said


@pytest.mark.parametrize("job", WRONG_JOBS)
def test_a_wrong_job(kafka: str, tmp_path: Path, job: str) -> None:
    scenario = small(kafka, tmp_path, job, "tests.integration.wrong_jobs")
    refused(scenario, JobError.exit_code, *WRONG_JOBS[job])


@pytest.mark.parametrize("what", WRONG_SETTINGS)
def test_wrong_settings(kafka: str, tmp_path: Path, what: str) -> None:
    wrong = WRONG_SETTINGS[what]
    scenario = small(kafka, tmp_path, "strict_numbers").with_settings(wrong.settings)
    refused(scenario, wrong.code, *wrong.words)


def test_no_broker(kafka: str, tmp_path: Path) -> None:
    nobody = f"127.0.0.1:{free_ports(1)[0]}"
    settings = {
        "kafka.main.bootstrap_servers": nobody,
        "kafka.main.request_timeout": "2s",
        "runtime.restart.strategy": "none",
    }
    scenario = small(kafka, tmp_path, "strict_numbers").with_settings(settings)
    refused(scenario, Unavailable.exit_code, "'main'", "bootstrap_servers", "Start the brokers")


def test_no_address_of_a_broker_and_no_place_for_checkpoints(kafka: str, tmp_path: Path) -> None:
    place = f"checkpoint.directory={tmp_path}"
    job = "tests.integration.case_jobs:strict_numbers"
    said = run_processor("run", job, "--set", place)
    assert said.code == SettingsError.exit_code, said
    assert "kafka.main.bootstrap_servers" in said.err
    said = run_processor("run", job, "--set", f"kafka.main.bootstrap_servers={kafka}")
    assert said.code == SettingsError.exit_code, said
    assert "checkpoint.directory" in said.err


def test_a_type_that_is_missing_and_is_found_only_with_the_first_record(kafka: str, tmp_path: Path) -> None:
    scenario = small(kafka, tmp_path, "missing_record_type", "tests.integration.wrong_jobs")
    scenario.put([b"1"])
    said = run_processor("run", scenario.reference, *scenario.options)
    assert said.code == JobError.exit_code, said
    assert "Opaque" in said.err, said
    assert "step 'key'" in said.err or "step 'hide'" in said.err, said
    assert ".returns(" in said.err, said
    assert "return annotation" in said.err, said


def test_a_function_that_raises_is_skipped_and_counted_by_policy(kafka: str, tmp_path: Path) -> None:
    scenario = small(kafka, tmp_path, "skips_five")
    scenario.put([b"%d" % n for n in range(1, 9)])
    with scenario.running() as process:
        scenario.drain(process)
        assert scenario.counters()["check"]["records_skipped"] == 1
    assert [record.value() for record in scenario.records_out()] == [b"1", b"2", b"3", b"4", b"6", b"7", b"8"]


def small(
    kafka: str, folder: Path, job: str, module: str = "tests.integration.case_jobs", **settings: str
) -> Scenario:
    return Scenario.make(
        kafka, folder, job=job, module=module, partitions_in=1, partitions_out=1, settings=settings
    )


# --- rights


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A broker that asks who may do what: (address where everything is allowed, address of the others)."""
    plain, controller, sasl = free_ports(3)
    broker = start_broker(
        tmp_path_factory.mktemp("rights") / "broker",
        port=plain,
        properties={
            "listeners": f"CLIENT://127.0.0.1:{plain},CONTROLLER://127.0.0.1:{controller},"
            f"GUARDED://127.0.0.1:{sasl}",
            "advertised.listeners": f"CLIENT://127.0.0.1:{plain},GUARDED://127.0.0.1:{sasl}",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT,GUARDED:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.guarded.plain.sasl.jaas.config": f'{JAAS} user_worker="{PASSWORD}";',
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        },
    )
    yield broker.bootstrap, f"127.0.0.1:{sasl}"
    broker.stop()


def grant(bootstrap: str, topic: str, *operations: AclOperation) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    bindings = [
        AclBinding(
            ResourceType.TOPIC,
            topic,
            ResourcePatternType.LITERAL,
            "User:worker",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        for operation in operations
    ]
    for granted in admin.create_acls(bindings, request_timeout=ACL_TIMEOUT_S).values():
        granted.result(ACL_TIMEOUT_S)


def test_no_rights(guarded: tuple[str, str], tmp_path: Path) -> None:
    plain, address = guarded
    secret = tmp_path / "password"
    secret.write_text(PASSWORD)
    scenario = small(plain, tmp_path, "strict_numbers").with_settings(
        {
            "kafka.main.bootstrap_servers": address,
            "kafka.main.security.protocol": "sasl_plaintext",
            "kafka.main.security.sasl_mechanism": "PLAIN",
            "kafka.main.security.username": "worker",
            "kafka.main.security.password_file": str(secret),
            "kafka.main.request_timeout": "5s",
            "runtime.restart.strategy": "none",
        }
    )
    refused(scenario, ExternalRefusal.exit_code, "step 'read'", f"'{scenario.topic_in}'", "Read")
    grant(plain, scenario.topic_in, AclOperation.READ, AclOperation.DESCRIBE)
    grant(plain, scenario.topic_out, AclOperation.DESCRIBE)

    def comes_to_the_sink() -> bool:
        # The broker applies new rights a moment after it has taken them.
        said = run_processor("run", scenario.reference, *scenario.options)
        return "step 'write'" in said.err

    wait_until(comes_to_the_sink, ACL_TIMEOUT_S, "the source may read")
    refused(
        scenario,
        ExternalRefusal.exit_code,
        "step 'write'",
        f"no right to write topic '{scenario.topic_out}'",
        "Grant the principal Write and Describe",
    )
