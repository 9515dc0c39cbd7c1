"""The short form of `make damage`, and that it would notice."""

from __future__ import annotations

import shutil

import pytest

from processor.errors import DamagedFile
from processor.protocol.recovery_messages import FilesVerified
from processor.runtime.recovery_driver import RecoveryDriver
from processor.savepoint import open_savepoint
from processor.storage.identity import IDENTITY
from tests.damage.acts import Act
from tests.damage.scenes import (
    DECIDED,
    NATIVE_SAVEPOINT,
    OWN_FILES,
    PUBLISHED,
    SAVEPOINT,
    STOPPED,
    Scene,
    scenes,
)
from tests.damage.sweep import sweep
from tests.unit.savepoint.kept import stopped

COUNT = 48
KINDS = {"state", "sst", "avro", "outbox", "channel", "entry", "notes", "json"}
CHOSEN = [
    (DECIDED, "memory"),
    (PUBLISHED, OWN_FILES),
    (STOPPED, "rocksdb"),
    (SAVEPOINT, "memory"),
    (NATIVE_SAVEPOINT, OWN_FILES),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[Scene]:
    return scenes(tmp_path_factory.mktemp("scenes"), 1, CHOSEN)


def test_r08_damage_is_refused_by_name_or_costs_nothing(made):
    tally = sweep(made, COUNT, seed=1)
    assert not tally.missed, "\n".join(tally.missed)
    assert sum(tally.done.values()) == COUNT
    assert {kind for kind, _ in tally.done} >= KINDS
    assert {act for _, act in tally.done} == set(Act)
    assert tally.refused
    assert tally.gone_on


def test_the_sweep_would_notice_files_that_nobody_verifies(made, monkeypatch):
    monkeypatch.setattr(RecoveryDriver, "_verify", lambda *_: FilesVerified())
    assert sweep(made, COUNT // 2, seed=1).missed


def test_a_savepoint_whose_identity_names_another_job_is_refused(tmp_path):
    path = stopped(tmp_path / "root", ["ab"])
    other = tmp_path / "other"
    shutil.copytree(path, other)
    (other / IDENTITY).write_text((path / IDENTITY).read_text().replace("words", "wards"))
    with pytest.raises(DamagedFile, match=r"job\.json.*'wards'.*'words'"):
        open_savepoint(str(other))
