"""run, explain and outbox hand over to the engine what the person asked for; the engine is a fake here."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from processor.errors import AttemptFailed, EngineBug, Fenced
from processor.ids import CheckpointId, JobName, PublisherId, StepName
from processor.runtime.outbox_view import OutboxView
from processor.runtime.renaming import Renaming
from processor.runtime.start_options import StartOptions
from processor.telemetry.log import Log

JOB = """
from processor import Job
from tests.unit.cli.sample_steps import Lines, Nowhere

def build():
    job = Job("sample job")
    job.read("lines", Lines()).map("upper", str.upper).returns(str).write("out", Nowhere())
    return job
"""
DIRECTORY = ("--set", "checkpoint.directory=checkpoints")
VIEW = OutboxView(
    publisher=PublisherId(JobName("sample job"), StepName("out"), 0),
    checkpoint=CheckpointId(7),
    rows=20,
    rows_published=None,
    bytes=2_048,
    problem="no marker",
)


@pytest.fixture
def reference(tmp_path, monkeypatch):
    (tmp_path / "engine_job.py").write_text(JOB)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield "engine_job:build"
    sys.modules.pop("engine_job", None)


@pytest.fixture
def engine(monkeypatch):
    """Stands where the runtime is; every call is kept, and ``result`` is returned or raised."""
    calls: list[tuple[str, tuple, dict]] = []
    result: dict[str, object] = {}

    def entry(name: str):
        def call(*arguments, **named):
            calls.append((name, arguments, named))
            outcome = result[name]
            if isinstance(outcome, BaseException):
                raise outcome
            return result[name]

        return call

    for module, names in {
        "processor.runtime.daemon": ["run_job"],
        "processor.runtime.outbox_tool": ["list_outboxes", "publish_outboxes", "skip_row"],
    }.items():
        fake = ModuleType(module)
        for name in names:
            setattr(fake, name, entry(name))
        monkeypatch.setitem(sys.modules, module, fake)
    return calls, result


def test_run_hands_over_graph_settings_options_and_a_log(processor_command, reference, engine):
    calls, result = engine
    result["run_job"] = 0
    ended = processor_command(
        "run",
        reference,
        *DIRECTORY,
        "--from",
        "/s/p",
        "--request",
        "again",
        "--take-over",
        "inc",
        "--accept-duplicates",
        "--rename",
        "old=new",
        "--rename",
        "new/a=new/b",
    )
    assert ended.exit_code == 0, ended.output
    ((_, (graph, settings, options, log), _),) = calls
    assert graph.name == "sample job"
    assert str(settings.checkpoint.directory) == "checkpoints"
    assert options == StartOptions(
        fresh=False,
        origin="/s/p",
        request="again",
        take_over="inc",
        accept_duplicates=True,
        renamed=(Renaming(old="old", new="new"), Renaming(old="new/a", new="new/b")),
    )
    assert isinstance(log, Log)


def test_without_options_a_job_goes_on(processor_command, reference, engine):
    calls, result = engine
    result["run_job"] = 0
    processor_command("run", reference, *DIRECTORY)
    assert calls[0][1][2] == StartOptions()
    processor_command("run", reference, *DIRECTORY, "--fresh")
    assert calls[1][1][2] == StartOptions(fresh=True)


@pytest.mark.parametrize("code", [0, 1, 130, 143])
def test_the_exit_code_is_the_runtimes(processor_command, reference, engine, code):
    engine[1]["run_job"] = code
    assert processor_command("run", reference, *DIRECTORY).exit_code == code


@pytest.mark.parametrize(
    ("error", "code", "begins"),
    [
        (
            AttemptFailed("too many failures.", remedy="Look."),
            69,
            "error: too many failures.\n  remedy: Look.\n",
        ),
        (Fenced("attempt 4 has taken over."), 0, "attempt 4 has taken over.\n"),
        (EngineBug("offsets grow"), 70, "error: offsets grow\n"),
        (ZeroDivisionError("x"), 70, "error: ZeroDivisionError: x\nTraceback"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_an_error_ends_the_command_with_its_code(processor_command, reference, engine, error, code, begins):
    engine[1]["run_job"] = error
    result = processor_command("run", reference, *DIRECTORY)
    assert result.exit_code == code
    assert result.stderr.startswith(begins)


@pytest.mark.parametrize(
    "arguments", [("--fresh", "--from", "/s"), ("--request", "r")], ids=["both", "request alone"]
)
def test_options_that_contradict_each_other_are_refused(processor_command, reference, engine, arguments):
    result = processor_command("run", reference, *DIRECTORY, *arguments)
    assert result.exit_code == 78
    assert engine[0] == []


def test_run_needs_a_checkpoint_directory_before_it_imports_the_job(processor_command, engine):
    result = processor_command("run", "no_such_module:build")
    assert result.exit_code == 78
    assert "checkpoint.directory is not set" in result.stderr
    assert processor_command("run", "no_such_module:build", *DIRECTORY).exit_code == 64


def test_explain_draws_the_job_and_runs_nothing(processor_command, reference, engine, tmp_path):
    result = processor_command("explain", reference, "--set", "runtime.parallelism=2")
    assert result.exit_code == 0, result.output
    assert "sample job" in result.stdout
    assert "upper" in result.stdout
    assert "2 subtasks" in result.stdout
    assert engine[0] == []
    assert not (tmp_path / "checkpoints").exists()


def test_outboxes_are_listed(processor_command, reference, engine):
    calls, result = engine
    result["list_outboxes"] = [VIEW]
    listed = processor_command("outbox", "list", reference, *DIRECTORY)
    assert listed.exit_code == 0
    assert listed.stdout.splitlines()[1].split() == ["out", "0", "7", "20", "unknown", "2KiB", "no", "marker"]
    result["list_outboxes"] = []
    assert (
        processor_command("outbox", "list", reference, *DIRECTORY).stdout
        == "nothing is decided and unpublished\n"
    )
    assert calls[0][1][0].name == "sample job"


def test_publishing_falls_short_while_something_is_left(processor_command, reference, engine):
    engine[1]["publish_outboxes"] = [VIEW]
    assert processor_command("outbox", "publish", reference, *DIRECTORY).exit_code == 1
    engine[1]["publish_outboxes"] = []
    assert processor_command("outbox", "publish", reference, *DIRECTORY).exit_code == 0


def test_skipping_names_sink_subtask_and_row(processor_command, reference, engine):
    calls, result = engine
    result["skip_row"] = VIEW
    where = ("--sink", "out", "--subtask", "0")
    processor_command("outbox", "skip", reference, *DIRECTORY, *where, "--row", "5")
    processor_command("outbox", "skip", reference, *DIRECTORY, *where)
    assert [named for _, _, named in calls] == [
        {"sink": "out", "subtask": 0, "row": 5},
        {"sink": "out", "subtask": 0, "row": None},
    ]
    assert processor_command("outbox", "skip", reference, *DIRECTORY, "--sink", "out").exit_code == 2
