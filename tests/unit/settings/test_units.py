"""Durations and sizes say their unit; a bare number is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from processor.settings.units import (
    DURATION_MAX_MS,
    SIZE_MAX_BYTES,
    Duration,
    Size,
    duration_text,
    parse_duration_ms,
    parse_size_bytes,
    size_text,
)


class Sample(BaseModel):
    wait: Duration = 1_500
    room: Size = 2**20


@pytest.mark.parametrize(
    ("text", "ms"),
    [("10s", 10_000), ("250ms", 250), ("5m", 300_000), ("1h", 3_600_000), ("7d", 604_800_000), ("0ms", 0)],
)
def test_a_duration_is_milliseconds(text, ms):
    assert Sample(wait=text).wait == ms


@pytest.mark.parametrize(
    ("text", "size"), [("64MiB", 64 * 2**20), ("1GiB", 2**30), ("512KiB", 2**19), ("100B", 100)]
)
def test_a_size_is_bytes(text, size):
    assert Sample(room=text).room == size


@pytest.mark.parametrize("bare", [10, 0, 1.5, "10", " 10 ", "-3", "1e3"])
@pytest.mark.parametrize("field", ["wait", "room"])
def test_a_bare_number_is_refused_with_the_units_there_are(field, bare):
    with pytest.raises(ValidationError, match=r"has no unit: write a whole number and one of (ms|B), "):
        Sample.model_validate({field: bare})


@pytest.mark.parametrize("text", ["1.5s", "-5s", "s", "", "ten s", "5 parsecs", "10S", "1_0s", "٣s", "5s5m"])
def test_other_text_is_no_duration(text):
    with pytest.raises(ValueError):
        parse_duration_ms(text)


@pytest.mark.parametrize("text", ["1MB", "1mib", "1.5GiB", "-5B", "B", "", "10 M iB"])
def test_other_text_is_no_size(text):
    with pytest.raises(ValueError):
        parse_size_bytes(text)


@pytest.mark.parametrize("other", [True, None, [], {"s": 10}])
def test_a_value_of_another_type_is_refused_by_its_type(other):
    with pytest.raises(ValueError, match=type(other).__name__):
        parse_duration_ms(other)


def test_more_than_the_limit_is_refused_with_the_limit():
    with pytest.raises(ValueError, match="more than the largest duration, 366d"):
        parse_duration_ms("367d")
    with pytest.raises(ValueError, match="more than the largest size, 1024TiB"):
        parse_size_bytes("1025TiB")


@given(st.integers(0, DURATION_MAX_MS))
def test_a_duration_reads_back_what_it_prints(ms):
    assert parse_duration_ms(duration_text(ms)) == ms


@given(st.integers(0, SIZE_MAX_BYTES))
def test_a_size_reads_back_what_it_prints(size):
    assert parse_size_bytes(size_text(size)) == size


def test_values_are_dumped_with_the_unit_a_person_would_use():
    assert Sample(wait="90000ms", room="65536B").model_dump() == {"wait": "90s", "room": "64KiB"}
