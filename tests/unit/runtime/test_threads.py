"""Background work on threads: lanes in order, results in the caller's thread, an end that does not hang."""

from __future__ import annotations

import threading

import pytest

from processor.errors import Fenced
from processor.runtime.threads import THREADS_MAX, ThreadedExecutor
from tests.waiting import wait_until

PATIENCE_S = 20.0


@pytest.fixture
def executor():
    made = ThreadedExecutor()
    yield made
    made.close()


def collect(executor: ThreadedExecutor, results: list, number: int) -> None:
    def delivered() -> bool:
        executor.deliver()
        return len(results) >= number

    wait_until(delivered, PATIENCE_S, f"{number} results are delivered")


def test_work_of_one_lane_runs_one_after_another_in_order(executor):
    done: list[int] = []
    running: list[int] = []
    together: list[int] = []

    def work(number: int) -> int:
        running.append(number)
        together.append(len(running))
        running.remove(number)
        return number

    for number in range(200):
        executor.submit("lane", lambda n=number: work(n), done.append, done.append)
    collect(executor, done, 200)
    assert done == list(range(200))
    assert set(together) == {1}


def test_lanes_do_not_wait_for_each_other(executor):
    gate = threading.Event()
    done: list[str] = []
    executor.submit("slow", lambda: gate.wait(PATIENCE_S) and "slow", done.append, done.append)
    executor.submit("slow", lambda: "behind", done.append, done.append)
    executor.submit("fast", lambda: "fast", done.append, done.append)
    collect(executor, done, 1)
    assert done == ["fast"]
    gate.set()
    collect(executor, done, 3)
    assert done == ["fast", "slow", "behind"]


def test_results_come_in_the_thread_that_delivers_and_errors_too(executor):
    here = threading.current_thread()
    seen: list = []

    def fails() -> None:
        raise ValueError("broken")

    executor.submit(
        "a", threading.current_thread, lambda t: seen.append((t, threading.current_thread())), seen.append
    )
    collect(executor, seen, 1)
    worked_in, delivered_in = seen.pop()
    assert worked_in is not here
    assert delivered_in is here
    executor.submit("a", fails, seen.append, lambda error: seen.append((error, threading.current_thread())))
    collect(executor, seen, 1)
    error, delivered_in = seen.pop()
    assert str(error) == "broken"
    assert delivered_in is here


def test_what_a_result_submits_to_its_own_lane_runs(executor):
    done: list[str] = []

    def first(value: str) -> None:
        done.append(value)
        executor.submit("lane", lambda: "second", done.append, done.append)

    executor.submit("lane", lambda: "first", first, done.append)
    collect(executor, done, 2)
    assert done == ["first", "second"]


def test_more_lanes_than_threads_all_get_their_turn(executor):
    gate = threading.Event()
    done: list[int] = []
    lanes = THREADS_MAX * 3
    for number in range(lanes):
        executor.submit(
            f"lane {number}", lambda n=number: gate.wait(PATIENCE_S) and n, done.append, done.append
        )
    gate.set()
    collect(executor, done, lanes)
    assert sorted(done) == list(range(lanes))


def test_a_wait_ends_when_something_can_be_delivered_or_somebody_wakes_us(executor):
    done: list[str] = []
    executor.submit("lane", lambda: "done", done.append, done.append)
    executor.wait(int(PATIENCE_S * 1_000))
    assert executor.deliver()
    assert done == ["done"]
    executor.wake()
    executor.wait(int(PATIENCE_S * 1_000))
    assert not executor.deliver()


def test_close_drops_what_is_queued_ends_pauses_and_delivers_nothing():
    executor = ThreadedExecutor()
    started = threading.Event()
    ended: list[BaseException | str] = []

    def pauses() -> None:
        started.set()
        try:
            executor.pause(600_000)
        except Fenced as fenced:
            ended.append(fenced)
            raise

    results: list = []
    executor.submit("lane", pauses, results.append, results.append)
    executor.submit("lane", lambda: ended.append("never"), results.append, results.append)
    assert started.wait(PATIENCE_S)
    executor.close()
    assert [type(end) for end in ended] == [Fenced]
    assert not executor.deliver()
    executor.submit("lane", lambda: ended.append("late"), results.append, results.append)
    assert not executor.deliver()
    assert results == []
    assert len(ended) == 1
