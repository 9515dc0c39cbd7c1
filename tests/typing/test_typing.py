"""Mistakes of authors are found by mypy and by pyright, line by line; what is right passes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CHECKER_SECONDS_MAX = 170

MARK = "# wrong: "

Found = dict[str, dict[int, list[str]]]
"""Messages by file name and line."""


def run(*command: str) -> str:
    """Output of a checker; its exit code only says that it found something."""
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env={**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
        capture_output=True,
        text=True,
        timeout=CHECKER_SECONDS_MAX,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def found_by_mypy() -> Found:
    files = [str(HERE / name) for name in ("good_jobs.py", "wrong_jobs.py")]
    text = run("mypy", "--strict", "--explicit-package-bases", "--no-error-summary", *files)
    found: Found = {}
    for line in text.splitlines():
        match = re.match(r"(\S+?):(\d+): error: (.*)", line)
        if match:
            found.setdefault(Path(match[1]).name, {}).setdefault(int(match[2]), []).append(match[3])
    return found


def found_by_pyright() -> Found:
    text = run("pyright", "--outputjson", "-p", str(HERE), "--pythonpath", sys.executable)
    found: Found = {}
    for entry in json.loads(text)["generalDiagnostics"]:
        name, line = Path(entry["file"]).name, entry["range"]["start"]["line"] + 1
        found.setdefault(name, {}).setdefault(line, []).append(entry["message"])
    return found


@pytest.fixture(scope="module", params=[found_by_mypy, found_by_pyright], ids=["mypy", "pyright"])
def found(request: pytest.FixtureRequest) -> Found:
    result: Found = request.param()
    return result


def marked(name: str) -> set[int]:
    lines = (HERE / name).read_text().splitlines()
    return {number for number, line in enumerate(lines, 1) if MARK in line}


def test_good_jobs_pass_strictly(found: Found) -> None:
    assert found.get("good_jobs.py", {}) == {}


def test_every_wrong_line_is_rejected(found: Found) -> None:
    lines = (HERE / "wrong_jobs.py").read_text().splitlines()
    missed = marked("wrong_jobs.py") - set(found["wrong_jobs.py"])
    assert not missed, "not rejected:\n" + "\n".join(lines[number - 1] for number in sorted(missed))


def test_no_other_line_is_rejected(found: Found) -> None:
    extra = set(found["wrong_jobs.py"]) - marked("wrong_jobs.py")
    assert not extra, {number: found["wrong_jobs.py"][number] for number in sorted(extra)}


def test_there_are_mistakes_to_find() -> None:
    assert len(marked("wrong_jobs.py")) >= 14
