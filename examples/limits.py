"""Tells when an account spends more within an hour than its country allows, by limits that may change at any time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from connectors.formats import Json
from connectors.kafka import KafkaSink, KafkaSource
from processor import (
    BroadcastContext,
    BroadcastState,
    Context,
    Expiry,
    Job,
    KeyedBroadcastProcess,
    ListState,
    TimeDomain,
)

AN_HOUR = Expiry(timedelta(hours=1), by=TimeDomain.EVENT)


@dataclass(frozen=True)
class Payment:
    account: str
    country: str
    cents: int
    at_ms: int


@dataclass(frozen=True)
class Limit:
    """So much may be spent within an hour."""

    country: str
    cents: int


@dataclass(frozen=True)
class Exceeded:
    account: str
    cents: int
    """Spent within the hour before."""


class Watch(KeyedBroadcastProcess[str, Payment, Limit, Exceeded]):
    """One key is one account; all of them go by the same limits."""

    spent_cents = ListState(int, expires_after=AN_HOUR)
    limits = BroadcastState(str, Limit)

    def on_record(self, value: Payment, /, context: Context[str, Exceeded]) -> None:
        self.spent_cents.append(value.cents)
        spent = sum(self.spent_cents.get() or [])
        limit = self.limits.get(value.country)
        if limit is not None and spent > limit.cents:
            context.emit(Exceeded(value.account, spent))

    def on_broadcast(self, value: Limit, /, context: BroadcastContext) -> None:
        context.writable(self.limits).set(value.country, value)


def build() -> Job:
    """Topics ``payments`` and ``limits`` to topic ``exceeded``."""
    job = Job("limits")
    limits = job.read("limits", KafkaSource("limits", Json(Limit))).broadcast("to-all")
    payments = job.read("payments", KafkaSource("payments", Json(Payment))).event_time(
        lambda payment: payment.at_ms, disorder=timedelta(seconds=5)
    )
    by_account = payments.key_by("by-account", lambda payment: payment.account)
    exceeded = by_account.connect_broadcast(limits).process("watch", Watch)
    exceeded.write("exceeded", KafkaSink("exceeded", Json(Exceeded)))
    return job
