"""What, where, remedy; a traceback only for those who can use it."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import pytest

from processor.errors import EngineBug, SettingsError, Unavailable, UserCodeError, Where
from processor.invariant import invariant
from processor.telemetry.error_text import TEXT_CHARS_MAX, error_block, printable


def raised(run) -> BaseException:
    with pytest.raises(BaseException) as caught:
        run()
    return caught.value


def users_function(value):
    return {}[value]


def call_as_the_engine_does(function, value):
    """Stands for a frame of the engine: compiled under a file name inside the package."""
    import processor

    path = processor.__file__.replace("__init__.py", "operators/per_record.py")
    code = compile("def call(f, v):\n    return f(v)\n", path, "exec")
    scope: dict = {}
    run: Any = FunctionType(code.co_consts[0], scope)
    try:
        return run(function, value)
    except Exception as error:
        raise UserCodeError(
            "the function raised KeyError: 'k'.",
            remedy="Correct it.",
            where=Where(step="map", split="clicks/0", offset=41),
        ) from error


def test_a_settings_error_is_three_lines_at_most():
    assert (
        error_block(SettingsError("a is wrong.", remedy="Set b.")) == "error: a is wrong.\n  remedy: Set b."
    )
    assert error_block(SettingsError("a is wrong.")) == "error: a is wrong."


def test_the_place_of_an_error_is_named():
    error = Unavailable("no answer.", where=Where(step="read", split="clicks/0", offset=41))
    assert error_block(error).splitlines()[1] == "  where: step 'read', at clicks/0 offset 41"


def test_a_users_error_shows_the_users_frames_only():
    error = raised(lambda: call_as_the_engine_does(users_function, "k"))
    block = error_block(error)
    assert "where: step 'map', at clicks/0 offset 41" in block
    assert "in users_function" in block
    assert "KeyError: 'k'" in block
    assert "per_record.py" not in block


def test_debug_shows_the_whole_traceback():
    error = raised(lambda: call_as_the_engine_does(users_function, "k"))
    assert "per_record.py" in error_block(error, debug=True)
    assert "Traceback" in error_block(raised(lambda: _raise(SettingsError("x"))), debug=True)


def test_a_bug_of_the_engine_and_a_foreign_error_show_their_traceback():
    assert "in invariant" in error_block(raised(lambda: invariant(False, "offsets grow")))
    assert isinstance(raised(lambda: invariant(False, "offsets grow")), EngineBug)
    assert "Traceback" in error_block(raised(lambda: users_function("k")))


def test_text_is_cut_and_escaped():
    assert printable("a\nb\x1b") == "a\\nb\\x1b"
    assert printable("ü is fine") == "ü is fine"
    long = printable("x" * (TEXT_CHARS_MAX + 1))
    assert len(long) < TEXT_CHARS_MAX + 50
    assert long.endswith(f"({TEXT_CHARS_MAX + 1} characters)")


def _raise(error):
    raise error
