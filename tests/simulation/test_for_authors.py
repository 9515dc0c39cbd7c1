"""What authors are given: ``run_job`` and ``simulate``, on the examples."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.formats import Json
from connectors.kafka import KafkaSink, KafkaSource
from examples import keyed_count, limits, payments, timers
from processor import Context, Job, KeyedProcess, ValueState
from processor.errors import JobError, UserCodeError
from processor.testing import Faults, Fed, SimulationFailed, run_job, simulate


def test_run_job_tells_what_was_written():
    with run_job(keyed_count.build()) as running:
        ann, bob = (keyed_count.Click(user=user, ts=0, amount=1, page="/") for user in ("ann", "bob"))
        running.feed("clicks", ann, bob, ann)
        assert [record.value for record in running.written("counts")] == [
            keyed_count.UserCount("ann", 1),
            keyed_count.UserCount("bob", 1),
            keyed_count.UserCount("ann", 2),
        ]
        running.feed("clicks", bob)
        assert running.written("counts")[-1].value == keyed_count.UserCount("bob", 2)


def test_run_job_advances_event_time():
    job = timers.build()
    ordered = timers.Event("order-1", timers.Kind.ORDERED, at_ms=0)
    with run_job(job) as running:
        running.feed("orders", ordered)
        running.advance_watermark("orders", timers.PAY_WITHIN_MS - 1)
        assert running.written("reminders") == []
        running.advance_watermark("orders", timers.PAY_WITHIN_MS)
        [reminder] = running.written("reminders")
        assert reminder.value == timers.Reminder("order-1", 0)


def test_event_time_of_connected_streams_is_that_of_the_slower():
    with run_job(payments.build()) as running:
        running.feed("orders", payments.Order("a", cents=100, at_ms=0), payments.Order("b", 50, at_ms=0))
        running.feed("payments", payments.Payment("a", 60, at_ms=10), payments.Payment("b", 50, at_ms=20))
        [settled] = running.written("settled")
        assert settled.value == payments.Settled("b", after_ms=20)
        running.advance_watermark("orders", payments.PAY_WITHIN_MS)
        assert running.written("due") == [], "payments have not come that far"
        running.advance_watermark("payments", payments.PAY_WITHIN_MS)
        [due] = running.written("due")
        assert due.value == payments.Due("a", cents=40)


def test_limits_hold_for_all_accounts_and_what_was_spent_is_over_in_an_hour():
    minute_ms = 60_000

    def pay(account: str, cents: int, minute: int) -> limits.Payment:
        return limits.Payment(account, "pt", cents, minute * minute_ms)

    with run_job(limits.build(), parallelism=2) as running:
        running.feed("payments", pay("a", 900, 0))
        running.feed("limits", limits.Limit("pt", 1_000), limits.Limit("fr", 1))
        running.feed("payments", pay("a", 200, 30), pay("b", 1_000, 31))
        running.restart(parallelism=3)
        running.feed("payments", pay("c", 1_001, 32), pay("a", 700, 62))
        running.feed("payments", pay("a", 150, 63))  # an hour after the first
        running.feed("limits", limits.Limit("pt", 100))
        running.feed("payments", pay("d", 101, 64))
        told = sorted((record.value.account, record.value.cents) for record in running.written("exceeded"))
    assert told == [("a", 1_050), ("a", 1_100), ("a", 1_800), ("c", 1_001), ("d", 101)]


class Late(KeyedProcess[str, str, str]):
    """Says a value again ten minutes later."""

    last = ValueState(str)

    def on_record(self, value: str, /, context: Context[str, str]) -> None:
        self.last.set(value)
        context.timers.at_processing_time(context.processing_time_ms + 600_000)

    def on_timer(self, time_ms: int, /, context: Context[str, str]) -> None:
        context.emit(self.last.get() or "")


def late() -> Job:
    job = Job("late")
    keyed = job.read("read", KafkaSource("in", Json(str))).key_by("by-value", lambda value: value)
    keyed.process("wait", Late).write("write", KafkaSink("out", Json(str)))
    return job


def test_run_job_lets_processing_time_pass_without_sleeping():
    with run_job(late()) as running:
        running.feed("read", "hello")
        assert running.written("write") == []
        running.advance_time(600_000)
        assert [record.value for record in running.written("write")] == ["hello"]


def test_run_job_raises_what_a_function_raises():
    job = Job("fails")
    job.read("read", KafkaSource("in", Json(int))).map("divide", lambda value: 1 // value).write(
        "write", KafkaSink("out", Json(int))
    )
    with run_job(job) as running:
        running.feed("read", 1)
        with pytest.raises(UserCodeError, match="divide"):
            running.feed("read", 0)


def test_run_job_names_steps_that_are_none():
    with run_job(keyed_count.build()) as running:
        with pytest.raises(JobError, match="clicks"):
            running.feed("click", 1)
        with pytest.raises(JobError, match="writes"):
            running.written("count")
        with pytest.raises(JobError, match="event time"):
            running.advance_watermark("clicks", 1)


def clicks(users: str) -> list[Fed]:
    return [
        Fed(value=json.dumps({"user": user, "ts": 0, "amount": 1, "page": "/"}), key=user, part=number % 2)
        for number, user in enumerate(users)
    ]


@given(seed=st.integers(0, 10_000))
@settings(max_examples=10)
def test_simulate_checks_a_jobs_own_audit(seed: int):
    result = simulate(
        keyed_count.build(), {"clicks": clicks("abcabbaccd" * 3)}, seed=seed, faults=Faults.heavy()
    )
    assert result.good


def doubling() -> Job:
    job = Job("doubling")
    job.read("read", KafkaSource("in", Json(int))).map("double", lambda value: 2 * value).write(
        "write", KafkaSink("out", Json(int))
    )
    return job


def test_simulate_runs_a_job_in_several_workers():
    result = simulate(
        keyed_count.build(),
        {"clicks": clicks("abcabbaccd" * 3)},
        seed=10,
        faults=Faults.heavy(),
        parallelism=2,
        workers=2,
    )
    assert any(what.startswith("a worker") for what in result.met)


def test_simulate_without_an_audit_compares_with_a_run_without_faults():
    result = simulate(
        doubling(), {"read": [Fed(value=str(n)) for n in range(20)]}, seed=3, faults=Faults.heavy()
    )
    assert result.faults


class Forgetful(KeyedProcess[int, int, int]):
    """Counts in an attribute, which is in no checkpoint."""

    def __init__(self) -> None:
        self.count = 0

    def on_record(self, value: int, /, context: Context[int, int]) -> None:
        self.count += 1
        context.emit(self.count)


def test_simulate_finds_a_job_that_keeps_state_where_no_checkpoint_sees_it():
    job = Job("forgetful")
    keyed = job.read("read", KafkaSource("in", Json(int))).key_by("all", lambda value: 0)
    keyed.process("count", Forgetful).write("write", KafkaSink("out", Json(int)))
    feed = {"read": [Fed(value=str(n)) for n in range(30)]}
    faults = Faults(kills=30, until_ms=10_000)
    with pytest.raises(SimulationFailed, match="without faults") as failed:
        simulate(job, feed, seed=1, faults=faults, parts=1)
    assert "seed 1" in str(failed.value)


def test_time_is_not_slept(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail("a simulated run slept"))
    simulate(doubling(), {"read": [Fed(value="1")]})
