"""Workers that are lost or hang are found by their heartbeats, and no others (D1)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.ids import WorkerId
from processor.protocol.liveness import Hangs, Liveness, LivenessPolicy, Lost, Stands, Verdict

POLICY = LivenessPolicy(heartbeat_timeout_ms=100, hang_timeout_ms=1_000)
ONE, TWO = WorkerId(0), WorkerId(1)
STEP_MS = 10


class Watch:
    """Time in steps, with a look at each; whoever is well says so at every step."""

    def __init__(self) -> None:
        self.now_ms = 5_000
        self.liveness = Liveness(POLICY, self.now_ms)
        self.liveness.watch(ONE, self.now_ms)
        self.liveness.watch(TWO, self.now_ms)

    def run(
        self, until_ms: int, *, one: int | None = 0, two: int | None = 0, heard: str = "12"
    ) -> list[Verdict]:
        """``one``, ``two``: the age of each one's turn when it begins; it grows by itself if it is not 0."""
        found: list[Verdict] = []
        started_ms = self.now_ms
        while self.now_ms < started_ms + until_ms:
            self.now_ms += STEP_MS
            for worker, age_ms in ((ONE, one), (TWO, two)):
                if str(worker + 1) in heard:
                    grown = self.now_ms - started_ms + age_ms if age_ms else age_ms
                    self.liveness.heard(worker, self.now_ms, grown)
            found += self.liveness.look(self.now_ms)
        return found


def test_d1_whoever_is_heard_and_turns_is_well():
    assert Watch().run(5_000, two=None) == [], "also one that has nothing to turn"


def test_d1_a_worker_that_is_silent_for_the_time_out_is_lost_and_told_once():
    watch = Watch()
    assert watch.run(90, heard="2") == []
    assert watch.run(10, heard="2") == [Lost(worker=ONE, silent_ms=100)]
    assert watch.run(500, heard="2") == []
    assert not watch.liveness.heard(ONE, watch.now_ms, 0), "nobody watches it any more"


def test_d1_one_that_was_never_heard_is_lost_in_the_same_time():
    watch = Watch()
    assert watch.run(100, heard="") == [Lost(worker=ONE, silent_ms=100), Lost(worker=TWO, silent_ms=100)]


def test_d1_one_heard_that_does_not_turn_is_asked_where_it_stands_and_then_hangs():
    watch = Watch()
    assert watch.run(1_500, two=STEP_MS) == [
        Stands(worker=TWO, still_ms=500),
        Hangs(worker=TWO, still_ms=1_000),
    ]


def test_d1_one_that_turned_again_is_asked_anew_the_next_time():
    watch = Watch()
    assert watch.run(700, one=STEP_MS) == [Stands(worker=ONE, still_ms=500)]
    assert watch.run(10) == []
    assert watch.run(700, one=STEP_MS) == [Stands(worker=ONE, still_ms=500)]


def test_d1_what_ended_as_it_should_is_not_missed():
    watch = Watch()
    watch.liveness.forget(ONE)
    watch.liveness.forget(ONE)
    assert watch.run(500, heard="2") == []


@pytest.mark.parametrize("slept_ms", [60, 100, 10**9])
def test_d1_a_judge_that_slept_takes_nobody_for_lost_but_gives_all_a_new_full_time(slept_ms):
    watch = Watch()
    watch.run(60, heard="2")
    watch.now_ms += slept_ms
    assert watch.liveness.look(watch.now_ms) == ()
    assert watch.run(90, heard="2") == []
    assert watch.run(10, heard="2") == [Lost(worker=ONE, silent_ms=100)], "a full time, and no more"


def test_d1_a_machine_that_slept_has_nobody_that_hangs():
    """All were stopped together: heartbeats say an age that is their own sleep."""
    watch = Watch()
    watch.now_ms += 10**6
    assert watch.liveness.look(watch.now_ms) == ()
    assert watch.run(490, one=10**6, two=10**6) == []
    assert watch.run(600, one=10**6) == [Stands(worker=ONE, still_ms=500), Hangs(worker=ONE, still_ms=1_000)]


def test_d1_a_short_sleep_of_the_judge_buys_nobody_time():
    watch = Watch()
    watch.run(50, heard="2")
    watch.now_ms += 50
    watch.liveness.heard(TWO, watch.now_ms, 0)
    assert watch.liveness.look(watch.now_ms) == (Lost(worker=ONE, silent_ms=100),)


@given(
    gaps=st.lists(st.integers(0, 300), max_size=60),
    beats=st.lists(st.booleans(), min_size=60, max_size=60),
)
def test_d1_nobody_is_lost_who_was_heard_within_the_time_out_or_while_the_judge_slept(gaps, beats):
    """The judge looks at any times; the worker is heard just before some of its looks."""
    liveness, now_ms = Liveness(POLICY, 0), 0
    liveness.watch(ONE, 0)
    heard_ms, awake_since_ms = 0, 0
    for gap_ms, beats_now in zip(gaps, beats, strict=False):
        now_ms += gap_ms
        if gap_ms > 50:
            awake_since_ms = now_ms
        if beats_now:
            heard_ms = now_ms
            assert liveness.heard(ONE, now_ms, 0)
        lost = liveness.look(now_ms) != ()
        assert lost == (now_ms - max(heard_ms, awake_since_ms) >= 100)
        if lost:
            return
