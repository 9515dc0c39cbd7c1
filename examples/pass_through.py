"""Copies a topic: key, value, headers and timestamp of every record, each once, in the order of its key."""

from __future__ import annotations

from connectors.formats import Raw
from connectors.kafka import KafkaSink, KafkaSource
from processor import Job
from processor.audit import pass_through


def build() -> Job:
    """Topic ``records`` to topic ``copies``."""
    job = Job("pass-through")
    job.read("records", KafkaSource("records", Raw())).write("copies", KafkaSink("copies", Raw()))
    job.audit(pass_through())
    return job
