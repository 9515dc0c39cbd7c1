"""Who is made, replaced and ended when a job's processes come and go on the nodes of a cluster."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from processor.runtime.cluster.ray.fleet import AGAIN_MS, END_MS_MAX, TELL_MS, Fleet, FleetParts
from processor.runtime.cluster.ray.member import Member
from processor.runtime.cluster.ray.nodes import HolderLost, Room
from processor.runtime.supervisor import EXIT_GRACE_PASSED
from processor.telemetry.log import get_log

ROOM = Room(cpus=1.0, resources={"fast disk": 1.0})
LOST = object()
"""In the place of an answer: the actor is gone."""


class Call:
    def __init__(self, actor: Actor, method: str) -> None:
        self._actor, self._method = actor, method

    def answered(self) -> bool:
        return self._actor.lost or bool(self._actor.answers.get(self._method))

    def answer(self) -> Any:
        if self._actor.lost:
            raise HolderLost("its node is dead")
        return self._actor.answers[self._method].popleft()


@dataclass
class Actor:
    """An actor whose answers the test gives."""

    answers: dict[str, deque[Any]] = field(default_factory=dict)
    called: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)
    lost: bool = False
    ended: bool = False

    def call(self, method: str, *arguments: Any) -> Call:
        self.called.append((method, arguments))
        return Call(self, method)

    def end(self) -> None:
        self.ended = True

    def runs_at(self, address: str) -> None:
        self.says("free_address", address)
        self.says("start", 1234)

    def says(self, method: str, answer: Any) -> None:
        self.answers.setdefault(method, deque()).append(answer)

    def words(self) -> list[str]:
        [arguments] = [arguments for method, arguments in self.called if method == "start"]
        words: list[str] = arguments[0]
        return words


class Bench:
    """A fleet, time, and a script of what happens at each look."""

    def __init__(self, workers: int = 2) -> None:
        self.now_ms = 0
        self.asked = False
        self.actors: list[Actor] = []
        self.script: deque[Any] = deque()
        self.fleet = Fleet(
            FleetParts(
                coordinator=lambda: self._member(lambda address: ["run", address]),
                worker=lambda number, at: self._member(lambda address: ["worker", str(number), at]),
                workers=workers,
                clock=cast(Any, self),
                pause=self.pause,
                log=get_log("test"),
            )
        )

    def monotonic_ms(self) -> int:
        return self.now_ms

    def pause(self, timeout_ms: int) -> None:
        self.now_ms += timeout_ms
        if self.script:
            self.script.popleft()()

    def place(self, room: Room) -> Any:
        assert room is ROOM
        self.actors.append(Actor())
        return self.actors[-1]

    def _member(self, words: Any) -> Member:
        return Member(self, ROOM, words, {"PROCESSOR__LOG__LEVEL": "debug"}, "a secret")

    def workers_run(self, *numbers: int) -> None:
        for number in numbers:
            self.actors[number].runs_at(f"tcp:w:{number}")

    def then(self, *happens: Any) -> None:
        """One at each look."""
        self.script.extend(happens)

    def nothing(self, times: int = 1) -> None:
        self.then(*([lambda: None] * times))

    def run(self) -> int:
        return self.fleet.run(cast(Any, self))

    def stop(self) -> None:
        self.asked = True


def ends_with(bench: Bench, code: int, number: int = 0) -> Any:
    return lambda: bench.actors[number].says("poll", code)


def running(bench: Bench) -> None:
    """Coordinator, then two workers."""
    bench.then(lambda: bench.actors[0].runs_at("tcp:a:1"))
    bench.nothing(3)
    bench.then(lambda: bench.workers_run(1, 2))
    bench.nothing(3)


def test_g4_workers_are_made_once_the_coordinator_runs_and_are_told_where():
    bench = Bench()
    running(bench)
    bench.then(ends_with(bench, 0))
    assert bench.run() == 0
    assert [actor.words() for actor in bench.actors] == [
        ["run", "tcp:a:1"],
        ["worker", "0", "tcp:a:1"],
        ["worker", "1", "tcp:a:1"],
    ]
    [arguments] = [arguments for method, arguments in bench.actors[1].called if method == "start"]
    assert arguments[1:] == ({"PROCESSOR__LOG__LEVEL": "debug"}, "a secret")


@pytest.mark.parametrize("code", [0, 65, 78])
def test_the_coordinators_last_word_is_the_jobs(code: int):
    bench = Bench()
    running(bench)
    bench.then(ends_with(bench, code))
    assert bench.run() == code
    assert all(actor.ended for actor in bench.actors), "nobody is left"
    assert len(bench.actors) == 3


def test_g4_d1_a_lost_worker_is_replaced_after_a_while_by_a_new_actor():
    bench = Bench()
    running(bench)
    bench.then(lambda: setattr(bench.actors[2], "lost", True))
    bench.nothing(AGAIN_MS // 500 + 3)
    bench.then(ends_with(bench, 0))
    assert bench.run() == 0
    assert len(bench.actors) == 4
    assert bench.actors[2].ended, "if it is there after all, it must not be"
    bench.actors[3].says("free_address", "tcp:w:3")
    assert bench.actors[3].called == [("free_address", ())], "it waits for a node"


@pytest.mark.parametrize("how", ["node", "signal"])
def test_g4_r01_with_a_lost_coordinator_its_workers_go_and_all_are_made_anew(how: str):
    bench = Bench()
    running(bench)
    if how == "node":
        bench.then(lambda: setattr(bench.actors[0], "lost", True))
    else:
        bench.then(ends_with(bench, -9))
    bench.nothing(AGAIN_MS // 500 + 3)
    bench.then(lambda: bench.actors[3].runs_at("tcp:b:1"))
    bench.nothing(3)
    bench.then(lambda: bench.workers_run(4, 5))
    bench.nothing(3)
    bench.then(ends_with(bench, 0, number=3))
    assert bench.run() == 0
    assert [actor.words() for actor in bench.actors[3:]] == [
        ["run", "tcp:b:1"],
        ["worker", "0", "tcp:b:1"],
        ["worker", "1", "tcp:b:1"],
    ]
    assert all(actor.ended for actor in bench.actors)


def test_a_stop_is_passed_on_and_the_job_ends_as_it_likes():
    bench = Bench()
    running(bench)
    bench.then(bench.stop)
    bench.nothing(2)
    bench.then(ends_with(bench, 0))
    assert bench.run() == 0
    assert [method for method, _ in bench.actors[0].called].count("stop") == 1
    assert [method for method, _ in bench.actors[1].called].count("stop") == 1, "workers are asked, too"


def test_who_was_stopped_before_the_job_ran_is_told_so():
    bench = Bench()
    bench.then(bench.stop)
    assert bench.run() == EXIT_GRACE_PASSED
    assert bench.actors[0].ended


def test_a_coordinator_that_is_lost_while_it_stops_is_not_replaced():
    bench = Bench()
    running(bench)
    bench.then(bench.stop, lambda: setattr(bench.actors[0], "lost", True))
    assert bench.run() == EXIT_GRACE_PASSED
    assert len(bench.actors) == 3


def test_workers_that_do_not_end_are_ended():
    bench = Bench()
    running(bench)
    bench.then(ends_with(bench, 0))
    assert bench.run() == 0
    assert bench.now_ms >= END_MS_MAX
    assert all(actor.ended for actor in bench.actors[1:])


def test_what_waits_for_room_says_what_it_needs(caplog: pytest.LogCaptureFixture):
    bench = Bench()
    bench.nothing(TELL_MS // 500)
    bench.then(bench.stop)
    bench.run()
    said = [record for record in caplog.records if "waits for a node with room" in record.getMessage()]
    assert len(said) == 1
    assert getattr(said[0], "processor_fields", {})["needs"] == "1 CPU, 1 fast disk"
