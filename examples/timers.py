"""Reminds of orders that were not paid in time: event-time timers, state, and a side output."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from connectors.formats import Json
from connectors.kafka import KafkaSink, KafkaSource
from processor import Context, Job, KeyedProcess, SideOutput, ValueState

PAY_WITHIN_MS = 60_000


class Kind(StrEnum):
    ORDERED = "ordered"
    PAID = "paid"


@dataclass(frozen=True)
class Event:
    """Something happened to an order."""

    order: str
    kind: Kind
    at_ms: int


@dataclass(frozen=True)
class Paid:
    """An order was paid, so many milliseconds after it was made."""

    order: str
    after_ms: int


@dataclass(frozen=True)
class Reminder:
    """An order was not paid in time."""

    order: str
    ordered_at_ms: int


class WatchOrders(KeyedProcess[str, Event, Paid]):
    """One key is one order."""

    ordered_at_ms = ValueState(int)
    reminders = SideOutput(Reminder)

    def on_record(self, value: Event, /, context: Context[str, Paid]) -> None:
        ordered = self.ordered_at_ms.get()
        if value.kind is Kind.ORDERED:
            self.ordered_at_ms.set(value.at_ms)
            context.timers.at_event_time(value.at_ms + PAY_WITHIN_MS)
        elif ordered is not None:
            self.ordered_at_ms.clear()
            context.emit(Paid(value.order, value.at_ms - ordered))

    def on_timer(self, time_ms: int, /, context: Context[str, Paid]) -> None:
        ordered = self.ordered_at_ms.get()
        if ordered is not None and ordered + PAY_WITHIN_MS == time_ms:
            self.ordered_at_ms.clear()
            self.reminders.emit(Reminder(context.key, ordered))


def build() -> Job:
    """Topic ``orders`` to topics ``paid`` and ``reminders``."""
    job = Job("orders")
    events = job.read("orders", KafkaSource("orders", Json(Event))).event_time(
        lambda event: event.at_ms, disorder=timedelta(seconds=5), idle_after=timedelta(seconds=10)
    )
    watched = events.key_by("by-order", lambda event: event.order).process("watch", WatchOrders)
    watched.write("paid", KafkaSink("paid", Json(Paid)))
    watched.side(WatchOrders.reminders).write("reminders", KafkaSink("reminders", Json(Reminder)))
    return job
