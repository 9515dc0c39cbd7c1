"""Kills of real processes are few in a run of all tests; long sweeps have their own targets."""

from __future__ import annotations

import re

import pytest

from tests.kill_budget import ALL, KILLS_MAX, kills_of, told
from tests.style.sources import python_files

KILLING = re.compile(
    r"\bkilled_at\(|\brun_kills\(|\bkill_worker\(|\bsignal\.SIGKILL\b|\"kill\"\)|kill_and_succeed\("
)
"""How a test kills a process of a job."""

NO_JOB = {
    "tests/integration/test_dev_broker.py": "the developer's broker, and nothing on it",
    "tests/style/test_kill_budget.py": "names them",
}


@pytest.mark.skipif(ALL, reason="everything was asked for")
def test_all_tests_together_stay_within_the_budget_of_kills(request: pytest.FixtureRequest) -> None:
    tests = request.session.items
    kills = sum(map(kills_of, tests))
    assert kills <= KILLS_MAX, f"{kills} kills:\n{told(tests)}"


def test_what_kills_is_marked() -> None:
    unmarked = [
        source.name
        for source in python_files("tests")
        if re.match(r"tests/integration/test_", source.name)
        and source.name not in NO_JOB
        and KILLING.search(source.text)
        and "mark.kill" not in source.text
    ]
    assert not unmarked, f"mark these `kill`, with the number of kills: {unmarked}"
