"""Files of checkpoints on a disk: durable or not there; nothing leads out of the root. The contract that all stores
keep is tested in test_file_stores."""

from __future__ import annotations

import errno
import os
import re
import stat
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

from processor.errors import DamagedFile, Unavailable
from processor.ids import FileRef
from processor.storage.directory_files import DirectoryFiles
from processor.storage.disk import Disk
from tests.unit.storage.disks import FailingDisk, LossyDisk
from tests.unit.storage.written_files import WHOLE, read, write

CHANGES_OF_A_FILE = 9
"""Two folders made and synced, create, two writes with content, content and name synced."""


def test_files_and_folders_are_for_their_owner_only(tmp_path):
    old = os.umask(0)
    try:
        write(DirectoryFiles(tmp_path))
    finally:
        os.umask(old)
    for path in tmp_path.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


def test_links_are_not_followed(tmp_path):
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "a1").mkdir(parents=True)
    outside.mkdir()
    (outside / "x.state").write_bytes(b"secret")
    (root / "a1" / "folder").symlink_to(outside)
    (root / "a1" / "file.state").symlink_to(outside / "x.state")
    files = DirectoryFiles(root)
    digest = sha256(b"secret").hexdigest()
    for name in ("a1/folder/x.state", "a1/file.state"):
        with pytest.raises(DamagedFile, match=name):
            read(files, FileRef(name=name, bytes=6, sha256=digest))
    with pytest.raises(DamagedFile):
        files.create("a1/folder/new.state")
    files.delete("a1/file.state")
    assert sorted(path.name for path in outside.iterdir()) == ["x.state"]


def test_what_is_no_file_is_damage_and_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe.state")
    (tmp_path / "folder.state").mkdir()
    files = DirectoryFiles(tmp_path)
    for name in ("pipe.state", "folder.state"):
        with pytest.raises(DamagedFile, match=name):
            read(files, FileRef(name=name, bytes=0, sha256=sha256(b"").hexdigest()))


def test_a_sector_that_cannot_be_read_is_damage(tmp_path):
    class BadSector(Disk):
        def read(self, file: int, length: int) -> bytes:
            raise OSError(errno.EIO, "Input/output error")

    ref = write(DirectoryFiles(tmp_path))
    with pytest.raises(DamagedFile, match="cannot be read from its disk"):
        read(DirectoryFiles(tmp_path, BadSector()), ref)


def test_deleting_leaves_no_empty_folders(tmp_path):
    files = DirectoryFiles(tmp_path)
    names = ["a1/b-0/2", "a1/b-0/1", "a10/b-0/1", "a1/c-1/1"]
    for name in names:
        write(files, name, [b""])
    for name in names:
        files.delete(name)
    assert list(tmp_path.iterdir()) == []
    write(files, names[0], [b"again"])
    assert files.names("") == [names[0]]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_a_disk_that_fails_at_any_change_leaves_nothing_partial(tmp_path, number):
    """For every change that creating and writing a file makes: it fails, is named, and leaves no file."""
    failing = 0
    while True:
        failing += 1
        root = tmp_path / str(failing)
        root.mkdir()
        disk = FailingDisk(failing, number)
        files = DirectoryFiles(root, disk)
        if failing > CHANGES_OF_A_FILE:
            ref = write(files)
            assert not disk.hit
            assert read(files, ref) == WHOLE
            break
        with pytest.raises(Unavailable, match=re.escape(str(root))):
            write(files)
        assert DirectoryFiles(root).names("") == []


def test_a_file_that_was_acknowledged_survives_a_power_cut(tmp_path):
    disk = LossyDisk()
    files = DirectoryFiles(tmp_path, disk)
    refs = [write(files, f"a1/count-{n}/{n}.state", [bytes([n])]) for n in range(3)]
    started = files.create("a1/count-0/not-finished.state")
    started.write(b"x")
    disk.power_cut(tmp_path)
    started.discard()
    for ref in refs:
        DirectoryFiles(tmp_path).verify(ref)
    assert DirectoryFiles(tmp_path).names("") == [ref.name for ref in refs]


@pytest.mark.parametrize("forgotten", ["content", "name", "folder"])
def test_the_power_cut_above_would_notice_a_sync_that_is_missing(tmp_path, forgotten):
    class Forgetful(LossyDisk):
        def sync(self, descriptor: int) -> None:
            path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
            kind = "content" if path.is_file() else "name" if path.name == "count-0" else "folder"
            if kind != forgotten:
                super().sync(descriptor)

    disk = Forgetful()
    ref = write(DirectoryFiles(tmp_path, disk))
    disk.power_cut(tmp_path)
    with pytest.raises(DamagedFile):
        DirectoryFiles(tmp_path).verify(ref)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_disk_that_is_really_full_leaves_nothing_to_read(tmp_path):
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)], capture_output=True, text=True
    )
    if mount.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {mount.stderr.strip()}")
    try:
        files = DirectoryFiles(tmp_path)
        kept = write(files, "a1/count-0/small.state")
        with pytest.raises(Unavailable, match=r"large\.state.*No space left.*Make room"):
            write(files, "a1/count-0/large.state", [b"x" * 10_000] * 20)
        assert files.names("") == [kept.name]
        assert read(files, kept) == WHOLE
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
