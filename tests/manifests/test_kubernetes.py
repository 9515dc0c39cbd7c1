"""The manifests of docker/kubernetes: fit the schemas, each other, the command line, and the settings."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import typer

from processor.channels.addresses import TcpAddress
from processor.channels.credentials import SECRET_CHARS_MIN, credentials_of
from processor.cli.control import timeout_ms
from processor.cli.job_reference import load_graph
from processor.cli.main import app
from processor.errors import SettingsError
from processor.plugins import installed_plugins
from processor.runtime.cluster.network_address import network_address
from processor.settings.cluster import ClusterSettings, WorkersFrom
from processor.settings.loading import load_settings
from processor.settings.model import Settings
from processor.storage.places import places_of
from tests.manifests.pods import (
    FOLDER,
    SETTINGS,
    Container,
    container,
    kustomization,
    literals,
    manifest,
    manifests,
)

OLDEST, NEWEST = "1.29", "1.37"
"""Versions of Kubernetes: the fields that are used are in all between."""

COMPONENTS = ("coordinator", "worker")
END_MS = 30_000
"""For a process to end once its job has stopped."""

IMAGE_USER = 10001


def parsed(arguments: list[str]) -> dict[str, Any]:
    """The options of a command line as ``processor`` reads it. Raises what a person would be told."""
    command: Any = typer.main.get_command(app)
    name, rest = "processor", list(arguments)
    while hasattr(command, "commands"):
        name, *rest = rest
        command = command.commands[name]
    return dict(command.make_context(name, rest).params)


def settings(assignments: list[str] | None = None) -> Settings:
    models = installed_plugins().settings_models()
    return load_settings(
        plugins=models, files=[SETTINGS], environ=literals(), assignments=assignments or []
    ).settings


def commands(component: str) -> Iterator[list[str]]:
    one = container(component)
    yield one.arguments
    if component == "coordinator":
        yield from (one.probe("readinessProbe"), one.probe("livenessProbe"), one.pre_stop)


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("number", range(len(manifests())))
def test_every_manifest_fits_the_schema_of_its_kind(version: str, number: int):
    kubernetes_validate.validate(copy.deepcopy(manifests()[number]), version, strict=True)


def test_a_field_that_nobody_knows_does_not_fit():
    wrong: Any = copy.deepcopy(manifest("Deployment", "coordinator"))
    wrong["spec"]["template"]["spec"]["terminationGracePeriod"] = 1
    with pytest.raises(kubernetes_validate.ValidationError, match="terminationGracePeriod"):
        kubernetes_validate.validate(wrong, NEWEST, strict=True)


def test_all_files_of_the_folder_are_applied_and_the_secret_is_in_none():
    made = kustomization()
    generated = [name for maker in made["configMapGenerator"] for name in maker.get("files", [])]
    there = {path.name for path in FOLDER.iterdir()}
    assert there - {"joining-secret"} == {*made["resources"], *generated, "kustomization.yaml"}
    (secret,) = made["secretGenerator"]
    assert secret["files"] == ["joining-secret"]
    assert not any(each["kind"] == "Secret" for each in manifests())


@pytest.mark.parametrize("component", COMPONENTS)
def test_what_a_pod_mounts_is_generated_and_has_the_files_that_commands_and_settings_name(component: str):
    pod = container(component).pod
    made = kustomization()
    files = {
        maker["name"]: set(maker.get("files", []))
        for maker in (*made["configMapGenerator"], *made["secretGenerator"])
    }
    source = {
        volume["name"]: volume.get("configMap", {}).get("name") or volume.get("secret", {}).get("secretName")
        for volume in pod["volumes"]
    }
    mounts = {mount["name"]: Path(mount["mountPath"]) for mount in container(component).spec["volumeMounts"]}
    assert mounts.keys() == source.keys()
    there = {
        folder / file
        for name, folder in mounts.items()
        if source[name] is not None
        for file in files[source[name]]
    }
    for arguments in commands(component):
        assert set(parsed(arguments)["config"]) <= there
    assert settings().runtime.cluster.secret_file in there


@pytest.mark.parametrize("component", COMPONENTS)
def test_commands_are_ones_that_the_command_line_takes(component: str):
    for arguments in commands(component):
        parsed(arguments)
    with pytest.raises(Exception, match="No such option: --no-such"):
        parsed([*container(component).arguments, "--no-such"])


def test_the_job_is_the_one_that_is_named():
    assert load_graph(literals()["JOB"]).name == literals()["JOB_NAME"]
    run, ready, live, stop = commands("coordinator")
    assert parsed(run)["build"] == parsed(container("worker").arguments)["build"] == literals()["JOB"]
    assert [parsed(each)["job"] for each in (ready, live, stop)] == [literals()["JOB_NAME"]] * 3


def test_settings_are_ones_that_a_job_with_joining_workers_can_have():
    run = parsed(container("coordinator", "10.1.2.3").arguments)
    chosen = settings(run["set_"])
    assert chosen.runtime.cluster.workers is WorkersFrom.JOINING
    assert chosen.runtime.cluster.listen == "tcp:10.1.2.3:7070"
    assert places_of(chosen).files.directory is None, "a directory of one pod is not seen by the others"
    assert chosen.runtime.workers <= manifest("StatefulSet", "worker")["spec"]["replicas"]


def test_a_secret_that_could_be_guessed_is_refused(tmp_path: Path):
    secret = tmp_path / "joining-secret"
    secret.write_text("replace-me\n")
    with pytest.raises(SettingsError, match=r"10 characters, fewer than 32.*openssl rand -hex 32"):
        credentials_of(ClusterSettings(secret_file=secret))
    secret.write_text("0" * SECRET_CHARS_MIN)
    assert credentials_of(ClusterSettings(secret_file=secret)).any


def named_port(one: Container, name: str) -> int:
    (found,) = (port["containerPort"] for port in one.spec["ports"] if port["name"] == name)
    return int(found)


def test_names_and_ports_agree():
    coordinator, worker = container("coordinator"), container("worker")
    joining, channels = named_port(coordinator, "joining"), named_port(worker, "channels")
    assert settings(parsed(coordinator.arguments)["set_"]).runtime.cluster.listen.endswith(f":{joining}")
    joins = parsed(worker.arguments)
    assert network_address(joins["listen"], "") == TcpAddress("127.0.0.1", channels)
    service = manifest("Service", "coordinator")
    (port,) = service["spec"]["ports"]
    assert network_address(joins["coordinator"], "") == TcpAddress(service["metadata"]["name"], port["port"])
    assert (
        manifest("StatefulSet", "worker")["spec"]["serviceName"]
        == (manifest("Service", "worker")["metadata"]["name"])
    )
    for component, name in (("coordinator", "joining"), ("worker", "channels")):
        (port,) = manifest("Service", component)["spec"]["ports"]
        assert (port["name"], port["targetPort"]) == (name, name)
        (rule,) = manifest("NetworkPolicy", component)["spec"]["ingress"]
        assert [port["port"] for port in rule["ports"]] == [name]


@pytest.mark.parametrize("component", COMPONENTS)
def test_selectors_select_the_pods_that_are_meant(component: str):
    owner = manifest("Deployment" if component == "coordinator" else "StatefulSet", component)["spec"]
    labels = owner["template"]["metadata"]["labels"]
    assert owner["selector"]["matchLabels"] == labels
    assert manifest("Service", component)["spec"]["selector"] == labels
    policy = manifest("NetworkPolicy", component)["spec"]
    assert policy["podSelector"]["matchLabels"] == labels
    (rule,) = policy["ingress"]
    workers = manifest("StatefulSet", "worker")["spec"]["selector"]["matchLabels"]
    assert [peer["podSelector"]["matchLabels"] for peer in rule["from"]] == [workers]


def test_there_is_one_coordinator_and_workers_find_it_before_it_is_ready():
    """It is ready once they have joined: a service of those that are ready would have both wait for ever."""
    deployment = manifest("Deployment", "coordinator")["spec"]
    assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})
    assert manifest("Service", "coordinator")["spec"]["publishNotReadyAddresses"] is True


def test_a_pod_is_not_ended_before_its_job_has_stopped():
    coordinator = container("coordinator")
    stop = parsed(coordinator.pre_stop)
    below, _, name = str(stop["savepoint"]).rpartition("/")
    assert below == literals()["SAVEPOINTS"]
    assert re.fullmatch(r"\d{8}T\d{6}Z", name), "each stop has a place of its own"
    needed_ms = timeout_ms(stop["timeout"]) + settings().runtime.grace_period + END_MS
    assert coordinator.pod["terminationGracePeriodSeconds"] * 1_000 >= needed_ms


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_pod_may_do_nothing_that_it_does_not_need(component: str):
    one = container(component)
    assert one.pod["automountServiceAccountToken"] is False
    assert one.pod["securityContext"]["runAsNonRoot"] is True
    assert one.pod["securityContext"]["runAsUser"] == IMAGE_USER
    assert f"--uid {IMAGE_USER} " in (FOLDER.parent / "Dockerfile").read_text()
    assert one.spec["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert "/tmp" in [mount["mountPath"] for mount in one.spec["volumeMounts"]], "it writes nowhere else"
