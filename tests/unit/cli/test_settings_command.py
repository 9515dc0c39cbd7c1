"""``processor settings show`` says what every setting is and why; secrets are masked."""

from __future__ import annotations

import re


def test_every_value_is_shown_with_its_origin(processor_command, tmp_path):
    (tmp_path / "mine.yaml").write_text("checkpoint: {retained: 4}\n")
    result = processor_command(
        "settings",
        "show",
        "--origin",
        "--config",
        "mine.yaml",
        "--set",
        "broker.main.topic_map.counts=counts2",
        PROCESSOR__RUNTIME__PARALLELISM="3",
    )
    assert result.exit_code == 0
    for pattern in (
        r"^checkpoint\.retained += 4 +# file mine\.yaml$",
        r"^broker\.main\.topic_map\.counts += counts2 +# command line --set$",
        r"^runtime\.parallelism += 3 +# environment PROCESSOR__RUNTIME__PARALLELISM$",
        r"^checkpoint\.interval += 1s +# default$",
    ):
        assert re.search(pattern, result.stdout, re.MULTILINE), pattern


def test_a_secret_is_shown_as_a_mask(processor_command):
    result = processor_command("settings", "show", PROCESSOR__BROKER__MAIN__LOGIN__PASSWORD="hunter2canary")
    assert re.search(r"^broker\.main\.login\.password += \*{8}$", result.output, re.MULTILINE)
    assert "hunter2canary" not in result.output


def test_a_misspelt_section_is_one_block_and_exit_78(processor_command):
    result = processor_command("settings", "show", PROCESSOR__CHEKPOINT__INTERVAL="5s")
    assert result.exit_code == 78
    assert result.stdout == ""
    what, remedy = result.stderr.splitlines()
    assert what.startswith("error: environment variable PROCESSOR__CHEKPOINT__INTERVAL: there is no section")
    assert remedy.startswith("  remedy: ")


def test_debug_adds_the_traceback_to_later_errors(processor_command):
    arguments = ("checkpoints", "list", "counts", "--set", "checkpoint.directory=nowhere")
    assert "Traceback" not in processor_command(*arguments).stderr
    assert "Traceback" in processor_command(*arguments, "--set", "log.level=debug").stderr


def test_defaults_are_yaml_of_all_sections(processor_command):
    result = processor_command("settings", "defaults")
    assert result.exit_code == 0
    for section in ("checkpoint", "state", "runtime", "log", "broker"):
        assert f"\n{section}:\n" in result.stdout
