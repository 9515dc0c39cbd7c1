"""A job's directory is its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from processor.errors import DamagedFile, JobError, SettingsError
from processor.ids import Attempt, JobName, StepName, SubtaskId
from processor.storage.directory import (
    look_into_directory,
    make_savepoint_directory,
    open_job_directory,
)
from processor.storage.layout import (
    NAME_PART_BYTES_MAX,
    FileKind,
    attempt_of,
    entry_name,
    file_name,
    job_folder,
    place_of,
    safe_parts,
)
from tests.unit.storage.disks import LossyDisk, Tokens


def opened(root: Path, job: str = "counts", *, start: int = 0, **more):
    return open_job_directory(root, JobName(job), token=Tokens(start), **more)


def test_a_directory_is_made_once_and_found_again(tmp_path):
    root = tmp_path / "not" / "there"
    first = opened(root)
    assert first.log.take(1, b"x")
    again = opened(root, start=1000)
    assert again.log.read(1) == b"x"
    assert again.files.names("") == []
    assert sorted(path.name for path in again.path.iterdir()) == ["files", "job.json", "log"]


def test_jobs_side_by_side_do_not_meet(tmp_path):
    for job in ("a", "a.b", "a/b", "A", "..", "ä", "a b"):
        assert opened(tmp_path, job).log.take(1, job.encode())
    for job in ("a", "a.b", "a/b", "A", "..", "ä", "a b"):
        directory = opened(tmp_path, job)
        assert directory.path.parent == tmp_path
        assert directory.log.read(1) == job.encode()


def test_the_checkpoint_directory_of_another_job_is_refused_by_both_names(tmp_path):
    opened(tmp_path, "old")
    (tmp_path / "old").rename(tmp_path / "new")
    with pytest.raises(SettingsError, match=r"belongs to job 'old', and this is job 'new'"):
        opened(tmp_path, "new")
    assert (tmp_path / "new" / "job.json").read_text().count("old") == 1


@pytest.mark.parametrize("job", ["old", "new"])
def test_a_root_that_is_itself_the_directory_of_a_job_is_refused(tmp_path, job):
    opened(tmp_path, "old")
    with pytest.raises(SettingsError, match=rf"directory of job 'old'; it cannot hold that of job '{job}'"):
        opened(tmp_path / "old", job)
    assert not (tmp_path / "old" / job).exists()


def test_an_identity_that_cannot_be_read_is_refused(tmp_path):
    directory = opened(tmp_path)
    for content in ("", "{}", '{"format": 2, "job": "counts"}'):
        (directory.path / "job.json").write_text(content)
        with pytest.raises(SettingsError, match=r"job\.json"):
            opened(tmp_path)


def test_looking_writes_nothing_and_says_when_there_is_nothing(tmp_path):
    with pytest.raises(SettingsError, match=r"no checkpoints of job 'counts' under .*checkpoint\.directory"):
        opened(tmp_path, make=False)
    assert list(tmp_path.iterdir()) == []
    opened(tmp_path).log.take(1, b"x")
    assert opened(tmp_path, make=False).log.read(1) == b"x"


def test_a_root_that_cannot_be_one_is_an_error_of_the_setting(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match=r"file.*cannot be used.*checkpoint\.directory"):
        opened(tmp_path / "file")
    with pytest.raises(SettingsError, match="cannot be used"):
        opened(tmp_path / "file" / "inner")


@pytest.mark.parametrize("linked", ["counts", "counts/files", "counts/log"])
def test_a_link_in_place_of_a_jobs_folder_is_refused(tmp_path, linked):
    opened(tmp_path / "elsewhere").log.take(1, b"x")
    root = tmp_path / "root"
    opened(root).log.take(2, b"x")
    (root / linked).rename(tmp_path / "moved")
    (root / linked).symlink_to(tmp_path / "elsewhere" / linked)
    with pytest.raises((SettingsError, DamagedFile), match=linked):
        opened(root).log.read(1)


def test_a_root_that_is_a_link_is_the_operators_choice(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "root").symlink_to(tmp_path / "disk")
    assert opened(tmp_path / "root").path == tmp_path / "disk" / "counts"


def test_a_new_directory_survives_a_power_cut(tmp_path):
    disk = LossyDisk()
    root = tmp_path / "checkpoints"
    directory = opened(root, disk=disk)
    directory.log.take(1, b"x")
    disk.power_cut(tmp_path)
    again = opened(root, make=False)
    assert again.log.read(1) == b"x"
    assert again.files.names("") == []


def test_folders_that_an_earlier_start_made_and_did_not_sync_become_durable(tmp_path):
    disk = LossyDisk()
    with_parent = os.open(tmp_path, os.O_RDONLY)
    disk.make_folder(with_parent, "checkpoints")  # and there the earlier start died
    os.close(with_parent)
    opened(tmp_path / "checkpoints", disk=disk).log.take(1, b"x")
    disk.power_cut(tmp_path)
    assert opened(tmp_path / "checkpoints", make=False).log.read(1) == b"x"


@pytest.mark.parametrize("job", ["", "x" * (NAME_PART_BYTES_MAX + 1), "ä" * 40])
def test_a_name_that_is_no_path_is_refused_with_its_length(job):
    with pytest.raises(JobError, match="cannot be part of a path"):
        job_folder(Path("root"), JobName(job))


def test_r22_file_names_tell_their_attempt_and_stay_inside():
    for chain in ("count", "../../etc", "a/b", "x.y", "Zähler"):
        name = file_name(Attempt(12), SubtaskId(StepName(chain), 3), "token", FileKind.OUTBOX)
        assert attempt_of(name) == 12
        assert len(safe_parts(name) or ()) == 3
        assert name.endswith("-3/token.outbox")
    for foreign in ("x/a1/y", "a1", "b1/x", "a/x", "a1x/y", "a-1/x"):
        assert attempt_of(foreign) is None


def test_places_are_found_in_file_names_that_sort_like_them():
    names = [entry_name(place) for place in (1, 9, 10, 10**15)]
    assert names == sorted(names)
    assert [place_of(name) for name in names] == [1, 9, 10, 10**15]
    assert place_of(entry_name(0)) is None


def test_a_savepoint_directory_is_new_and_is_found_by_its_path(tmp_path):
    path = tmp_path / "savepoints" / "one"
    made = make_savepoint_directory(path, JobName("counts"), token=Tokens())
    ref = made.files.create("a1/count-0/x.state").finish()
    made.log.take(1, b"x")
    found = look_into_directory(path, token=Tokens())
    assert found is not None
    assert found.log.read(1) == b"x"
    found.files.verify(ref)
    with pytest.raises(SettingsError, match=r"one' is not empty"):
        make_savepoint_directory(path, JobName("counts"), token=Tokens())


def test_a_directory_that_is_neither_a_jobs_nor_a_savepoint_is_none_and_stays_untouched(tmp_path):
    assert look_into_directory(tmp_path, token=Tokens()) is None
    assert look_into_directory(tmp_path / "not there", token=Tokens()) is None
    assert list(tmp_path.iterdir()) == []
