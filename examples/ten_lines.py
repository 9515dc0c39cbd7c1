"""The job of the README: how often each user clicked, kept exactly through any crash."""

from dataclasses import dataclass

from connectors.formats import AnyJson, Json
from connectors.kafka import KafkaSink, KafkaSource
from processor import Count, Job


@dataclass(frozen=True)
class Click:
    user: str
    page: str


def build() -> Job:
    job = Job("clicks-per-user")
    clicks = job.read("clicks", KafkaSource("clicks", Json(Click)))
    by_user = clicks.key_by("by-user", lambda click: click.user)
    by_user.aggregate("count", Count()).write("counts", KafkaSink("counts", AnyJson()))
    return job
