"""Savepoints in a bucket and in HDFS: taken there, looked into there, started from there (R23)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from processor.cli.main import app
from processor.cli.reporting import FELL_SHORT_EXIT_CODE
from processor.contracts.job_control import Outcome
from processor.errors import DamagedFile, JobError, SettingsError
from processor.ids import JobName
from processor.savepoint import difference, open_savepoint, rewrite_savepoint, verify_files
from processor.settings.location import Location
from processor.settings.stores import StoreSettings
from processor.storage.buckets import open_bucket
from processor.storage.identity import IDENTITY
from processor.storage.objects import Objects
from processor.storage.places import Places
from processor.storage.savepoint_places import make_savepoint, place_named
from tests.hdfs_stand_in import HdfsStandIn
from tests.s3_server import SECRET_KEY
from tests.unit.runtime.kit import JobRun
from tests.unit.savepoint.kept import counting
from tests.unit.storage.disks import Tokens
from tests.unit.task.kit import ListSource

WORDS = ["ab", "ac", "b", "ab"]
TOTALS = {"a": 3, "b": 1}


@dataclass(kw_only=True)
class Place:
    """Somewhere savepoints can be, and how it is reached."""

    location: Location
    stores: StoreSettings
    words: list[str]
    """The same as ``--set`` has it."""

    def named(self, name: str) -> str:
        return f"{self.location}/{name}"

    def objects(self, name: str) -> Objects:
        return open_bucket(self.location, self.stores).below(name)


@pytest.fixture(params=["s3", "hdfs"])
def place(request, tmp_path: Path) -> Iterator[Place]:
    if request.param == "s3":
        server = request.getfixturevalue("s3")
        secret = tmp_path / "secret"
        secret.write_text(SECRET_KEY)
        section = {**server.section(), "secret_access_key": f"file:{secret}"}
        words = [f"stores.s3.{name}={value}" for name, value in section.items()]
        yield Place(location=server.location(server.bucket()), stores=server.settings(), words=words)
        return
    hadoop = HdfsStandIn()
    words = [f"stores.hdfs.endpoints={hadoop.endpoint}", "stores.hdfs.user=tester"]
    yield Place(location=hadoop.location(), stores=hadoop.settings(), words=words)
    hadoop.close()


def counted(root: Path, place: Place, *, kept_there: bool = False, **more) -> JobRun:
    where = Places(files=place.location, log=place.location, stores=place.stores) if kept_there else None
    return JobRun(
        root,
        build=counting,
        source=ListSource({"lines/0": list(WORDS)}),
        checkpoint={"interval": "10m"},
        places=where,
        stores=place.stores,
        **more,
    )


def stopped(run: JobRun, where: str, *, native: bool = False) -> Outcome:
    """Run until everything is read, then stop with a savepoint."""
    polls = 0

    def on_poll() -> None:
        nonlocal polls
        polls += 1
        if polls == 5:
            run.control.stop(where, run.answers.append, native=native)

    run.source.on_poll = on_poll
    assert run.run() == 0
    return run.answers[-1]


def totals(where: str, place: Place) -> dict[object, int]:
    savepoint = open_savepoint(where, stores=place.stores)
    assert verify_files(savepoint).damage == ()
    return {key: seen["count"] for key, seen in savepoint.read("count", "seen")}


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("kept_there", [False, True])
def test_r23_a_savepoint_in_a_bucket_holds_all_and_is_started_from(tmp_path, place, native, kept_there):
    where = place.named("saved")
    first = counted(tmp_path / "first", place, kept_there=kept_there)
    assert stopped(first, where, native=native) == Outcome(checkpoint=first.answers[0].checkpoint, path=where)
    assert totals(where, place) == TOTALS
    again = counted(tmp_path / "again", place)
    again.source.records["lines/0"] += ["ax"]
    end = place.named("end")
    polls = 0

    def on_poll() -> None:
        nonlocal polls
        polls += 1
        if polls == 5:
            again.control.stop(end, again.answers.append)

    again.source.on_poll = on_poll
    assert again.run(origin=where, accept_duplicates=True) == 0
    assert totals(end, place) == {"a": 4, "b": 1}
    before, after = (open_savepoint(each, stores=place.stores) for each in (where, end))
    assert [each.key for each in difference(before, after, "count", "seen")] == ["a"]


def test_r23_a_place_with_something_in_it_is_no_place_for_a_savepoint(tmp_path, place):
    place.objects("used").replace("anything", b"")
    run = counted(tmp_path, place)
    refused = stopped(run, place.named("used"))
    assert "there is something at" in refused.refused
    assert place.objects("used").names("") == ["anything"]
    for wrong in ("s3://b/../x", "ftp://somewhere/x", "s3://key:secret@bucket/x"):
        with pytest.raises(SettingsError) as error:
            place_named(wrong)
        assert "secret" not in error.value.message
    assert place_named(place.named("x")) == place.named("x")
    assert place_named("x") == str(Path("x").absolute())


def test_r23_what_was_begun_is_finished_and_whose_it_is_cannot_be_mistaken(tmp_path, place):
    where = place.named("begun")
    make_savepoint(where, JobName("words"), token=Tokens(), stores=place.stores)
    with pytest.raises(JobError, match="holds no whole checkpoint"):
        open_savepoint(where, stores=place.stores)
    with pytest.raises(SettingsError, match="there is something at"):
        make_savepoint(where, JobName("words"), token=Tokens(), stores=place.stores)
    with pytest.raises(SettingsError, match="there is something at"):
        make_savepoint(where, JobName("other"), token=Tokens(), stores=place.stores, begun=True)
    make_savepoint(where, JobName("words"), token=Tokens(), stores=place.stores, begun=True)
    with pytest.raises(JobError, match="neither a savepoint"):
        open_savepoint(place.named("nothing"), stores=place.stores)


def test_r08_damage_of_a_savepoint_in_a_bucket_is_refused_by_name(tmp_path, place):
    where = place.named("saved")
    run = counted(tmp_path / "first", place)
    stopped(run, where)
    objects = place.objects("saved")
    for name in objects.names("files"):
        found = objects.whole(name, 2**20)
        assert found is not None
        content, _ = found
        objects.replace(name, content[:-1] + bytes([content[-1] ^ 1]))
        assert name.rpartition("/")[2] in verify_files(open_savepoint(where, stores=place.stores)).damage[0]
        with pytest.raises(DamagedFile, match=name.rpartition("/")[2]):
            counted(tmp_path / name.replace("/", "-"), place).run(origin=where, accept_duplicates=True)
        objects.replace(name, content)
    objects.delete(IDENTITY)
    with pytest.raises(JobError, match="neither a savepoint"):
        open_savepoint(where, stores=place.stores)


def test_commands_look_into_a_savepoint_in_a_bucket(tmp_path, place):
    where, copy = place.named("saved"), place.named("copy")
    stopped(counted(tmp_path, place), where)
    settings = [word for assignment in place.words for word in ("--set", assignment)]

    def said(*words: str, code: int = 0) -> str:
        done = CliRunner().invoke(app, ["savepoint", *words, *settings])
        assert done.exit_code == code, done.output
        return done.stdout

    listed = [line.split() for line in said("list", str(place.location)).splitlines()]
    assert [line[:2] for line in listed] == [["NAME", "JOB"], ["saved", "words"]]
    assert "there are no savepoints" in said("list", place.named("nothing"))
    assert "count" in said("show", where)
    assert "all" in said("verify", where) or "whole" in said("verify", where)
    read = [json.loads(line) for line in said("read", where, "count", "length").splitlines()]
    assert {each["key"] for each in read} == {"a", "b"}
    assert said("rewrite", where, "--to", copy).strip() == copy
    assert said("diff", where, copy, "count", "seen") == ""
    savepoint = open_savepoint(where, stores=place.stores)
    rewrite_savepoint(savepoint, place.named("less"), drop=["count/length"], stores=place.stores)
    assert [state.name for state in open_savepoint(place.named("less"), stores=place.stores).states] != []
    objects = place.objects("copy")
    name = objects.names("files")[0]
    objects.replace(name, b"")
    assert name.rpartition("/")[2] in said("verify", copy, code=FELL_SHORT_EXIT_CODE)
