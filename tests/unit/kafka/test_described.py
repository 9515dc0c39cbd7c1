"""Sources and sinks say what they are in the words of a job's author."""

from __future__ import annotations

import re

import pytest

from connectors.formats import Json, Text
from connectors.kafka import KafkaSink, KafkaSource
from connectors.kafka.bounds import Earliest, Latest, UntilEnd


class Own:
    """A format of an author's own."""

    def decode(self, data: bytes, /) -> bytes:
        return data

    def encode(self, value: bytes, /) -> bytes:
        return value


@pytest.mark.parametrize(
    ("endpoint", "text"),
    [
        (KafkaSource("orders", Json(int)), "KafkaSource('orders', Json(int))"),
        (KafkaSource("orders", Own(), start=Earliest()), "KafkaSource('orders', Own)"),
        (
            KafkaSource(["a", "b"], Text(), start=Latest(), until=UntilEnd(), cluster="far"),
            "KafkaSource(('a', 'b'), Text('utf-8'), start=Latest(), until=UntilEnd(), cluster='far')",
        ),
        (
            KafkaSource.with_tombstones(re.compile("o.*"), Json(int)),
            "KafkaSource.with_tombstones(re.compile('o.*'), Json(int))",
        ),
        (KafkaSink("out", Json(int)), "KafkaSink('out', Json(int))"),
        (KafkaSink("out", Own(), cluster="far"), "KafkaSink('out', Own, cluster='far')"),
    ],
)
def test_a_source_or_sink_says_what_it_is(endpoint, text):
    assert repr(endpoint) == text
