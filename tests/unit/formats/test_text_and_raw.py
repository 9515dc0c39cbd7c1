"""Text and raw bytes: nothing is replaced, nothing is guessed."""

from __future__ import annotations

import pytest

from connectors.formats import Raw, Text
from processor.errors import JobError


def test_text_is_read_and_written_in_its_encoding():
    assert Text().decode(Text().encode("grün")) == "grün"
    assert Text("latin-1").encode("ü") == b"\xfc"
    assert Text().value_type() is str


def test_undecodable_text_is_an_error_and_not_a_question_mark():
    with pytest.raises(UnicodeDecodeError):
        Text().decode(b"\xff")
    with pytest.raises(UnicodeEncodeError):
        Text("ascii").encode("ü")


def test_an_unknown_encoding_is_refused_by_name_before_anything_runs():
    with pytest.raises(JobError, match="utf-9"):
        Text("utf-9")


def test_raw_hands_the_bytes_on():
    data = b"\x00\xff"
    assert Raw().decode(data) is data
    assert Raw().encode(b"") == b""
    assert Raw().value_type() is bytes


def test_raw_does_not_write_what_is_not_bytes():
    with pytest.raises(TypeError, match="str"):
        Raw().encode("text")  # type: ignore[arg-type]
