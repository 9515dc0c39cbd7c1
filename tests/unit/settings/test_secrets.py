"""A secret is in no text of the product: a canary is planted wherever one may stand, and looked for."""

from __future__ import annotations

import io
import logging
import traceback
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processor.errors import ProcessorError, SettingsError
from processor.settings.loading import load_settings
from processor.settings.model import LogFormat, LogLevel, LogSettings
from processor.settings.origin import Assignment, Origin, OriginKind
from processor.settings.shown import shown_settings
from processor.telemetry.error_text import error_block
from processor.telemetry.log import ROOT_LOGGER, configure_logging, get_log
from tests.unit.settings.sample_sections import Broker

PLUGINS = {"broker": Broker}
PASSWORD = "broker.main.login.password"
CANARIES = st.text(st.characters(codec="utf-8", categories=("L", "N", "P")), min_size=8, max_size=32).map(
    lambda text: f"canary{text}yranac"
)


def texts_of(run) -> str:
    """Everything that a person could see of loading: rows, reprs, logs in both formats, errors."""
    seen: list[str] = []
    try:
        loaded = run()
    except ProcessorError as error:
        seen += [str(error), repr(error), error_block(error), error_block(error, debug=True)]
        seen += traceback.format_exception(error)
        seen.append(logged(error=error))
    else:
        seen += [f"{row}" for row in shown_settings(loaded)]
        seen += [repr(loaded), str(loaded.settings), repr(loaded.settings.plugins["broker"])]
        seen.append(loaded.settings.plugins["broker"].model_dump_json())
        seen.append(logged(settings=loaded.settings))
    return "\n".join(seen)


def logged(*, error=None, **fields) -> str:
    stream = io.StringIO()
    for format_ in LogFormat:
        configure_logging(LogSettings(format=format_, level=LogLevel.DEBUG), stream)
        get_log("test").error("what happened", error=error, **fields)
    logging.getLogger(ROOT_LOGGER).handlers.clear()
    return stream.getvalue()


@pytest.fixture
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("secrets")


given_canary = settings(max_examples=40)


@given(CANARIES)
@given_canary
def test_a_good_secret_is_nowhere_to_be_seen(place, canary):
    (place / "password").write_text(canary + "\n")
    (place / "settings.yaml").write_text(f"broker: {{main: {{login: {{password: file:{place}/password}}}}}}")
    ways: list[dict[str, Any]] = [
        {"environ": {"PROCESSOR__BROKER__MAIN__LOGIN__PASSWORD": canary}},
        {"environ": {"PW": canary}, "assignments": [f"{PASSWORD}=env:PW"]},
        {"environ": {"PW": canary}, "assignments": ["broker.main.login.tokens.a=env:PW"]},
        {"files": [place / "settings.yaml"]},
    ]
    for way in ways:
        loaded = load_settings(plugins=PLUGINS, **way)
        broker: Any = loaded.settings.plugins["broker"]
        login = broker.main.login
        secret = login.password or login.tokens["a"]
        assert secret.get_secret_value() == canary
        assert canary not in texts_of(lambda way=way: load_settings(plugins=PLUGINS, **way))


@given(CANARIES)
@given_canary
def test_a_misplaced_secret_is_refused_and_nowhere_to_be_seen(place, canary):
    clear = place / "clear.yaml"
    clear.write_text(f"broker:\n  main:\n    login:\n      password: {canary!r}\n")
    broken = place / "broken.yaml"
    broken.write_text(f"broker:\n  main:\n    login: [password: {canary}\n")
    alias = place / "alias.yaml"
    alias.write_text("broker:\n  main:\n    login:\n      password: *" + "".join(filter(str.isalnum, canary)))
    ways: list[dict[str, Any]] = [
        {"assignments": [f"{PASSWORD}={canary}"]},
        {"assignments": [f"broker.main.login.pasword={canary}"]},
        {"assignments": [f"broker.main.login={canary}"]},
        {"assignments": [f"{PASSWORD}:{canary}"]},
        {"assignments": [canary]},
        {"environ": {"PROCESSOR__BROKER__MAIN__LOGIN__PASWORD": canary}},
        {"environ": {"PROCESSOR__BROKR__MAIN__LOGIN__PASSWORD": canary}},
        {"environ": {"PROCESSOR__BROKER__MAIN__LOGIN__PASSWORD": canary * 8}},
        {
            "environ": {"PROCESSOR__BROKER__MAIN__LOGIN__PASSWORD": canary},
            "assignments": ["broker.main.login.user=careless"],
        },
        {"files": [clear]},
        {"files": [broken]},
        {"files": [alias]},
    ]
    bare = "".join(filter(str.isalnum, canary))
    for way in ways:
        with pytest.raises(SettingsError):
            load_settings(plugins=PLUGINS, **way)
        seen = texts_of(lambda way=way: load_settings(plugins=PLUGINS, **way))
        assert canary not in seen, way
        assert bare not in seen, way


def test_an_assignment_does_not_show_its_value():
    assignment = Assignment(path=("a", "b"), value="canary", origin=Origin(kind=OriginKind.FILE, name="f"))
    assert repr(assignment) == "<a.b from file f>"


def test_a_secret_in_clear_names_the_two_ways_that_are_open():
    with pytest.raises(SettingsError, match="Write env:NAME or file:PATH there"):
        load_settings(plugins=PLUGINS, assignments=[f"{PASSWORD}=hunter2"])


@pytest.mark.parametrize(
    ("reference", "said"),
    [("env:NOT_SET", "variable NOT_SET is not set"), ("file:/not/there", "/not/there cannot be read")],
)
def test_a_reference_to_nothing_is_refused_by_name(reference, said):
    with pytest.raises(SettingsError, match=said):
        load_settings(plugins=PLUGINS, assignments=[f"{PASSWORD}={reference}"])


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "is empty"), (b"\xff\xff", "not UTF-8"), (b"x" * 65_537, "longer than a secret")],
)
def test_a_file_that_holds_no_secret_is_refused(tmp_path, content, said):
    path = tmp_path / "password"
    path.write_bytes(content)
    with pytest.raises(SettingsError, match=said):
        load_settings(plugins=PLUGINS, assignments=[f"{PASSWORD}=file:{path}"])
