"""The newest checkpoint can't be read: back to its parent if nothing of it is out, a stop by name else (R8)."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from processor.errors import DamagedFile
from processor.ids import FileRef, JobName
from processor.protocol.entries import CheckpointEntry
from processor.storage.decision_log import DecisionLog
from processor.storage.directory import open_job_directory
from processor.storage.layout import FILES_FOLDER
from tests.damage.ways import flipped
from tests.integration.scenario import STOP_TIMEOUT_S, Scenario
from tests.kill_budget import budgeted

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

END_TIMEOUT_S = 60.0
RECORDS = 200
"""Of each input partition and round: several transactions of the scenario's size."""

NOTHING_OUT = "recovery-opening:1,taken-over-marker-not-read:1"
SOME_OUT = "recovery-opening:1,chunk-published:1"

DAMAGES = [(what, how) for what in ("state", "outbox") for how in ("flipped", "cut", "deleted")]
DAMAGED_BEFORE_PUBLISHING = budgeted([("state", "flipped")], DAMAGES)


def newest(scenario: Scenario) -> tuple[CheckpointEntry, CheckpointEntry]:
    """The newest checkpoint and its parent."""
    directory = open_job_directory(
        scenario.checkpoints, JobName(scenario.job_name), token=secrets.token_hex, make=False
    )
    view = DecisionLog(directory.log).read_all()
    entry = view.newest()
    assert entry is not None
    parent = view.parent_of(entry)
    assert parent is not None
    return entry, parent


def one_file(scenario: Scenario, what: str) -> Path:
    """A file with state, or with output, that only the newest checkpoint has."""
    entry, parent = newest(scenario)
    files = [
        file.file
        for subtask in entry.subtasks
        for file in (subtask.keyed if what == "state" else subtask.outboxes)
    ]
    refs: list[FileRef] = [ref for ref in files if ref not in parent.files()]
    assert refs, f"the newest checkpoint has no {what} of its own"
    return scenario.checkpoints / scenario.job_name / FILES_FOLDER / refs[0].name


def damage(file: Path, how: str) -> None:
    content = file.read_bytes()
    middle = len(content) // 2
    match how:
        case "flipped":
            file.write_bytes(flipped(content, middle))
        case "cut":
            file.write_bytes(content[:middle])
        case "deleted":
            file.unlink()
        case _:
            raise AssertionError(how)


@pytest.mark.kill(len(DAMAGED_BEFORE_PUBLISHING))
def test_r08_goes_back_exactly_to_the_parent_when_nothing_is_out(kafka: str, tmp_path: Path) -> None:
    scenario = Scenario.make(kafka, tmp_path, job="count", backend="rocksdb")
    scenario.feed(RECORDS)
    process = scenario.process()
    process.start()
    scenario.drain(process)
    assert process.stop(STOP_TIMEOUT_S) == 0, process.said()
    for number, (what, how) in enumerate(DAMAGED_BEFORE_PUBLISHING, start=1):
        scenario.feed(RECORDS // 4, first=RECORDS + (number - 1) * (RECORDS // 4))
        scenario.killed_at(NOTHING_OUT)
        file = one_file(scenario, what)
        damage(file, how)
        assert scenario.fault_log.read_text().count("checkpoint can't be read") == number - 1
    process = scenario.process("after")
    process.start()
    scenario.finish(process)
    assert "checkpoint can't be read" in process.said()


@pytest.mark.kill
def test_r08_stops_and_names_the_file_when_some_of_it_is_out(kafka: str, tmp_path: Path) -> None:
    scenario = Scenario.make(kafka, tmp_path, job="count")
    scenario.feed(RECORDS)
    scenario.killed_at(SOME_OUT)
    for what, how in DAMAGES:
        file = one_file(scenario, what)
        content = file.read_bytes()
        damage(file, how)
        process = scenario.process(f"{what}-{how}")
        process.start()
        code = process.wait(END_TIMEOUT_S)
        assert code == DamagedFile.exit_code, process.said()
        error = process.said().partition("error: ")[2]
        assert file.name in error, process.said()
        assert "published already" in error, process.said()
        file.write_bytes(content)
    process = scenario.process("mended")
    process.start()
    scenario.finish(process)
