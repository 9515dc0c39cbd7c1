"""The disk of the checkpoints is full: checkpoints fail, the job lives, nothing partial is read."""

from __future__ import annotations

import errno

import pytest

from processor.contracts.job_control import Outcome
from processor.errors import JobError, Unavailable
from processor.savepoint import open_savepoint, verify_files
from processor.storage.decision_log import DecisionLog
from processor.storage.directory import open_job_directory
from processor.storage.retention import condemned
from tests.damage.job import told
from tests.unit.runtime.kit import JobRun
from tests.unit.storage.disks import FailingDisk, Tokens
from tests.unit.task.kit import ListSource, Outside

WORDS = ["ax", "by", "ax", "ay", "bx", "cz"]


class FullDisk(FailingDisk):
    """No change succeeds while it is full."""

    def __init__(self) -> None:
        super().__init__(failing=0)
        self.full = False

    def _change(self, act: str) -> bool:
        self.changes += 1
        return self.full


def bounded() -> ListSource:
    return ListSource({"lines/0": list(WORDS)}, bounded=True)


def every_kept_checkpoint_is_whole(run: JobRun) -> int:
    """By another handle: every file that an entry names and no entry condemns is as it was written."""
    store = open_job_directory(run.root, run.plan.job, token=Tokens(), make=False)
    view = DecisionLog(store.log).read_all()
    gone = condemned(view)
    outboxes = {file.name for entry in view.checkpoints() for file in entry.files()} - {
        file.name for entry in view.checkpoints() for part in entry.subtasks for file in part.state_files()
    }
    for entry in view.checkpoints():
        for ref in entry.files():
            if ref.name not in gone and ref.name not in outboxes:
                store.files.verify(ref)
    return len(view.checkpoints())


def test_r08_a_disk_that_is_full_at_any_one_write_costs_a_checkpoint_at_most(tmp_path):
    """For every change that a whole run makes on the disk, from the identity of the job to its last entry."""
    failing, done, expected = 0, False, None
    while not done:
        root, disk, outside = tmp_path / str(failing), FailingDisk(failing, errno.ENOSPC), Outside()

        def run(root=root, disk=disk, outside=outside) -> JobRun:
            return JobRun(
                root,
                source=bounded(),
                outside=outside,
                build=told,
                checkpoint={"interval": "10m"},
                disk=disk,
            )

        try:
            made = run()
        except Unavailable:  # before anything runs: whoever started it is told, and starts it again
            made = run()
        assert made.run() == 0
        assert every_kept_checkpoint_is_whole(made) >= 1
        rows = sorted(row or b"" for row in outside.rows())
        expected = expected or rows
        assert rows == expected, f"after {disk.hit} {failing}"
        done = failing > 0 and not disk.hit
        failing += 1
    assert failing > 40


@pytest.mark.parametrize("backend", ["memory", "rocksdb"])
def test_a_disk_that_stays_full_for_a_while_fails_checkpoints_and_not_the_job(tmp_path, backend):
    disk, answers, saved = FullDisk(), list[Outcome](), tmp_path / "saved"
    source = ListSource({"lines/0": []}, bounded=True, ends={"lines/0": 400})
    run = JobRun(
        tmp_path / "root",
        source=source,
        build=told,
        parallelism=2,
        checkpoint={"interval": "10m", "tolerated_failures": 10},
        backend={"backend": backend, "directory": tmp_path / "local"},
        disk=disk,
    )

    def answered(outcome: Outcome) -> None:
        answers.append(outcome)
        disk.full = bool(good(answers)) and len(bad(answers)) < 4

    asked = 0

    def on_poll() -> None:
        nonlocal asked
        if len(good(answers)) == 3:
            source.records["lines/0"] += WORDS * 100
        elif asked == len(answers):
            source.records["lines/0"] += WORDS
            asked += 1
            if asked % 2:
                run.control.savepoint(str(saved / str(asked)), answered)
            else:
                run.control.checkpoint(answered)

    source.on_poll = on_poll
    assert run.run() == 0
    assert [bool(outcome.refused) for outcome in answers] == [False, True, True, True, True, False, False]
    assert run.control.restarts == 0
    assert every_kept_checkpoint_is_whole(run) >= 2
    for number in (1, 7):
        assert not verify_files(open_savepoint(str(saved / str(number)))).damage
    for number in (3, 5):
        with pytest.raises(JobError, match="is neither a savepoint"):
            open_savepoint(str(saved / str(number)))


def good(answers: list[Outcome]) -> list[Outcome]:
    return [outcome for outcome in answers if not outcome.refused]


def bad(answers: list[Outcome]) -> list[Outcome]:
    return [outcome for outcome in answers if outcome.refused]
