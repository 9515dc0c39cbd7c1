"""RocksDB's scratch directories: gone at the end, and those of the dead removed, but of nobody else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from processor.errors import SettingsError
from processor.ids import CheckpointId
from processor.state.backends import RocksDbBackend
from processor.state.rocksdb_directory import LocalDirectories
from processor.state.rocksdb_store import RocksDbOptions
from tests.unit.state.fakes import Place, PlainSnapshots, keys_of, make_backend

REPOSITORY = Path(__file__).parents[3]

OWNER = """
import sys
from pathlib import Path
from processor.state.rocksdb_directory import LocalDirectories
directories = LocalDirectories(Path(sys.argv[1]))
directories.make("x").mkdir()
print("ready", flush=True)
sys.stdin.read()
"""


def start_owner(root: Path) -> subprocess.Popen[str]:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(root)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    assert owner.stdout.readline() == "ready\n"
    return owner


def owned(root: Path) -> set[str]:
    return {path.name for path in root.iterdir() if path.is_dir()}


def end(owner: subprocess.Popen[str], sign: int = signal.SIGKILL) -> None:
    owner.send_signal(sign)
    owner.wait()
    for pipe in (owner.stdin, owner.stdout):
        if pipe is not None:
            pipe.close()


def test_a_closed_state_leaves_nothing_on_the_disk(tmp_path):
    place = Place()
    backend = make_backend("rocksdb", tmp_path / "deep" / "root")
    one, two = (backend.open(place.request({"n": int}, index=i, parallelism=2)) for i in range(2))
    for key in keys_of(0, 2):
        one.table("n").put(key, key)
    one.cut(CheckpointId(1)).run()
    (mine,) = owned(tmp_path / "deep" / "root")
    assert (tmp_path / "deep" / "root" / mine).stat().st_mode & 0o777 == 0o700
    one.close()
    assert owned(tmp_path / "deep" / "root") == {mine}
    two.close()
    assert owned(tmp_path / "deep" / "root") == set()
    again = backend.open(place.request({"n": int}))
    assert again.table("n").get(1) is None
    again.close()
    assert owned(tmp_path / "deep" / "root") == set()


def test_a_restore_that_fails_leaves_nothing_on_the_disk(tmp_path):
    place = Place()
    backend = make_backend("rocksdb", tmp_path)
    state = backend.open(place.request({"n": int}))
    (file,) = state.cut(CheckpointId(1)).run()
    state.close()
    place.files.content.clear()
    with pytest.raises(Exception, match="missing"):
        backend.open(place.request({"n": int}, [file]))
    assert owned(tmp_path) == set()


def test_the_next_start_removes_what_a_killed_process_left_and_spares_the_living_and_the_stopped(tmp_path):
    dead, living, stopped = start_owner(tmp_path), start_owner(tmp_path), start_owner(tmp_path)
    try:
        assert len(owned(tmp_path)) == 3
        stopped.send_signal(signal.SIGSTOP)
        end(dead)
        directories = LocalDirectories(tmp_path)
        mine = directories.make("mine")
        left = owned(tmp_path)
        assert mine.parent.name in left
        assert len(left) == 3, "the two that live, and ours"
        directories.remove(mine)
        assert len(owned(tmp_path)) == 2
    finally:
        end(living)
        end(stopped)


def test_only_directories_of_our_own_making_are_ever_removed(tmp_path):
    (tmp_path / "processor-state-notes").mkdir()  # no lock file: somebody else's
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "owner.lock").touch()
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (outside / "owner.lock").touch()
    os.symlink(outside, tmp_path / "processor-state-linked")
    directories = LocalDirectories(tmp_path)
    directories.remove(directories.make("x"))
    assert {"processor-state-notes", "data", "processor-state-linked"} <= {p.name for p in tmp_path.iterdir()}
    assert (outside / "owner.lock").exists()


def test_a_root_that_cannot_be_used_is_an_error_that_names_the_setting(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match=r"file.*state\.directory"):
        make_backend("rocksdb", tmp_path / "file").open(Place().request({"n": int}))


def test_an_unknown_compression_is_an_error_that_names_the_choices(tmp_path):
    backend = RocksDbBackend(
        snapshots=PlainSnapshots(), directory=tmp_path, options=RocksDbOptions(compression="rar")
    )
    with pytest.raises(SettingsError, match=r"'rar'.*lz4"):
        backend.open(Place().request({"n": int}))


@pytest.mark.parametrize("compression", ["none", "snappy", "lz4", "zstd"])
def test_every_compression_offered_works(tmp_path, compression):
    backend = RocksDbBackend(
        snapshots=PlainSnapshots(),
        directory=tmp_path,
        options=RocksDbOptions(compression=compression, write_buffer_bytes=2**16, bloom_bits_per_key=0),
        cache_entries_max=10,
    )
    place = Place()
    state = backend.open(place.request({"v": str}))
    for number in range(3_000):
        state.table("v").put(number, "text" * 50)
    snapshot = state.cut(CheckpointId(1)).run()
    state.pressed()
    state.table("v").put(0, "changed")
    assert state.table("v").get(2_999) == "text" * 50
    state.close()
    restored = backend.open(place.request({"v": str}, snapshot))
    assert restored.table("v").get(0) == "text" * 50
    restored.close()
