"""Lines for people and for programs; nothing that is logged can forge another line."""

from __future__ import annotations

import io
import json
import logging
import re

import pytest

from processor.errors import Unavailable, Where
from processor.settings.model import LogFormat, LogLevel, LogSettings
from processor.telemetry.log import ROOT_LOGGER, configure_logging, get_log


@pytest.fixture
def written():
    """Configure with the given settings, and give back what was written."""
    stream = io.StringIO()

    def configure(**settings) -> io.StringIO:
        configure_logging(LogSettings(**settings), stream)
        return stream

    yield configure
    logging.getLogger(ROOT_LOGGER).handlers.clear()


def test_a_line_for_people_has_time_level_job_attempt_message_and_fields(written):
    stream = written()
    log = get_log("runtime").bind(job="word-count").bind(attempt=3)
    log.info("checkpoint published", checkpoint=7, place="a b", empty="")
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} INFO    \[job word-count attempt 3\] "
        r'checkpoint published checkpoint=7 place="a b" empty=""\n',
        stream.getvalue(),
    )


def test_a_line_for_programs_is_an_object(written):
    stream = written(format=LogFormat.JSON)
    get_log("runtime").bind(job="j").info("done", checkpoint=7, message="mine", level="also mine")
    line = json.loads(stream.getvalue())
    assert (line["message"], line["level"], line["logger"]) == ("done", "info", "processor.runtime")
    assert (line["job"], line["checkpoint"], line["message_"], line["level_"]) == (
        "j",
        7,
        "mine",
        "also mine",
    )


def test_what_is_below_the_level_is_not_written(written):
    stream = written(level=LogLevel.WARNING)
    log = get_log("runtime")
    log.debug("no")
    log.info("no")
    log.warning("yes")
    log.error("yes")
    assert len(stream.getvalue().splitlines()) == 2


def test_configuring_again_replaces(written):
    written()
    stream = written()
    get_log("runtime").info("once")
    assert stream.getvalue().count("once") == 1


@pytest.mark.parametrize("format_", list(LogFormat))
def test_no_value_can_forge_a_line_or_move_the_cursor(written, format_):
    stream = written(format=format_)
    evil = "x\n2030-01-01 INFO forged\r\x1b[2J\u2028"
    get_log("runtime").error(evil, error=Unavailable(evil, remedy=evil), value=evil, key=evil)
    text = stream.getvalue()
    assert "\x1b" not in text
    assert not any(line.startswith("2030") for line in text.splitlines())
    if format_ is LogFormat.JSON:
        assert text.count("\n") == 1


def test_an_error_is_told_as_a_block_below_its_line(written):
    stream = written()
    failed = Unavailable("no answer.", remedy="Wait.", where=Where(step="read", split="t/0", offset=5))
    get_log("runtime").warning("restarting", error=failed, delay="1s")
    lines = stream.getvalue().splitlines()
    assert lines[0].endswith("restarting delay=1s")
    assert lines[1:] == [
        "    error: no answer.",
        "      where: step 'read', at t/0 offset 5",
        "      remedy: Wait.",
    ]
