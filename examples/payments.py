"""Brings orders and their payments together: two topics, one key, state and timers that both share."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from connectors.formats import Json
from connectors.kafka import KafkaSink, KafkaSource
from processor import Context, Job, KeyedCoProcess, SideOutput, ValueState

PAY_WITHIN_MS = 60_000


@dataclass(frozen=True)
class Order:
    id: str
    cents: int
    at_ms: int


@dataclass(frozen=True)
class Payment:
    order: str
    cents: int
    at_ms: int


@dataclass(frozen=True)
class Settled:
    """An order was paid, so many milliseconds after it was made."""

    order: str
    after_ms: int


@dataclass(frozen=True)
class Due:
    """What is missing of an order when its time is over."""

    order: str
    cents: int


class Settle(KeyedCoProcess[str, Order, Payment, Settled]):
    """One key is one order. Payments may come before their order, and in parts."""

    order = ValueState(Order)
    paid_cents = ValueState(int)
    due = SideOutput(Due)

    def on_left(self, value: Order, /, context: Context[str, Settled]) -> None:
        self.order.set(value)
        context.timers.at_event_time(value.at_ms + PAY_WITHIN_MS)
        self._settle(value, value.at_ms, context)

    def on_right(self, value: Payment, /, context: Context[str, Settled]) -> None:
        self.paid_cents.set((self.paid_cents.get() or 0) + value.cents)
        order = self.order.get()
        if order is not None:
            self._settle(order, value.at_ms, context)

    def on_timer(self, time_ms: int, /, context: Context[str, Settled]) -> None:
        order = self.order.get()
        if order is not None:
            self.due.emit(Due(order.id, order.cents - (self.paid_cents.get() or 0)))

    def _settle(self, order: Order, at_ms: int, context: Context[str, Settled]) -> None:
        if (self.paid_cents.get() or 0) >= order.cents:
            context.emit(Settled(order.id, at_ms - order.at_ms))
            self.order.clear()
            self.paid_cents.clear()


def build() -> Job:
    """Topics ``orders`` and ``payments`` to topics ``settled`` and ``due``."""
    job = Job("payments")
    disorder = timedelta(seconds=5)
    orders = job.read("orders", KafkaSource("orders", Json(Order))).event_time(
        lambda order: order.at_ms, disorder=disorder
    )
    payments = job.read("payments", KafkaSource("payments", Json(Payment))).event_time(
        lambda payment: payment.at_ms, disorder=disorder
    )
    by_order = orders.key_by("by-id", lambda order: order.id)
    paid_by_order = payments.key_by("by-order", lambda payment: payment.order)
    settled = by_order.connect(paid_by_order).process("settle", Settle)
    settled.write("settled", KafkaSink("settled", Json(Settled)))
    settled.side(Settle.due).write("due", KafkaSink("due", Json(Due)))
    return job
