"""What a driver of a Ray cluster passes on to the processes on its nodes, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.main import get_command

from processor.cli.main import app
from processor.cli.on_ray import start_words
from processor.errors import SettingsError, Unavailable
from processor.runtime.cluster.ray.driver import run_on_ray
from processor.runtime.cluster.ray.nodes import Call, Nodes
from processor.runtime.cluster.ray.shipped import Shipped, shipped_config, shipped_environment
from processor.runtime.renaming import Renaming
from processor.runtime.start_options import StartOptions
from processor.settings.cluster import RaySettings
from processor.settings.loading import load_settings
from processor.telemetry.log import get_log


def parsed(words: list[str]) -> dict[str, object]:
    """What ``processor run`` understands by them, without what it takes anyway."""
    command = get_command(app).commands["run"]  # type: ignore[attr-defined]
    given = command.make_context("run", list(words)).params
    return {name: value for name, value in given.items() if value not in (None, False, ())}


@pytest.mark.parametrize(
    ("options", "understood"),
    [
        (StartOptions(), {}),
        (StartOptions(fresh=True, request="again"), {"fresh": True, "request": "again"}),
        (StartOptions(origin="/saved", claim=True), {"origin": "/saved", "claim": True}),
        (
            StartOptions(
                take_over="abc",
                accept_duplicates=True,
                dropped_state=frozenset({"b", "a"}),
                renamed=(Renaming(old="x", new="y"), Renaming(old="s/a", new="s/b")),
            ),
            {
                "take_over": "abc",
                "accept_duplicates": True,
                "dropped_state": ["a", "b"],
                "rename": ["x=y", "s/a=s/b"],
            },
        ),
    ],
)
def test_r03_the_coordinator_is_told_where_to_begin(options: StartOptions, understood: dict[str, object]):
    assert parsed(["jobs:build", *start_words(options)]) == {"build": "jobs:build", **understood}


def shipped() -> Shipped:
    return Shipped(
        build="jobs:build",
        start=("--fresh",),
        config=("settings/main.yaml",),
        assignments=("runtime.workers=3", "runtime.cluster.workers=ray"),
        environment={},
    )


def test_g4_what_runs_on_nodes_is_no_driver():
    words = shipped().coordinator("tcp:10.0.0.1:7000")
    given = parsed(words[1:])
    assert (words[0], given["build"], given["fresh"]) == ("run", "jobs:build", True)
    assert given["config"] == [Path("settings/main.yaml")]
    assert given["set_"] == [
        "runtime.workers=3",
        "runtime.cluster.workers=ray",
        "runtime.cluster.workers=joining",
        "runtime.cluster.listen=tcp:10.0.0.1:7000",
    ]
    settings = load_settings(plugins={}, assignments=given["set_"]).settings
    assert (settings.runtime.cluster.workers, settings.runtime.workers) == ("joining", 3)


def test_g4_a_worker_is_told_where_its_coordinator_is_and_not_where_to_begin():
    words = shipped().worker("tcp:10.0.0.1:7000")
    assert words[:4] == ["worker", "jobs:build", "--coordinator", "tcp:10.0.0.1:7000"]
    assert "--fresh" not in words
    assert words[-2:] == ["--set", "runtime.cluster.workers=joining"]


def test_files_of_settings_are_named_as_they_are_in_the_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "jobs" / "settings").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    given = [Path("jobs/settings/main.yaml"), tmp_path / "jobs" / "more.yaml"]
    assert shipped_config(given, Path("jobs")) == ("settings/main.yaml", "more.yaml")


def test_a_file_of_settings_that_no_node_gets_is_refused(tmp_path: Path):
    (tmp_path / "jobs").mkdir()
    with pytest.raises(SettingsError, match=r"main\.yaml is not in .*jobs, of which the nodes get a copy"):
        shipped_config([tmp_path / "main.yaml"], tmp_path / "jobs")


def test_of_the_environment_only_settings_go_along():
    environ = {"PROCESSOR__LOG__LEVEL": "debug", "processor__runtime__workers": "2", "AWS_SECRET": "x"}
    assert shipped_environment(environ) == {
        "PROCESSOR__LOG__LEVEL": "debug",
        "processor__runtime__workers": "2",
    }


def test_a_directory_that_nodes_do_not_share_is_refused_before_anything_is_asked_of_ray(tmp_path: Path):
    settings = load_settings(plugins={}, assignments=[f"checkpoint.directory={tmp_path}"]).settings
    with pytest.raises(SettingsError, match="a directory, and the nodes of a Ray cluster do not see it"):
        run_on_ray(shipped(), settings, get_log("test"))


def test_a_cluster_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(
        Unavailable, match="the Ray cluster auto cannot be used: Could not find any running Ray"
    ):
        Nodes(RaySettings()).__enter__()


def test_a_cluster_that_is_not_reached_any_more_is_told_as_such():
    class Disconnected:
        def wait(self, references: object, timeout: float) -> object:
            raise ConnectionError("the client is disconnected")

    with pytest.raises(
        Unavailable, match="the connection to the Ray cluster is lost: the client is disconnected"
    ):
        Call(Disconnected(), "a call").answered()
