"""Counts words: lines of text go in as JSON, every word goes out with how often it was seen so far.

    processor run examples.word_count:build --set kafka.main.bootstrap_servers=localhost:9092 \\
        --set checkpoint.directory=checkpoints
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass

from connectors.formats import AnyJson, Json
from connectors.kafka import KafkaSink, KafkaSource
from processor import Count, Job
from processor.audit import CountedState, keyed_count


@dataclass(frozen=True)
class Line:
    """One line of a file of text."""

    file: str
    no: int
    text: str


def words_of(line: Line) -> list[str]:
    """The words of a line: what stands between spaces."""
    return line.text.split()


def build() -> Job:
    """Topic ``lines`` to topic ``counts``."""
    job = Job("word-count")
    lines = job.read("lines", KafkaSource("lines", Json(Line)))
    words = lines.flat_map("split", words_of)
    counts = words.key_by("by-word", lambda word: word).aggregate("count", Count())
    counts.write("counts", KafkaSink("counts", AnyJson()))
    job.audit(
        keyed_count(keys=words_in, counted=word_and_count, state=CountedState(step="count", name="total"))
    )
    return job


def words_in(key: bytes | None, value: bytes | None) -> list[str]:
    """For the audit, by itself: the words that a record of ``lines`` counts."""
    text: str = json.loads(value or b"")["text"]
    return text.split()


def word_and_count(key: bytes | None, value: bytes | None) -> tuple[Hashable, int]:
    """For the audit: what a record of ``counts`` says."""
    said = json.loads(value or b"")
    return said["key"], said["value"]
