"""An entry of the log is there whole and durable, or not there; a place is taken once (R5, R6)."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path

import pytest

from processor.errors import DamagedFile, EngineBug, ExternalRefusal, Unavailable
from processor.fault_points import FaultPoint
from processor.storage.directory_log import DirectoryLog
from processor.storage.disk import Disk
from tests.unit.storage.disks import AnswerLostDisk, FailingDisk, LossyDisk, Tokens

CHANGES_OF_A_TAKE = 7
"""Make the folder, sync it, create, write, sync, link, sync."""


class Killed(BaseException):
    """The process ends here."""


def kill_at(wanted: FaultPoint):
    def hook(point: FaultPoint) -> None:
        if point is wanted:
            raise Killed

    return hook


def log_of(root: Path, *, start: int = 0, **more) -> DirectoryLog:
    return DirectoryLog(root, token=Tokens(start), **more)


def test_entries_and_notes_are_for_their_owner_only(tmp_path):
    old = os.umask(0)
    try:
        log = log_of(tmp_path)
        log.take(1, b"x")
        log.put_note("published", b"x")
    finally:
        os.umask(old)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert all(mode == (0o700 if path.is_dir() else 0o600) for path, mode in modes.items())
    assert len(modes) == 4


@pytest.mark.parametrize(
    ("point", "taken"),
    [(FaultPoint.ENTRY_SYNCED_NOT_LINKED, False), (FaultPoint.LINKED_DIRECTORY_NOT_SYNCED, True)],
)
def test_r05_a_writer_killed_on_the_way_leaves_a_whole_entry_or_none(tmp_path, point, taken):
    with pytest.raises(Killed):
        log_of(tmp_path, faults=kill_at(point)).take(1, b"whole")
    after = log_of(tmp_path, start=1000)
    assert after.listed() == ([1] if taken else [])
    assert after.read(1) == (b"whole" if taken else None)
    assert after.take(1, b"other") is not taken
    after.take(2, b"next")
    assert sorted(path.name for path in (tmp_path / "log").iterdir()) == [
        "0000000000000001.entry",
        "0000000000000002.entry",
    ]


def test_r05_what_dead_writers_left_is_swept_only_where_the_place_is_taken(tmp_path):
    dead = log_of(tmp_path, faults=kill_at(FaultPoint.ENTRY_SYNCED_NOT_LINKED))
    for place in (1, 5):
        with pytest.raises(Killed):
            dead.take(place, b"dead")
    log_of(tmp_path, start=1000).take(1, b"seal")
    left = sorted(path.name for path in (tmp_path / "log").iterdir())
    assert [name.partition(".")[0] for name in left] == ["0000000000000001", "0000000000000005"]
    assert left[1].endswith(".tmp")


def test_r05_a_writer_whose_temporary_file_was_swept_loses(tmp_path):
    def overtaken(point: FaultPoint) -> None:
        if point is FaultPoint.ENTRY_SYNCED_NOT_LINKED:
            newer = log_of(tmp_path, start=1000)
            newer.take(1, b"newer")

    assert not log_of(tmp_path, faults=overtaken).take(1, b"older")
    assert log_of(tmp_path).read(1) == b"newer"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_r06_a_disk_that_fails_leaves_the_place_free_or_the_entry_whole(tmp_path, number):
    failing = 0
    unknown_but_taken = 0
    while True:
        failing += 1
        root = tmp_path / str(failing)
        root.mkdir()
        disk = FailingDisk(failing, number)
        log = log_of(root, disk=disk)
        if failing > CHANGES_OF_A_TAKE:
            assert log.take(1, b"whole")
            assert not disk.hit
            break
        with pytest.raises(Unavailable, match=re.escape(str(root))):
            log.take(1, b"whole")
        after = log_of(root, start=1000)
        found = after.read(1)
        assert found in (None, b"whole")
        unknown_but_taken += found is not None
        assert after.take(1, b"again") is (found is None)
        assert [name for name in os.listdir(root / "log") if name.endswith(".tmp")] == []
    assert unknown_but_taken == 1  # the link was made and the sync of the folder failed


def test_r06_a_lost_answer_is_an_unknown_outcome(tmp_path):
    with pytest.raises(Unavailable):
        log_of(tmp_path, disk=AnswerLostDisk()).take(1, b"mine")
    assert log_of(tmp_path).read(1) == b"mine"


def test_r05_a_taken_entry_survives_a_power_cut(tmp_path):
    disk = LossyDisk()
    log = log_of(tmp_path, disk=disk)
    assert log.take(1, b"one")
    log.put_note("published", b"first")
    log.put_note("published", b"second")
    disk.power_cut(tmp_path)
    after = log_of(tmp_path, start=1000)
    assert after.read(1) == b"one"
    assert after.get_note("published") == b"second"


def test_r05_an_entry_that_was_not_acknowledged_is_whole_or_gone_after_a_power_cut(tmp_path):
    for point in (FaultPoint.ENTRY_SYNCED_NOT_LINKED, FaultPoint.LINKED_DIRECTORY_NOT_SYNCED):
        root = tmp_path / point
        root.mkdir()
        disk = LossyDisk()
        with pytest.raises(Killed):
            log_of(root, disk=disk, faults=kill_at(point)).take(1, b"one")
        disk.power_cut(root)
        assert log_of(root, start=1000).read(1) is None


def test_r05_the_loser_makes_the_winners_entry_durable(tmp_path):
    """Who is told "exists" builds on that entry: it must not vanish below what is built on it."""
    disk = LossyDisk()
    with pytest.raises(Killed):
        log_of(tmp_path, disk=disk, faults=kill_at(FaultPoint.LINKED_DIRECTORY_NOT_SYNCED)).take(1, b"one")
    assert not log_of(tmp_path, start=1000, disk=disk).take(1, b"two")
    disk.power_cut(tmp_path)
    assert log_of(tmp_path, start=2000).read(1) == b"one"


def test_a_file_system_without_hard_links_is_refused_by_name(tmp_path):
    class NoLinks(Disk):
        def link(self, folder: int, name: str, new_name: str) -> None:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    with pytest.raises(ExternalRefusal, match="no hard links"):
        log_of(tmp_path, disk=NoLinks()).take(1, b"x")
    assert os.listdir(tmp_path / "log") == []


def test_an_entry_that_is_a_link_is_damage(tmp_path):
    log = log_of(tmp_path)
    log.take(1, b"x" * 100)
    (tmp_path / "log" / "0000000000000002.entry").symlink_to(tmp_path / "log" / "0000000000000001.entry")
    with pytest.raises(DamagedFile, match=r"0000000000000002\.entry"):
        log.read(2)


def test_r17_a_note_is_replaced_whole_at_every_failure(tmp_path):
    log_of(tmp_path).put_note("published", b"old")
    failing = 0
    while True:
        failing += 1
        disk = FailingDisk(failing)
        log_of(tmp_path).put_note("published", b"old")
        try:
            log_of(tmp_path, start=failing * 1000, disk=disk).put_note("published", b"new")
        except Unavailable:
            assert log_of(tmp_path).get_note("published") in (b"old", b"new")
            assert os.listdir(tmp_path / "notes") == ["published"]
        else:
            break
    assert failing > 4
    assert log_of(tmp_path).get_note("published") == b"new"
    assert log_of(tmp_path).get_note("other") is None
    with pytest.raises(EngineBug):
        log_of(tmp_path).put_note("../log/0000000000000001.entry", b"")
