"""Where a source starts and ends: exact times, and slips refused when the job is written."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.kafka import FromOffsets, FromTime, KafkaSink, KafkaSource, UntilOffsets, UntilTime
from processor.errors import JobError


class Raw:
    def decode(self, data: bytes, /) -> bytes:
        return data

    def encode(self, value: bytes, /) -> bytes:
        return value


@given(st.integers(0, 4_102_444_800_000))
def test_milliseconds_are_exact(time_ms: int) -> None:
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time_ms)
    assert FromTime(at).time_ms == time_ms
    assert UntilTime(at.astimezone(timezone(timedelta(hours=-8)))).time_ms == time_ms


@pytest.mark.parametrize("kind", [FromTime, UntilTime])
def test_a_time_needs_a_zone(kind: Any) -> None:
    with pytest.raises(JobError, match="without a time zone"):
        kind(datetime(2024, 1, 1))


@pytest.mark.parametrize("kind", [FromOffsets, UntilOffsets])
@pytest.mark.parametrize("offsets", [{("t", 0): -1}, {("t", -1): 0}])
def test_offsets_count_from_zero(kind: Any, offsets: Any) -> None:
    with pytest.raises(JobError, match="counted from 0"):
        kind(offsets)


@pytest.mark.parametrize("topics", ["", [], ["a", "a"], ["a", ""]])
def test_topics_that_make_no_sense_are_refused(topics: Any) -> None:
    with pytest.raises(JobError):
        KafkaSource(topics, Raw())


def test_an_unknown_policy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(JobError, match="fail, earliest, latest"):
        KafkaSource(re.compile("a.*"), Raw(), out_of_retention="newest")


@pytest.mark.parametrize("topic", ["", "a/b", "a b", "x" * 250, ".", ".."])
def test_a_sinks_topic_must_be_a_topics_name(topic: str) -> None:
    with pytest.raises(JobError, match="cannot be the name of a topic"):
        KafkaSink(topic, Raw())
