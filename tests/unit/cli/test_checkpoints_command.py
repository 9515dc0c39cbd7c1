"""``processor checkpoints`` reads a decision log as the storage wrote it."""

from __future__ import annotations

import json
import secrets

import pytest

from processor.ids import (
    NO_CHECKPOINT,
    Attempt,
    CheckpointId,
    FileRef,
    Incarnation,
    JobName,
    KeyGroupRange,
    Marker,
    Place,
    Position,
    PublisherId,
    SplitId,
    StepName,
    SubtaskId,
)
from processor.protocol.entries import (
    CheckpointEntry,
    JobShape,
    OutboxFile,
    Published,
    Rewind,
    Seal,
    SourceState,
    StateFile,
    SubtaskSnapshot,
)
from processor.protocol.messages import Declined
from processor.service.control_place import control_place
from processor.service.control_socket import ControlSocket
from processor.storage.decision_log import DecisionLog
from processor.storage.directory import open_job_directory
from processor.telemetry.log import get_log
from tests.protocol.coordinator_rig import ATTEMPT, READ, Rig, outbox
from tests.unit.service.fake_job import FakeJob

JOB = JobName("counts")
INCARNATION = Incarnation("inc-1")
WHO = PublisherId(JOB, StepName("write"), 0)


def file(name: str, size: int) -> FileRef:
    return FileRef(name=name, bytes=size, sha256="0" * 64)


def checkpoint(place: int, number: int, parent: int) -> CheckpointEntry:
    return CheckpointEntry(
        place=Place(place),
        attempt=Attempt(1),
        nonce=f"n{place}",
        incarnation=INCARNATION,
        job=JOB,
        checkpoint=CheckpointId(number),
        parent=CheckpointId(parent),
        taken_ms=1_900_000_000_000,
        shape=JobShape(max_parallelism=128, parallelism={StepName("read"): 1}, stateful={}),
        subtasks=(
            SubtaskSnapshot(
                subtask=SubtaskId(StepName("read"), 0),
                sources=(
                    SourceState(
                        step=StepName("read"), positions={SplitId("lines/0"): Position(next=4_711, end=5_000)}
                    ),
                ),
                keyed=(
                    StateFile(
                        step=StepName("count"),
                        file=file("a1/read-0/x.state", 2_048),
                        key_groups=KeyGroupRange(0, 128),
                        states={"total": "int"},
                    ),
                ),
                outboxes=(
                    OutboxFile(
                        publisher=WHO, cut=CheckpointId(number), file=file("a1/read-0/y.outbox", 100), rows=17
                    ),
                ),
            ),
        ),
        expected=(
            (WHO, Marker(incarnation=INCARNATION, attempt=Attempt(1), checkpoint=CheckpointId(1), rows=3)),
        ),
    )


@pytest.fixture
def log(tmp_path):
    directory = open_job_directory(tmp_path / "checkpoints", JOB, token=secrets.token_hex)
    return DecisionLog(directory.log)


@pytest.fixture
def written(log):
    log.take(Seal(place=Place(1), attempt=Attempt(1), nonce="n1", incarnation=INCARNATION, job=JOB, sinks=()))
    log.take(checkpoint(2, 1, NO_CHECKPOINT))
    log.take(checkpoint(3, 2, 1))
    log.take(
        Rewind(
            place=Place(4),
            attempt=Attempt(2),
            nonce="n4",
            incarnation=INCARNATION,
            token="again",
            origin="fresh",
            parent=CheckpointId(2),
        )
    )
    log.record_published(Published(incarnation=INCARNATION, attempt=Attempt(1), checkpoint=CheckpointId(2)))


@pytest.fixture
def checkpoints(processor_command):
    def run(*arguments: str):
        return processor_command("checkpoints", *arguments, "--set", "checkpoint.directory=checkpoints")

    return run


def test_every_entry_is_a_line(checkpoints, written):
    result = checkpoints("list", "counts")
    assert result.exit_code == 0
    head, seal, first, second, rewind = result.stdout.splitlines()
    assert head.split() == ["PLACE", "ATTEMPT", "ENTRY", "DECIDED", "STATE", "OUTPUT", "NOTES"]
    assert seal.split()[:3] == ["1", "1", "seal"]
    assert "incarnation inc-1" in seal
    assert "checkpoint 1" in first
    assert "first of its branch" in first
    assert "2KiB" in second
    assert "17 rows" in second
    assert "published" in second
    assert "published" not in first
    assert "to fresh, away from checkpoint 2, request again" in rewind


def test_one_checkpoint_is_shown_whole_and_the_newest_by_default(checkpoints, written):
    result = checkpoints("show", "counts")
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    for part in (
        "checkpoint 2",
        "parent 1",
        "maximum parallelism 128",
        "notes published",
        "read lines/0 next 4711 of 5000",
        "count[0] key groups 0-127 2KiB total: int a1/read-0/x.state",
        "write[0] 17 rows 100B cut at checkpoint 2 a1/read-0/y.outbox",
        "counts.write.0 checkpoint 1 with 3 rows by attempt 1 of incarnation inc-1",
    ):
        assert part in text, part
    assert "parent none" in " ".join(checkpoints("show", "counts", "1").stdout.split())


@pytest.fixture
def running(tmp_path):
    """The job runs: it has published checkpoint 11, and given 12 up."""
    rig = Rig()
    rig.complete(rig.start(), outbox(11))
    declined = rig.start()
    rig.do(Declined(attempt=ATTEMPT, checkpoint=declined, subtask=READ, reason="disk full"))
    job = FakeJob()
    job.statistics = rig.statistics
    server = ControlSocket(job, control_place(tmp_path / "checkpoints", JOB), get_log("test"))
    server.start()
    yield rig
    server.close()


def test_a18_of_a_running_job_it_shows_how_all_went_and_the_newest_that_is_kept(
    checkpoints, written, running
):
    result = checkpoints("show", "counts")
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    for part in (
        "triggered 2",
        "published 1",
        "given up: declined 1",
        "failed checkpoint 12",
        "of the last 1 that were published: MIN AVERAGE P50",
        "given-up: declined",
        "checkpoint 2 parent 1",  # what is kept
    ):
        assert part in text, part


def test_a18_of_one_that_is_remembered_it_shows_every_subtasks_part_though_nothing_of_it_is_kept(
    checkpoints, written, running
):
    text = " ".join(checkpoints("show", "counts", "11").stdout.split())
    for part in ("status completed", "acknowledged 2 of 2", "read[0] 0ms", "write[0] 0ms"):
        assert part in text, part
    text = " ".join(checkpoints("show", "counts", "12").stdout.split())
    assert "why subtask read[0] declined: disk full" in text
    assert checkpoints("show", "counts", "77").exit_code == 64


def test_a18_for_programs_it_is_one_object_whether_the_job_runs_or_not(checkpoints, written, running):
    told = json.loads(checkpoints("show", "counts", "11", "--json").stdout)
    assert told["running"] is True
    assert told["kept"] is None
    assert told["statistics"]["counts"]["given_up"] == {"declined": 1}
    assert [part["subtask"]["chain"] for part in told["statistics"]["asked"]["record"]["parts"]] == [
        "read",
        "write",
    ]


def test_a18_of_a_stopped_job_it_shows_what_is_kept(checkpoints, written):
    told = json.loads(checkpoints("show", "counts", "--json").stdout)
    assert (told["running"], told["statistics"]) == (False, None)
    assert told["kept"]["checkpoint"] == 2
    assert told["published"]["checkpoint"] == 2


def test_a_checkpoint_that_is_not_kept_is_refused_with_those_that_are(checkpoints, written):
    result = checkpoints("show", "counts", "7")
    assert result.exit_code == 64
    assert "job 'counts' has no checkpoint 7" in result.stderr
    assert "Choose one that is kept: 1, 2." in result.stderr


def test_an_empty_log_is_no_error_to_list_and_one_to_show(checkpoints, log):
    assert checkpoints("list", "counts").stdout == "the decision log is empty\n"
    result = checkpoints("show", "counts")
    assert result.exit_code == 64
    assert "no decided checkpoint" in result.stderr


def test_looking_at_a_job_that_is_not_there_makes_nothing(checkpoints, tmp_path):
    result = checkpoints("list", "counts")
    assert result.exit_code == 78
    assert "there are no checkpoints of job 'counts'" in result.stderr
    assert not (tmp_path / "checkpoints").exists()


def test_a_damaged_entry_is_named(checkpoints, written, tmp_path):
    entry = sorted((tmp_path / "checkpoints" / "counts" / "log").glob("*.entry"))[1]
    content = bytearray(entry.read_bytes())
    content[len(content) // 2] ^= 1
    entry.chmod(0o600)
    entry.write_bytes(content)
    result = checkpoints("list", "counts")
    assert result.exit_code == 66
    assert "place 2" in result.stderr
