"""Connectors are found by entry point and imported when used; what is missing is named."""

from __future__ import annotations

import sys

import pytest

from processor.errors import SettingsError
from processor.plugins import installed_plugins
from tests.s3_server import ACCESS_KEY, SECRET_KEY, ignore_conditions
from tests.unit.cli.conftest import points

HERE = "tests.unit.cli.sample_plugin"


def test_finding_imports_nothing(installed, monkeypatch):
    monkeypatch.delitem(sys.modules, HERE, raising=False)
    installed(points(broker=f"{HERE}:broker"))
    plugins = installed_plugins()
    assert plugins.names == ("broker",)
    assert HERE not in sys.modules
    assert plugins.get("broker").name == "broker"
    assert HERE in sys.modules


def test_a_plugin_is_made_once(installed):
    installed(points(broker=f"{HERE}:broker"))
    plugins = installed_plugins()
    assert plugins.get("broker") is plugins.get("broker")


def test_a_plugin_that_is_not_installed_is_named_with_those_that_are(installed):
    installed(points(broker=f"{HERE}:broker", quiet=f"{HERE}:quiet"))
    with pytest.raises(SettingsError, match="no plugin 'kafka'; installed are: broker, quiet"):
        installed_plugins().get("kafka")


@pytest.mark.parametrize("value", ["no_such_module:plugin", f"{HERE}:no_such_attribute"])
def test_a_plugin_that_cannot_be_imported_is_named_with_the_reason(installed, value):
    installed(points(broken=value))
    with pytest.raises(SettingsError, match=f"plugin 'broken' \\({value}\\) cannot be imported: .*no_such_"):
        installed_plugins().get("broken")


def test_a_plugin_that_calls_itself_otherwise_is_refused(installed):
    installed(points(broker=f"{HERE}:misnamed"))
    with pytest.raises(SettingsError, match="calls itself 'somebody else'"):
        installed_plugins().get("broker")


def test_two_plugins_of_one_name_are_refused_and_one_found_twice_is_not(installed):
    installed(points(broker=f"{HERE}:broker") + points(broker=f"{HERE}:broker"))
    assert installed_plugins().names == ("broker",)
    installed(points(broker=f"{HERE}:broker") + points(broker="elsewhere:broker"))
    with pytest.raises(SettingsError, match="two plugins are named 'broker'"):
        installed_plugins()


def test_commands_for_developers_are_the_plugins(processor_command, installed):
    assert processor_command("dev", "broker", "up", "--size", "3").stdout == "up with 3\n"
    assert processor_command("dev", "broker", "down").exit_code == 3
    assert "Stop it." in processor_command("dev", "broker", "--help").stdout
    assert "Start it." in processor_command("dev", "broker").stdout
    assert processor_command("dev", "broker", "sideways").exit_code == 2
    assert "Plugins: broker" in processor_command("dev").stdout
    assert "Plugins: broker" in processor_command("dev", "--help").stdout
    installed(points(one=f"{HERE}:single_command", quiet=f"{HERE}:quiet"))
    assert processor_command("dev", "one", "only").stdout == "only\n"
    result = processor_command("dev", "quiet", "up")
    assert result.exit_code == 78
    assert "plugin 'quiet' has no commands for developers" in result.stderr


def test_doctor_asks_every_plugin_and_falls_short_when_a_check_fails(processor_command, tmp_path):
    directory = f"checkpoint.directory={tmp_path}/not/yet"
    result = processor_command("doctor", "--set", directory, "--set", "broker.main.address=x:1")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "2 checks passed, 0 failed"
    assert list(tmp_path.iterdir()) == []
    result = processor_command("doctor", "--set", directory)
    assert result.exit_code == 1
    assert "FAILED  broker" in result.stdout
    assert result.stdout.splitlines()[-1] == "1 checks passed, 1 failed"
    assert "checkpoint.directory is not set" in processor_command("doctor").stdout


@pytest.mark.parametrize("honest", [True, False])
def test_r05_doctor_tries_the_store_of_the_log_and_leaves_nothing(processor_command, s3, honest):
    bucket = s3.bucket()
    if not honest:
        s3.always(lambda _: ignore_conditions)
    given = [
        f"checkpoint.directory=s3://{bucket}/jobs",
        f"stores.s3.endpoint={s3.endpoint}",
        f"stores.s3.access_key_id={ACCESS_KEY}",
        "stores.s3.secret_access_key=env:S3_SECRET",
        "broker.main.address=x:1",
    ]
    options = [word for each in given for word in ("--set", each)]
    result = processor_command("doctor", *options, S3_SECRET=SECRET_KEY)
    assert result.exit_code == (0 if honest else 1)
    assert f"s3://{bucket}/jobs" in result.stdout or not honest
    assert "Set checkpoint.log_directory" in result.stdout or honest
    assert SECRET_KEY not in result.stdout + result.stderr
    assert b"<Key>" not in s3.request("GET", bucket)
