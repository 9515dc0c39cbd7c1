"""R11's table line by line, R14's openings, R8's going back: what is done about the marker just read."""

from __future__ import annotations

import pytest

from processor.errors import EngineBug
from processor.ids import Attempt, CheckpointId, Incarnation, Marker
from processor.protocol.publishing import (
    Done,
    Send,
    StopLoudly,
    StopQuietly,
    Verdict,
    Wanted,
    judge_opening,
    judge_publication,
)

WANTED = Wanted(incarnation=Incarnation("ours"), attempt=Attempt(5), checkpoint=CheckpointId(20), rows=7)


def marker(checkpoint: int, rows: int, attempt: int = 5, incarnation: str = "ours") -> Marker:
    return Marker(
        incarnation=Incarnation(incarnation),
        attempt=Attempt(attempt),
        checkpoint=CheckpointId(checkpoint),
        rows=rows,
    )


EXPECTED = marker(19, 3, attempt=4)


def publication(seen: Marker | None, *, sealed: bool = True, vouched: bool = False) -> Verdict:
    return judge_publication(
        seen, wanted=WANTED, expected=EXPECTED, sealed=lambda attempt: sealed, vouched=vouched
    )


def opening(
    seen: Marker | None,
    *,
    sealed: bool = True,
    unrecorded: bool = False,
    accepted: str | None = None,
    unreadable: int | None = None,
    newest: int = 25,
) -> Verdict:
    return judge_opening(
        seen,
        opening=WANTED,
        sealed=lambda attempt: sealed,
        unrecorded=unrecorded,
        newest_id=CheckpointId(newest),
        accepted=Incarnation(accepted) if accepted else None,
        unreadable=CheckpointId(unreadable) if unreadable else None,
    )


def loudly(verdict: Verdict) -> str:
    assert isinstance(verdict, StopLoudly)
    return verdict.reason


# --- R11, in the order of the table


def test_r11_no_marker_stops_loudly_and_the_operator_may_choose():
    verdict = publication(None)
    assert isinstance(verdict, StopLoudly)
    assert verdict.choose
    assert publication(None, vouched=True) == Send(from_row=0)


def test_r11_another_incarnation_stops_loudly_naming_both():
    reason = loudly(publication(marker(20, 7, incarnation="theirs"), vouched=True))
    assert "theirs" in reason
    assert "ours" in reason


def test_r11_a_higher_attempt_stops_quietly_if_the_log_holds_its_seal():
    assert publication(marker(20, 7, attempt=6)) == StopQuietly(newer=Attempt(6))
    assert "knows no attempt 6" in loudly(publication(marker(20, 7, attempt=6), sealed=False))


@pytest.mark.parametrize("attempt", range(1, 6))
def test_r11_mine_with_all_rows_is_done_whichever_attempt_sent_it(attempt):
    assert publication(marker(20, 7, attempt=attempt)) == Done()


@pytest.mark.parametrize("rows", range(7))
def test_r11_mine_with_fewer_rows_goes_on_from_the_next(rows):
    assert publication(marker(20, rows)) == Send(from_row=rows)


def test_r11_the_expected_one_begins_at_the_first_row():
    assert publication(EXPECTED) == Send(from_row=0)
    assert publication(marker(19, 3, attempt=5)) == Send(from_row=0), "or written again by a later opening"


@pytest.mark.parametrize(
    "seen",
    [
        marker(19, 2, attempt=4),
        marker(19, 4, attempt=4),
        marker(19, 3, attempt=3),
        marker(18, 3, attempt=4),
        marker(21, 0),
        marker(20, 8),
    ],
)
def test_r11_anything_else_stops_loudly_and_there_is_nothing_to_choose(seen):
    verdict = publication(seen)
    assert isinstance(verdict, StopLoudly)
    assert not verdict.choose
    assert str(seen) in verdict.reason
    assert str(EXPECTED) in verdict.reason


# --- R14


@pytest.mark.parametrize("seen", [EXPECTED, marker(20, 7), marker(20, 3), marker(1, 0, attempt=1)])
def test_r14_an_opening_always_writes(seen):
    assert opening(seen) == Send(from_row=0)


def test_r14_only_an_opening_may_find_no_marker_and_only_if_nothing_may_be_out():
    assert opening(None) == Send(from_row=0)
    verdict = opening(None, unrecorded=True)
    assert isinstance(verdict, StopLoudly)
    assert verdict.choose


def test_r14_the_first_two_lines_of_the_table_stop_it():
    assert "theirs" in loudly(opening(marker(1, 1, incarnation="theirs")))
    assert opening(marker(20, 7, attempt=6)) == StopQuietly(newer=Attempt(6))
    assert "knows no attempt" in loudly(opening(marker(20, 7, attempt=6), sealed=False))


def test_r02_an_incarnation_the_operator_takes_over_from_is_written_over():
    theirs = marker(99, 1, attempt=77, incarnation="theirs")
    assert opening(theirs, accepted="theirs") == Send(from_row=0)
    assert "theirs" in loudly(opening(theirs, accepted="other"))


def test_r14_a_marker_above_every_id_of_the_log_tells_that_the_log_lost_its_end():
    assert "lost its end" in loudly(opening(marker(26, 0)))
    assert opening(marker(25, 0)) == Send(from_row=0)


# --- R8


@pytest.mark.parametrize(("checkpoint", "stops"), [(20, False), (21, True), (22, True)])
def test_r08_going_back_stops_where_the_unreadable_one_is_out(checkpoint, stops):
    verdict = opening(marker(checkpoint, 1), unreadable=21)
    if stops:
        assert "checkpoint 21 can't be read" in loudly(verdict)
    else:
        assert verdict == Send(from_row=0)


# --- markers


def test_r16_a_marker_counts_the_rows_of_its_own_checkpoint():
    assert WANTED.marker(3) == marker(20, 3)
    for rows in (-1, 8):
        with pytest.raises(EngineBug):
            WANTED.marker(rows)
