"""Tests wait for what they need, not for time to pass: a sleep is a guess about a machine nobody has seen."""

from __future__ import annotations

import ast

from tests.style.sources import calls, imports, python_files

SLEEPS_ALLOWED = {
    "tests/waiting.py": "the bounded wait that all others use",
    "tests/integration/worker_kills.py": "how long a process is stopped is what is done to it",
}
SLEEPS = {"time.sleep", "asyncio.sleep", "sleep"}
WALL_CLOCKS = {"time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "datetime.datetime.now"}


def test_no_test_sleeps() -> None:
    found = []
    for source in python_files("tests"):
        if source.name in SLEEPS_ALLOWED:
            continue
        from_time = {name for name, _ in imports(source.tree)}
        for name, call in calls(source.tree):
            if name == "sleep" and not from_time & {"time.sleep", "asyncio.sleep"}:
                continue  # a sleep of the test's own making, on a clock that jumps
            if name in SLEEPS:
                found.append(f"{source.name}:{call.lineno} calls {name}: use tests.waiting.wait_until")
    assert not found, found


def test_no_test_reads_the_wall_clock() -> None:
    """It may jump while a test runs; what passes by is measured with time.monotonic."""
    found = [
        f"{source.name}:{call.lineno} calls {name}"
        for source in python_files("tests")
        for name, call in calls(source.tree)
        if name in WALL_CLOCKS
    ]
    assert not found, found


def test_no_test_is_marked_flaky() -> None:
    found = [
        f"{source.name}:{node.lineno}"
        for source in python_files("tests")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and node.attr in {"flaky", "rerun"}
    ]
    assert not found, f"a test that fails sometimes is a bug or a bad test: {found}"
