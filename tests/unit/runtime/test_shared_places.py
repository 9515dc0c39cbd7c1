"""Workers of several machines need checkpoints that all of them see."""

from __future__ import annotations

import pytest

from processor.errors import SettingsError
from processor.plugins import installed_plugins
from processor.runtime.cluster.shared_places import require_shared_places
from processor.settings.loading import load_settings

BUCKET, DIRECTORY = "s3://bucket/checkpoints", "/somewhere/checkpoints"


def require(**chosen: str) -> None:
    names = {
        "directory": "checkpoint.directory",
        "log": "checkpoint.log_directory",
        "shared": "runtime.cluster.shared_directory",
    }
    assignments = [f"{names[name]}={value}" for name, value in chosen.items()]
    models = installed_plugins().settings_models()
    require_shared_places(
        load_settings(plugins=models, environ={}, assignments=assignments).settings, "other machines"
    )


@pytest.mark.parametrize(
    ("chosen", "named"),
    [
        ({"directory": DIRECTORY}, "checkpoint.directory"),
        ({"directory": DIRECTORY, "log": BUCKET}, "checkpoint.directory"),
        ({"directory": BUCKET, "log": DIRECTORY}, "checkpoint.log_directory"),
    ],
)
def test_a_directory_that_is_not_said_to_be_shared_is_refused_and_named(chosen: dict[str, str], named: str):
    with pytest.raises(SettingsError) as refused:
        require(**chosen)
    text = str(refused.value)
    assert f"{named} is {DIRECTORY}, a directory, and other machines do not see it" in text
    assert "s3://…" in text
    assert "runtime.cluster.shared_directory" in text


@pytest.mark.parametrize(
    "chosen",
    [
        {"directory": BUCKET},
        {"directory": BUCKET, "log": BUCKET},
        {"directory": DIRECTORY, "shared": "true"},
        {"directory": BUCKET, "log": DIRECTORY, "shared": "true"},
    ],
)
def test_a_store_or_a_shared_directory_will_do(chosen: dict[str, str]):
    require(**chosen)
