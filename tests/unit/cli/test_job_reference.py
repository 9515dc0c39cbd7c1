"""``module:build``: each way in which it can fail is named."""

from __future__ import annotations

import sys

import pytest

from processor.cli.job_reference import load_graph
from processor.errors import JobError, ProcessorError, UserCodeError
from processor.telemetry.error_text import error_block

PREFIX = "sample_job_"


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a module into the current directory, importable only as that."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def make(name: str, text: str) -> None:
        (tmp_path / f"{PREFIX}{name}.py").write_text(text)

    yield make
    for module in [known for known in sys.modules if known.startswith(PREFIX)]:
        del sys.modules[module]


def refused(reference: str, kind: type[ProcessorError]) -> ProcessorError:
    with pytest.raises(ProcessorError) as caught:
        load_graph(reference)
    assert type(caught.value) is kind
    return caught.value


@pytest.mark.parametrize("reference", ["", ":", "module", "module:", ":build"])
def test_a_reference_of_another_form_is_refused(write, reference):
    assert "MODULE:FUNCTION" in refused(reference, JobError).remedy


def test_a_missing_module_is_named_with_the_directory(write, tmp_path):
    error = refused(f"{PREFIX}nowhere:build", JobError)
    assert f"there is no module '{PREFIX}nowhere' in {tmp_path}" in str(error)
    assert f"there is no module '{PREFIX}nowhere.inner'" in str(refused(f"{PREFIX}nowhere.inner:b", JobError))


def test_a_module_that_lacks_another_names_that_one(write):
    write("lacks", f"import {PREFIX}other_one\n")
    error = refused(f"{PREFIX}lacks:build", UserCodeError)
    assert f"module '{PREFIX}lacks' imports '{PREFIX}other_one', which is not installed" in str(error)


def test_a_missing_function_is_named_with_one_that_is_near(write):
    write("near", "def build_job():\n    pass\n")
    error = refused(f"{PREFIX}near:build_jobs", JobError)
    assert "has no 'build_jobs'. Did you mean 'build_job'?" in str(error)


def test_a_module_that_raises_shows_the_users_frames(write):
    write("raises", "def deep():\n    return 1 / 0\n\ndeep()\n")
    error = refused(f"{PREFIX}raises:build", UserCodeError)
    block = error_block(error)
    assert f"module '{PREFIX}raises' raised while it was imported: ZeroDivisionError" in block
    assert "in deep" in block
    assert "job_reference.py" not in block


def test_a_module_that_is_no_python_shows_the_line(write):
    write("syntax", "def build(:\n")
    assert "SyntaxError" in error_block(refused(f"{PREFIX}syntax:build", UserCodeError))


def test_a_function_that_raises_shows_the_users_frames(write):
    write("build_raises", "def build():\n    return {}['no such key']\n")
    block = error_block(refused(f"{PREFIX}build_raises:build", UserCodeError))
    assert f"'{PREFIX}build_raises:build' raised while it built the job: KeyError: 'no such key'" in block
    assert "in build" in block


def test_what_is_no_function_and_what_gives_no_job_are_told_apart(write):
    write("others", "number = 5\ndef build():\n    return None\ndef text():\n    return 'x'\n")
    assert "is a value of type int, not a function" in str(refused(f"{PREFIX}others:number", JobError))
    assert "gave None, not a Job" in str(refused(f"{PREFIX}others:build", JobError))
    assert "gave a value of type str, not a Job" in str(refused(f"{PREFIX}others:text", JobError))


def test_what_the_construction_refuses_passes_as_it_is(write):
    write("wrong", "from processor import Job\n\ndef build():\n    return Job('')\n")
    assert "name" in str(refused(f"{PREFIX}wrong:build", JobError))


def test_an_empty_job_is_refused_as_the_job_says(write):
    write("empty", "from processor import Job\n\ndef build():\n    return Job('empty')\n")
    assert "empty" in str(refused(f"{PREFIX}empty:build", JobError))
