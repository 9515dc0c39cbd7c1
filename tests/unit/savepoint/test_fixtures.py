"""Savepoints that releases before this one have written are read for ever."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from processor.savepoint import open_savepoint, verify_files
from tests.style.sources import ROOT
from tests.unit.savepoint.fixture_job import WORDS, check_contents, make, ran

FIXTURES = ROOT / "tests" / "fixtures" / "savepoints"
KEPT = sorted(path for release in FIXTURES.iterdir() for path in release.iterdir())
BYTES_MAX = 60_000


def test_there_are_fixtures_of_both_formats_and_they_are_small():
    assert {path.name for path in KEPT} >= {"canonical", "native-memory", "native-rocksdb"}
    assert sum(file.stat().st_size for file in FIXTURES.rglob("*") if file.is_file()) < BYTES_MAX * len(KEPT)


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_c2_c3_a_kept_savepoint_is_whole_and_read_without_the_job(path: Path):
    savepoint = open_savepoint(str(path))
    assert verify_files(savepoint).damage == ()
    check_contents(savepoint)


@pytest.mark.parametrize(("backend", "parallelism"), [("memory", 3), ("rocksdb", 2)])
@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_c2_c3_c5_a_job_starts_from_a_kept_savepoint(
    path: Path, backend: str, parallelism: int, tmp_path: Path
):
    run = ran(tmp_path, WORDS, backend=backend, parallelism=parallelism, origin=str(path))
    check_contents(open_savepoint(str(run.directory.path)))


def test_the_script_that_makes_them_works(tmp_path: Path):
    make(tmp_path / "new")
    for path in (tmp_path / "new").iterdir():
        check_contents(open_savepoint(str(path)))
    shutil.rmtree(tmp_path / "new")
