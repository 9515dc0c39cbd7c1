"""Local copies of a database's files: each comes once, is used only when it is whole, and goes with its file."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from processor.errors import DamagedFile
from processor.ids import FileRef
from processor.state.backends import RocksDbBackend
from processor.state.rocksdb_store import RocksDbOptions
from processor.storage.local_copies import LocalCopies
from processor.storage.snapshot_file import SnapshotFiles
from tests.unit.state.fakes import MemoryFiles, Place

NAME = "a1/count-0/x-000012.sst"
CONTENT = bytes(range(256)) * 20_000


class Elsewhere(MemoryFiles):
    """A store that counts what is fetched from it."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []

    def read(self, ref: FileRef) -> Iterator[bytes]:
        self.fetched.append(ref.name)
        return super().read(ref)


def copies(store: Elsewhere, tmp_path: Path, token: str = "me") -> LocalCopies:
    return LocalCopies(store, tmp_path / "copies", token)


def local(tmp_path: Path, content: bytes = CONTENT, name: str = NAME) -> tuple[Path, FileRef]:
    path = tmp_path / "local.sst"
    path.write_bytes(content)
    return path, FileRef(name=name, bytes=len(content), sha256=sha256(content).hexdigest())


@pytest.fixture
def store() -> Elsewhere:
    return Elsewhere()


def test_what_goes_up_is_there_for_a_restart(tmp_path, store):
    path, ref = local(tmp_path)
    first = copies(store, tmp_path)
    assert first.link_in(path, ref)
    assert store.content == {NAME: CONTENT}
    path.unlink()
    again = copies(store, tmp_path)
    again.verify(ref)
    assert again.link_out(ref, tmp_path / "laid-out.sst")
    assert (tmp_path / "laid-out.sst").read_bytes() == CONTENT
    assert store.fetched == []


def test_what_is_not_there_is_fetched_once(tmp_path, store):
    store.content[NAME] = CONTENT
    _, ref = local(tmp_path)
    first = copies(store, tmp_path)
    assert not first.link_out(ref, tmp_path / "early.sst")
    for _ in range(3):
        first.verify(ref)
    copies(store, tmp_path).verify(ref)
    assert store.fetched == [NAME]
    assert first.link_out(ref, tmp_path / "laid-out.sst")


@pytest.mark.parametrize("damage", [b"", CONTENT[:-1], b"O" + CONTENT[1:], CONTENT + b"more"])
def test_r08_a_copy_that_is_not_whole_is_not_used(tmp_path, store, damage):
    path, ref = local(tmp_path)
    copies(store, tmp_path).link_in(path, ref)
    path.unlink()
    (tmp_path / "copies" / NAME).write_bytes(damage)
    again = copies(store, tmp_path)
    again.verify(ref)
    assert store.fetched == [NAME]
    assert (tmp_path / "copies" / NAME).read_bytes() == CONTENT


def test_r08_what_the_store_has_lost_is_missing_though_there_was_a_copy(tmp_path, store):
    path, ref = local(tmp_path)
    copies(store, tmp_path).link_in(path, ref)
    store.content.clear()
    again = copies(store, tmp_path)
    with pytest.raises(DamagedFile, match=NAME):
        again.verify(ref)


def test_a_copy_goes_with_its_file_and_the_folders_with_it(tmp_path, store):
    path, ref = local(tmp_path)
    first = copies(store, tmp_path)
    first.link_in(path, ref)
    first.delete(NAME)
    assert store.content == {}
    assert list((tmp_path / "copies").iterdir()) == []


def test_other_files_and_halves_are_not_kept(tmp_path, store):
    path, ref = local(tmp_path, name="a1/count-0/x.state")
    first = copies(store, tmp_path)
    assert first.link_in(path, ref)
    first.verify(ref)
    assert store.fetched == ["a1/count-0/x.state"]
    assert not first.link_out(ref, tmp_path / "laid-out")
    half = tmp_path / "copies" / f"{NAME}.dead.tmp"
    half.parent.mkdir(parents=True)
    half.write_bytes(b"half")
    copies(store, tmp_path)
    assert list((tmp_path / "copies").iterdir()) == []


def test_without_room_for_copies_all_goes_on(tmp_path, store):
    (tmp_path / "copies").write_text("a file where the folder is to be")
    path, ref = local(tmp_path)
    first = copies(store, tmp_path)
    assert first.link_in(path, ref)
    first.verify(ref)
    assert not first.link_out(ref, tmp_path / "laid-out.sst")


def test_c6_a_database_is_restored_on_its_machine_without_fetching_and_elsewhere_with_it(tmp_path, store):
    def backend(machine: str) -> tuple[Place, RocksDbBackend]:
        place = Place(files=LocalCopies(store, tmp_path / machine / "copies", machine))  # type: ignore[arg-type]
        options = RocksDbOptions(own_files_min_bytes=0)
        directory = tmp_path / machine / "state"
        return place, RocksDbBackend(snapshots=SnapshotFiles(), directory=directory, options=options)

    place, here = backend("here")
    state = here.open(place.request({"n": int}))
    state.table("n").put("a", 1)
    (file,) = state.cut(1).run()  # type: ignore[arg-type]
    state.close()
    assert file.database is not None
    sorted_files = [each.file.name for each in file.database]
    for machine, fetched in (("here", []), ("elsewhere", sorted_files), ("elsewhere", [])):
        store.fetched.clear()
        place, again = backend(machine)
        restored = again.open(place.request({"n": int}, [file]))
        assert restored.table("n").get("a") == 1
        restored.close()
        assert [name for name in store.fetched if name.endswith(".sst")] == fetched
