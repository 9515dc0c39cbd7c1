"""``processor --help`` loads nothing heavy: looked at in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = ("confluent_kafka", "rocksdict", "fastavro", "msgspec", "yaml", "rich", "connectors")
OURS_BELOW = ("processor.runtime", "processor.stream", "processor.settings", "processor.telemetry")


def modules_after(*arguments: str) -> tuple[int, str, list[str]]:
    program = (
        "import json, sys\n"
        "from processor.cli.main import app\n"
        "code = 0\n"
        "try:\n"
        "    app(sys.argv[1:], prog_name='processor')\n"
        "except SystemExit as ended:\n"
        "    code = ended.code or 0\n"
        "print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True, timeout=60
    )
    code, modules = json.loads(ended.stderr.splitlines()[-1])
    return code, ended.stdout, modules


@pytest.mark.parametrize(
    "arguments", [("--help",), ("run", "--help"), ("checkpoints", "--help"), ("--version",)]
)
def test_help_loads_nothing_heavy(arguments):
    code, output, modules = modules_after(*arguments)
    assert code == 0
    assert output
    loaded = {module.partition(".")[0] for module in modules}
    assert loaded.isdisjoint(HEAVY)
    assert set(modules).isdisjoint(OURS_BELOW)


def test_the_test_would_see_a_heavy_module():
    _, _, modules = modules_after("settings", "show")
    assert {"yaml", "connectors", "processor.settings"} <= set(modules)


def test_listing_plugins_imports_none_of_them():
    code, _, modules = modules_after("dev")
    assert code == 0
    assert not any(module.startswith("connectors") for module in modules)


def test_python_m_processor_is_the_command():
    ended = subprocess.run(
        [sys.executable, "-m", "processor", "--help"], capture_output=True, text=True, check=True, timeout=60
    )
    for command in (
        "run",
        "explain",
        "status",
        "savepoint",
        "stop",
        "checkpoints",
        "outbox",
        "doctor",
        "settings",
    ):
        assert f"\n  {command} " in ended.stdout


def test_a_reader_that_has_seen_enough_is_no_error():
    listing = subprocess.Popen(
        [sys.executable, "-m", "processor", "settings", "defaults"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert listing.stdout is not None
    listing.stdout.close()
    _, errors = listing.communicate(timeout=60)
    assert b"Traceback" not in errors
