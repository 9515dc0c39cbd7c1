"""Where settings come from, which wins, and what is refused."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from processor.errors import SettingsError
from processor.settings.loading import load_settings
from processor.settings.origin import OriginKind
from tests.unit.settings.sample_sections import Broker

PLUGINS = {"broker": Broker}


@pytest.fixture
def file(tmp_path):
    def write(content: str, name: str = "settings.yaml"):
        path = tmp_path / name
        path.write_text(content)
        return path

    return write


def load(**given):
    return load_settings(plugins=PLUGINS, **given)


def refusal(**given) -> str:
    with pytest.raises(SettingsError) as refused:
        load(**given)
    return str(refused.value)


def test_defaults_alone_are_valid():
    settings = load().settings
    assert settings.checkpoint.interval == 1_000
    assert settings.plugins["broker"].main.wait == 5_000


def test_later_origins_win_value_by_value(file):
    first = file("checkpoint: {interval: 2s, timeout: 20s, min_pause: 200ms, retained: 5}", "first.yaml")
    second = file("checkpoint:\n  timeout: 30s\n  min_pause: 300ms\n  retained: 6\n", "second.yaml")
    loaded = load(
        files=[first, second],
        environ={"PROCESSOR__CHECKPOINT__MIN_PAUSE": "400ms", "PROCESSOR__CHECKPOINT__RETAINED": "7"},
        assignments=["checkpoint.retained=8"],
    )
    checkpoint = loaded.settings.checkpoint
    assert (checkpoint.interval, checkpoint.timeout, checkpoint.min_pause, checkpoint.retained) == (
        2_000,
        30_000,
        400,
        8,
    )
    origins = {name: loaded.origin_of(("checkpoint", name)) for name in type(checkpoint).model_fields}
    assert str(origins["interval"]) == f"file {first}"
    assert str(origins["timeout"]) == f"file {second}"
    assert str(origins["min_pause"]) == "environment PROCESSOR__CHECKPOINT__MIN_PAUSE"
    assert origins["retained"].kind is OriginKind.COMMAND_LINE
    assert origins["publish_timeout"].kind is OriginKind.DEFAULT


def test_of_two_assignments_of_one_setting_the_last_wins():
    loaded = load(assignments=["runtime.parallelism=2", "runtime.parallelism=3"])
    assert loaded.settings.runtime.parallelism == 3


def test_a_topic_is_mapped_from_the_command_line():
    loaded = load(assignments=["broker.main.topic_map.counts=counts2"])
    assert loaded.settings.plugins["broker"].main.topic_map == {"counts": "counts2"}


def test_a_topic_with_dots_is_mapped_from_the_command_line_with_and_without_quotes():
    loaded = load(
        assignments=["broker.main.topic_map.eu.counts=a=b", 'broker.main.topic_map."us.counts"=c'],
        environ={"PROCESSOR__BROKER__MAIN__TOPIC_MAP__Clicks": "d"},
    )
    assert loaded.settings.plugins["broker"].main.topic_map == {
        "eu.counts": "a=b",
        "us.counts": "c",
        "Clicks": "d",
    }


def test_mappings_of_several_origins_are_laid_over_each_other(file):
    loaded = load(
        files=[file("broker: {main: {topic_map: {a: file, b: file}}}")],
        assignments=["broker.main.topic_map.b=option"],
    )
    assert loaded.settings.plugins["broker"].main.topic_map == {"a": "file", "b": "option"}


def test_a_second_cluster_is_made_by_naming_it():
    loaded = load(
        environ={"PROCESSOR__BROKER__OTHER__ADDRESS": "x:1"}, assignments=["broker.other.racks=[a, b]"]
    )
    other = loaded.settings.plugins["broker"].other
    assert (other.address, other.racks) == ("x:1", ["a", "b"])


def test_a_whole_section_can_be_given_as_text():
    loaded = load(environ={"PROCESSOR__CHECKPOINT": "{interval: 5s, retained: 4}"})
    assert (loaded.settings.checkpoint.interval, loaded.settings.checkpoint.retained) == (5_000, 4)
    assert str(loaded.origin_of(("checkpoint", "interval"))) == "environment PROCESSOR__CHECKPOINT"


def test_an_empty_section_and_an_empty_file_change_nothing(file):
    assert load(files=[file("checkpoint:\n"), file("", "empty.yaml")]).settings == load().settings


def test_a_misspelt_section_in_the_environment_is_refused_by_its_variable():
    text = refusal(environ={"PROCESSOR__CHEKPOINT__INTERVAL": "5s"})
    assert "environment variable PROCESSOR__CHEKPOINT__INTERVAL: there is no section 'chekpoint'" in text
    assert "did you mean PROCESSOR__CHECKPOINT__INTERVAL?" in text


def test_a_misspelt_field_is_refused_wherever_it_stands(file):
    path = file("checkpoint: {intreval: 5s}")
    assert f"file {path}: there is no setting 'checkpoint.intreval'" in refusal(files=[path])
    assert "did you mean 'checkpoint.interval'?" in refusal(assignments=["checkpoint.intreval=5s"])
    assert "--set checkpoint.intreval" in refusal(assignments=["checkpoint.intreval=5s"])
    assert "'broker.main.adress'" in refusal(assignments=["broker.main.adress=x"])
    assert "'state.rocksdb.cache'" in refusal(assignments=["state.rocksdb.cache=1MiB"])


def test_a_field_without_its_section_is_recognised():
    assert "did you mean 'checkpoint.interval'?" in refusal(assignments=["interval=5s"])


def test_variables_of_others_are_left_alone():
    load(environ={"PROCESSOR_ARCHITECTURE": "AMD64", "PROCESSOR": "x", "PATH": "/bin"})


def test_a_variable_with_an_empty_part_is_refused():
    assert "PROCESSOR__CHECKPOINT____INTERVAL" in refusal(environ={"PROCESSOR__CHECKPOINT____INTERVAL": "5s"})


def test_two_variables_for_one_setting_are_refused():
    text = refusal(environ={"PROCESSOR__LOG__LEVEL": "debug", "processor__log__level": "info"})
    assert "PROCESSOR__LOG__LEVEL" in text
    assert "processor__log__level" in text


def test_a_wrong_value_names_setting_value_origin_and_remedy():
    text = refusal(environ={"PROCESSOR__CHECKPOINT__INTERVAL": "5"})
    assert "checkpoint.interval = 5 (environment PROCESSOR__CHECKPOINT__INTERVAL): 5 has no unit" in text


def test_all_problems_are_told_at_once():
    text = refusal(assignments=["runtime.parallelism=0", "state.backend=heap", "broker.main.wait=1ms"])
    assert "runtime.parallelism = 0" in text
    assert "'memory' or 'rocksdb'" in text
    assert "1ms is too short: at least 10ms" in text


def test_a_hundred_problems_are_told_in_ten():
    text = refusal(assignments=[f"nothing{n}.x=1" for n in range(100)])
    assert "and 90 more" in text


@pytest.mark.parametrize("assignment", ["checkpoint", "=5", ".a=5", "a..b=5", '"a=5', ""])
def test_an_assignment_of_another_form_is_refused_by_its_number(assignment):
    assert "--set number 2" in refusal(assignments=["log.level=info", assignment])


def test_a_value_for_a_section_is_refused():
    assert "has settings below it" in refusal(assignments=["broker.main=5"])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("- a\n- b\n", "does not consist of sections"),
        ("checkpoint:\n  interval: 1s\n  interval: 2s\n", "line 3: 'interval' is there twice"),
        ("checkpoint: [", "is not YAML"),
        ("checkpoint: !!python/object:os.system {}\n", "is not YAML"),
        ("a: &x 1\nb: *y\n", "is not YAML"),
    ],
)
def test_a_broken_file_is_refused_with_its_path(file, content, said):
    path = file(content)
    text = refusal(files=[path])
    assert str(path) in text
    assert said in text


def test_files_that_cannot_be_read_are_refused_by_name(tmp_path):
    assert "No such file" in refusal(files=[tmp_path / "missing.yaml"])
    assert "Is a directory" in refusal(files=[tmp_path])
    large = tmp_path / "large.yaml"
    large.write_bytes(b"#" * (2**20 + 1))
    assert "1048577 bytes" in refusal(files=[large])
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in refusal(files=[binary])


def test_deep_nesting_is_refused(file):
    deep = "broker: {main: {topic_map: " + "{a: " * 40 + "b" + "}" * 40 + "}}"
    assert "deep" in refusal(files=[file(deep)])


def test_a_plugin_cannot_take_the_name_of_a_section():
    with pytest.raises(SettingsError, match="named 'checkpoint'"):
        load_settings(plugins={"checkpoint": Broker})


def test_settings_cannot_be_changed():
    settings = load().settings
    with pytest.raises(ValidationError):
        settings.checkpoint.interval = 5
    with pytest.raises(TypeError):
        settings.plugins["broker"] = None


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("heartbeat_interval=20s", "heartbeat_timeout 30s is less than two of heartbeat_interval 20s"),
        ("hang_timeout=30s", "hang_timeout 30s is not longer than heartbeat_timeout 30s"),
    ],
)
def test_d1_bounds_under_which_nobody_could_be_judged_are_refused(given, says):
    with pytest.raises(SettingsError, match=says):
        load_settings(plugins={}, assignments=[f"runtime.{given}"])
