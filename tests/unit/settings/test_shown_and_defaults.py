"""What is shown can be given again, and the file of defaults is the models' own text."""

from __future__ import annotations

from pathlib import Path

import yaml
from hypothesis import given
from hypothesis import strategies as st

from processor.plugins import installed_plugins
from processor.settings.defaults import defaults_yaml
from processor.settings.loading import load_settings
from processor.settings.model import CORE_SECTIONS
from processor.settings.origin import split_assignment
from processor.settings.shown import default_text, shown_settings
from tests.unit.settings.sample_sections import Broker

ROOT = Path(__file__).parents[3]
PLUGINS = {"broker": Broker}


def test_every_setting_is_described():
    def check(model, at):
        for name, field in model.model_fields.items():
            assert field.description, f"{at}.{name} has no description"
            if isinstance(field.annotation, type) and hasattr(field.annotation, "model_fields"):
                check(field.annotation, f"{at}.{name}")

    for section, model in CORE_SECTIONS.items():
        assert model.__doc__, section
        check(model, section)


def test_the_file_of_defaults_is_what_the_models_say():
    models = {**CORE_SECTIONS, **installed_plugins().settings_models()}
    assert (ROOT / "config" / "defaults.yaml").read_text() == defaults_yaml(models), (
        "run: processor settings defaults > config/defaults.yaml"
    )


def test_every_other_file_of_settings_loads():
    files = sorted(set((ROOT / "config").glob("*.yaml")) - {ROOT / "config" / "defaults.yaml"})
    assert files
    for file in files:
        load_settings(plugins=installed_plugins().settings_models(), files=[file])


def test_the_text_of_defaults_loads_as_the_defaults(tmp_path):
    path = tmp_path / "defaults.yaml"
    path.write_text(defaults_yaml({**CORE_SECTIONS, **PLUGINS}))
    assert load_settings(plugins=PLUGINS, files=[path]).settings == load_settings(plugins=PLUGINS).settings


def test_what_is_shown_can_be_given_again(tmp_path):
    given_first = [
        "checkpoint.interval=250ms",
        "checkpoint.directory=/some where/a b",
        "broker.main.topic_map.a.b=no",
        "broker.main.racks=[a, 'b c']",
        "broker.other.address=host:1",
    ]
    loaded = load_settings(plugins=PLUGINS, assignments=given_first)
    nested: dict = {}
    for row in shown_settings(loaded):
        names, _ = split_assignment(f"{row.path}=", number=1)
        inner = nested
        for name in names[:-1]:
            inner = inner.setdefault(name, {})
        inner[names[-1]] = yaml.safe_load(row.value)
    again = tmp_path / "again.yaml"
    again.write_text(yaml.safe_dump(nested))
    assert load_settings(plugins=PLUGINS, files=[again]).settings == loaded.settings


def test_every_row_says_where_its_value_came_from():
    loaded = load_settings(plugins=PLUGINS, environ={"PROCESSOR__LOG__FORMAT": "json"})
    rows = {row.path: row for row in shown_settings(loaded)}
    assert str(rows["log.format"].origin) == "environment PROCESSOR__LOG__FORMAT"
    assert str(rows["log.level"].origin) == "default"
    assert rows["checkpoint.interval"].value == "1s"
    assert rows["state.rocksdb.block_cache"].value == "64MiB"


@given(st.text() | st.none() | st.booleans() | st.integers() | st.lists(st.text(max_size=5), max_size=3))
def test_values_are_written_so_that_yaml_reads_them_back(value):
    assert yaml.safe_load(default_text(value)) == value
