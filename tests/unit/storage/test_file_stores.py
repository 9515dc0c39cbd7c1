"""The contract of a FileStore, on every kind there is: whole or not there; damage is named; names are used once."""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processor.errors import DamagedFile, EngineBug
from processor.ids import FileRef
from tests.damage.ways import damages
from tests.unit.storage.store_rigs import KINDS, StoreRig, open_rig
from tests.unit.storage.written_files import NAME, WHOLE, read, write

LARGE = 20 * 2**20
"""Several parts of an upload."""


@pytest.fixture(params=KINDS)
def rig(request, tmp_path) -> StoreRig:
    return open_rig(request.param, request, tmp_path)


def reference(name: str, content: bytes) -> FileRef:
    return FileRef(name=name, bytes=len(content), sha256=sha256(content).hexdigest())


def test_what_is_written_is_read_back_with_its_size_and_hash(rig):
    ref = write(rig.files())
    assert ref == reference(NAME, WHOLE)
    assert read(rig.files(), ref) == WHOLE
    rig.files().verify(ref)
    empty = write(rig.files(), "a1/count-0/empty.state", [])
    assert read(rig.files(), empty) == b""


def test_a_large_file_comes_in_chunks_and_its_last_is_kept_back_until_the_hash_was_compared(rig):
    content = bytes(range(256)) * (LARGE // 256)
    ref = write(rig.files(), NAME, [content[: LARGE // 3], content[LARGE // 3 :]])
    assert ref == reference(NAME, content)
    chunks = list(rig.files().read(ref))
    assert b"".join(chunks) == content
    assert max(map(len, chunks)) < LARGE / 2
    rig.damage(NAME, b"O" + content[1:])
    found: list[bytes] = []
    with pytest.raises(DamagedFile, match="fails its checksum"):
        found.extend(rig.files().read(ref))
    assert sum(map(len, found)) < LARGE
    rig.damage(NAME, content[:-1])
    with pytest.raises(DamagedFile, match=rf"x\.state' is damaged: it has {LARGE - 1} bytes"):
        rig.files().verify(ref)


@pytest.mark.parametrize("size", [1, LARGE])
def test_r22_a_name_is_used_once(rig, size):
    ref = write(rig.files())
    other = rig.files()
    with pytest.raises(DamagedFile, match=r"x\.state' exists already"):
        write(other, NAME, [bytes(size)])
    assert read(other, ref) == WHOLE


def test_r22_of_two_writers_of_one_name_one_is_told_that_it_exists(rig):
    """At once or at the end, by the kind of store."""
    finished: list[FileRef] = []
    writers = []
    for content in (b"first", b"other"):
        with suppress(DamagedFile):
            writers.append(rig.files().create(NAME))
            writers[-1].write(content)
    for writer in writers:
        with suppress(DamagedFile):
            finished.append(writer.finish())
    (ref,) = finished
    assert read(rig.files(), ref) in (b"first", b"other")


def test_a_discarded_file_is_gone_and_a_finished_one_stays(rig):
    writer = rig.files().create(NAME)
    writer.write(b"x")
    writer.discard()
    writer.discard()
    assert rig.files().names("") == []
    finished = rig.files().create(NAME)
    ref = finished.finish()
    finished.discard()
    rig.files().verify(ref)
    with pytest.raises(EngineBug):
        finished.write(b"more")
    with pytest.raises(EngineBug):
        finished.finish()


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/etc/passwd",
        "../x",
        "a/../../x",
        "a//b",
        "a/.",
        "./a",
        ".hidden",
        "a\0b",
        "a/b\n",
        "x" * 2000,
        "é",
    ],
)
def test_a_name_that_could_lead_elsewhere_is_refused(rig, name):
    rig.put("x", b"secret")
    files = rig.files()
    ref = reference(name, b"secret")
    for act in (lambda: files.create(name), lambda: read(files, ref), lambda: files.delete(name)):
        with pytest.raises(DamagedFile, match="cannot be the name"):
            act()
    rig.remove("x")  # it is still there


@given(st.data())
@settings(max_examples=40)
def test_r08_any_damage_is_found_by_name_and_nothing_is_handed_out(rig, data):
    files = rig.files()
    files.delete(NAME)
    ref = write(files)
    damaged = data.draw(damages(WHOLE))
    rig.damage(NAME, damaged)
    if damaged == WHOLE:
        return
    found: list[bytes] = []
    with pytest.raises(DamagedFile, match=NAME):
        found.extend(files.read(ref))
    assert found == []  # it has one chunk only
    with pytest.raises(DamagedFile, match=NAME):
        files.verify(ref)


def test_r08_a_missing_or_swapped_file_is_named(rig):
    one = write(rig.files(), "a1/count-0/one.state", [b"1"])
    two = write(rig.files(), "a1/count-0/two.state", [b"2"])
    rig.damage(one.name, b"2")
    with pytest.raises(DamagedFile, match=r"one\.state"):
        read(rig.files(), one)
    rig.remove(f"files/{two.name}")
    with pytest.raises(DamagedFile, match=r"two\.state' is damaged: it is missing"):
        read(rig.files(), two)
    with pytest.raises(DamagedFile, match=r"large\.state' is damaged: it is missing"):
        rig.files().verify(FileRef(name="large.state", bytes=LARGE, sha256=one.sha256))


def test_names_are_sorted_and_what_is_deleted_can_be_deleted_again(rig):
    files = rig.files()
    names = ["a1/b-0/2", "a1/b-0/1", "a10/b-0/1", "a1/c%20d-1/1", "a1/c%252F-1/1"]
    for name in names:
        write(files, name, [name.encode()])
    assert files.names("") == sorted(names)
    assert files.names("a1/") == sorted(name for name in names if name.startswith("a1/"))
    assert files.names("a1/b-0/1") == ["a1/b-0/1"]
    assert files.names("a1/b") == ["a1/b-0/1", "a1/b-0/2"]
    assert files.names("a2/") == files.names("../") == []
    for name in names:
        assert read(files, reference(name, name.encode())) == name.encode()
        files.delete(name)
        files.delete(name)
    assert files.names("") == []
    write(files, names[0], [b"again"])
    assert files.names("") == [names[0]]
