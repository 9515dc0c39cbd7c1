"""The control socket stays on this machine, wherever the checkpoints are."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from processor.channels.addresses import SOCKET_PATH_BYTES_MAX
from processor.errors import SettingsError
from processor.ids import JobName
from processor.service.control_place import control_place, control_root
from processor.settings.model import CheckpointSettings, RuntimeSettings, Settings


def settings(directory: object, **runtime: object) -> Settings:
    return Settings(
        checkpoint=CheckpointSettings.model_validate({"directory": directory}),
        runtime=RuntimeSettings.model_validate(runtime),
    )


@pytest.fixture
def temporary(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_it_is_in_the_checkpoint_directory_or_where_it_is_told(tmp_path):
    assert control_root(settings(tmp_path)) == tmp_path
    assert control_root(settings("s3://bucket", control_directory=tmp_path)) == tmp_path
    with pytest.raises(SettingsError, match=r"checkpoint\.directory is not set"):
        control_root(settings(None))


def test_with_an_object_store_it_is_private_and_of_that_location_alone(temporary):
    one = control_root(settings("s3://bucket/one"))
    assert one == control_root(settings("s3://bucket/one/"))
    assert one != control_root(settings("s3://bucket/two"))
    (own,) = temporary.iterdir()
    assert one.parent == own
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    short = Path("/tmp-dir") / own.name / one.name
    assert (
        len(os.fsencode(control_place(short, JobName("a job of some length")).socket_path))
        < SOCKET_PATH_BYTES_MAX
    )


@pytest.mark.parametrize("how", ["open", "link", "file"])
def test_a_place_that_others_made_is_refused(temporary, how):
    control_root(settings("s3://bucket"))
    (own,) = temporary.iterdir()
    if how == "open":
        own.chmod(0o777)
    else:
        own.rmdir()
        own.symlink_to(temporary) if how == "link" else own.write_text("")
    with pytest.raises(SettingsError, match=r"cannot hold the control socket.*runtime\.control_directory"):
        control_root(settings("s3://bucket"))
