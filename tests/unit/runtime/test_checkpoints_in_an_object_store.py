"""A whole job, its checkpoints in an S3 server: killed, answered late or not at all, every line is out once."""

from __future__ import annotations

import pytest

from processor.errors import Unavailable
from processor.fault_points import FaultPoint
from processor.ids import JobName
from processor.runtime.daemon import run_job
from processor.runtime.start_options import StartOptions
from processor.settings.model import CheckpointSettings, RuntimeSettings, Settings
from processor.storage.decision_log import DecisionLog
from processor.storage.job_store import open_job_store
from processor.storage.places import Places, places_of
from processor.telemetry.log import get_log
from tests.s3_server import S3Server, lose_the_answer, serve_twice
from tests.unit.runtime.kit import JobRun, Once, raising
from tests.unit.storage.disks import Tokens
from tests.unit.task.kit import ListSource

EXPECTED = [b"A", b"B", b"C"]


def bounded() -> ListSource:
    return ListSource({"lines/0": ["a", "b", "c"]}, bounded=True)


def places(s3: S3Server) -> Places:
    location = s3.location(s3.bucket())
    return Places(files=location, log=location, stores=s3.settings())


@pytest.mark.parametrize(
    "point",
    [
        FaultPoint.STATE_WRITTEN_OUTBOX_NOT,
        FaultPoint.ALL_WRITTEN_NOT_ACKNOWLEDGED,
        FaultPoint.ENTRY_SYNCED_NOT_LINKED,
        FaultPoint.LINKED_DIRECTORY_NOT_SYNCED,
        FaultPoint.ENTRY_TAKEN_NOT_TOLD,
        FaultPoint.PUBLISHED_NOT_RECORDED,
        FaultPoint.OLDER_HALF_DELETED,
        FaultPoint.RECOVERY_SEALED,
    ],
)
def test_r06_a_job_that_fails_at_any_point_has_written_every_line_once(s3, tmp_path, point):
    for number in (1, 2):
        run = JobRun(tmp_path / str(number), source=bounded(), places=places(s3))
        run.faults = Once(point, raising(Unavailable("killed here")), number)
        assert run.run() == 0
        assert run.out() == EXPECTED


@pytest.mark.parametrize("fault", [lose_the_answer, serve_twice])
@pytest.mark.parametrize("place", range(1, 5))
def test_r06_an_entry_whose_answer_is_lost_or_doubled_costs_nothing(s3, tmp_path, fault, place):
    run = JobRun(tmp_path, source=bounded(), places=places(s3))
    name = f"{place:016d}.entry"
    s3.once("PUT", name, fault)
    assert run.run() == 0
    assert run.out() == EXPECTED
    assert len(s3.puts(name)) > (fault is lose_the_answer)
    assert run.run() == 0
    assert run.out() == EXPECTED


def test_r23_a_savepoint_of_a_job_in_an_object_store_is_a_directory_one_can_start_from(s3, tmp_path):
    where, saved = places(s3), str(tmp_path / "saved")
    run = JobRun(tmp_path / "first", places=where)
    run.ask(lambda control, answer: control.stop(saved, answer))
    assert run.run() == 0
    assert run.answers[0].path == saved
    again = JobRun(
        tmp_path / "second", source=run.source, outside=run.outside, chance=run.chance, places=places(s3)
    )
    again.ask(lambda control, answer: control.stop(None, answer))
    assert again.run(origin=saved, accept_duplicates=True, take_over=run.log.read_all().incarnation) == 0
    assert again.out() == EXPECTED


def test_r05_the_daemon_itself_runs_with_files_in_a_bucket_and_its_log_in_a_directory(s3, tmp_path):
    """As the command line starts it, with the two-writer test, signals and the control socket."""
    run = JobRun(tmp_path / "unused", source=bounded())
    settings = Settings(
        checkpoint=CheckpointSettings(
            directory=s3.location(s3.bucket()),
            log_directory=tmp_path / "log",
            interval="20ms",
            initial_delay_max="0ms",
        ),
        stores=s3.settings(),
        runtime=RuntimeSettings(control_directory=tmp_path / "control"),
    )
    for _ in range(2):  # the second start finds what the first one left
        assert run_job(run.job().graph(), settings, StartOptions(), get_log("test")) == 0
        assert run.out() == EXPECTED
    store = open_job_store(places_of(settings), JobName("echo"), token=Tokens(), make=False)
    entry = DecisionLog(store.log).read_all().newest()
    assert entry is not None
    for ref in entry.files():
        store.files.verify(ref)
    assert sorted(path.name for path in (tmp_path / "control" / "echo").iterdir()) == []
    assert sorted(path.name for path in (tmp_path / "log" / "echo").iterdir()) == [
        "files",
        "job.json",
        "log",
        "notes",
    ]
    assert list((tmp_path / "log" / "echo" / "files").iterdir()) == []
