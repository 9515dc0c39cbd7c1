"""Counts the clicks of each user with a function of its own, and says the new count for every click."""

from __future__ import annotations

import json
from collections.abc import Hashable

import msgspec

from connectors.formats import Json
from connectors.kafka import KafkaSink, KafkaSource
from processor import Context, Job, KeyedProcess, ValueState
from processor.audit import CountedState, keyed_count


class Click(msgspec.Struct, frozen=True, gc=False):
    """One click, as it is in topic ``clicks``."""

    user: str
    ts: int
    amount: int
    page: str


class UserCount(msgspec.Struct, frozen=True, gc=False):
    """How often a user has clicked so far."""

    user: str
    count: int


class CountClicks(KeyedProcess[str, Click, UserCount]):
    """State is declared as an attribute; absent is None."""

    clicks = ValueState(int)

    def on_record(self, value: Click, /, context: Context[str, UserCount]) -> None:
        count = (self.clicks.get() or 0) + 1
        self.clicks.set(count)
        context.emit(UserCount(value.user, count))


def build() -> Job:
    """Topic ``clicks`` to topic ``counts``."""
    job = Job("keyed-count")
    clicks = job.read("clicks", KafkaSource("clicks", Json(Click)))
    counts = clicks.key_by("by-user", lambda click: click.user).process("count", CountClicks)
    counts.write("counts", KafkaSink("counts", Json(UserCount)))
    job.audit(
        keyed_count(keys=users_in, counted=user_and_count, state=CountedState(step="count", name="clicks"))
    )
    return job


def users_in(key: bytes | None, value: bytes | None) -> list[str]:
    """For the audit, by itself: whom a record of ``clicks`` counts."""
    user: str = json.loads(value or b"")["user"]
    return [user]


def user_and_count(key: bytes | None, value: bytes | None) -> tuple[Hashable, int]:
    """For the audit: what a record of ``counts`` says."""
    said = json.loads(value or b"")
    return said["user"], said["count"]
