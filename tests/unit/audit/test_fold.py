"""A fold finds every kind of fault that is planted in its answer, and none where there is none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from processor.audit.fold import CountFold, Deviation, FoldFigures, SequenceFold


def counted(
    keys: Iterable[str], answers: Iterable[tuple[str, int]], allowed: Iterable[str] = ()
) -> FoldFigures:
    fold = CountFold()
    fold.expect(keys)
    fold.allow(allowed)
    for key, count in answers:
        fold.meet(key, count)
    return fold.figures()


def in_sequence(items: Sequence[int], answers: Iterable[int], allowed: Iterable[int] = ()) -> FoldFigures:
    fold = SequenceFold()
    for item in items:
        fold.expect("g", item)
    for item in allowed:
        fold.allow("g", item)
    for item in answers:
        fold.meet("g", item)
    return fold.figures()


def test_right_counts_are_right() -> None:
    figures = counted("aab", [("a", 1), ("b", 1), ("a", 2)])
    assert (figures.expected, figures.met, figures.losses, figures.deviations) == (3, 3, 0, {})


def test_a_lost_count_is_named() -> None:
    figures = counted("aaa", [("a", 1), ("a", 3)])
    assert figures.losses == 1
    assert figures.lost_examples == ("key 'a': 1 of 1-3, first 2",)


def test_a_lost_end_and_a_lost_key_are_losses() -> None:
    assert counted("aab", [("a", 1)]).losses == 2


def test_a_count_that_comes_twice_is_a_duplicate() -> None:
    assert counted("aa", [("a", 1), ("a", 2), ("a", 2)]).deviations == {Deviation.DUPLICATE: 1}


def test_counts_that_changed_places_are_out_of_order_and_not_lost() -> None:
    figures = counted("aaa", [("a", 1), ("a", 3), ("a", 2)])
    assert figures.deviations == {Deviation.OUT_OF_ORDER: 1}
    assert figures.losses == 0


def test_a_count_too_high_and_an_unknown_key_are_invented() -> None:
    assert counted("a", [("a", 1), ("a", 2), ("z", 1), ("a", 0)]).deviations == {Deviation.INVENTED: 3}


def test_output_of_input_behind_the_checkpoint_is_ahead() -> None:
    figures = counted("a", [("a", 1), ("a", 2)], allowed="a")
    assert figures.deviations == {Deviation.AHEAD: 1}
    assert figures.losses == 0


def test_what_was_counted_before_the_output_began_is_not_expected_again() -> None:
    fold = CountFold()
    fold.before("aa")
    fold.expect("a")
    assert fold.meet("a", 3) is None
    assert fold.figures().expected == 1
    assert fold.figures().losses == 0
    assert fold.meet("a", 2) is Deviation.DUPLICATE


def test_a_right_sequence_is_right() -> None:
    figures = in_sequence([1, 1, 2], [1, 1, 2])
    assert (figures.expected, figures.losses, figures.deviations) == (3, 0, {})


def test_faults_of_a_sequence() -> None:
    assert in_sequence([1, 2, 3], [1, 3]).losses == 1
    assert in_sequence([1, 2, 3], [1, 2, 2, 3]).deviations == {Deviation.DUPLICATE: 1}
    assert in_sequence([1, 2, 3], [1, 3, 2]).deviations == {Deviation.OUT_OF_ORDER: 1}
    assert in_sequence([1], [1, 9]).deviations == {Deviation.INVENTED: 1}
    assert in_sequence([1], [1, 2], allowed=[2]).deviations == {Deviation.AHEAD: 1}


def test_a_group_without_order_is_compared_as_a_multiset() -> None:
    fold = SequenceFold()
    for item in (1, 2, 2):
        fold.expect(None, item)
    fold.disorder(None)
    assert [fold.meet(None, item) for item in (2, 2, 1)] == [None, None, None]
    assert fold.meet(None, 2) is Deviation.DUPLICATE
    assert fold.figures().losses == 0


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=30), st.data())
def test_any_one_record_left_out_is_one_loss(keys: list[str], data: st.DataObject) -> None:
    right = _running(keys)
    gone = data.draw(st.integers(0, len(right) - 1))
    figures = counted(keys, right[:gone] + right[gone + 1 :])
    assert figures.losses == 1
    assert not figures.deviations


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.data())
def test_any_one_record_repeated_is_one_duplicate(items: list[int], data: st.DataObject) -> None:
    again = data.draw(st.integers(0, len(items) - 1))
    answers = [*items, items[again]]
    figures = in_sequence(items, answers)
    assert figures.deviations == {Deviation.DUPLICATE: 1}
    assert figures.losses == 0


@given(st.lists(st.sampled_from("abc"), max_size=30), st.randoms(use_true_random=False))
def test_any_interleaving_of_keys_is_right(keys: list[str], chance: object) -> None:
    by_key = {key: [(key, n + 1) for n in range(keys.count(key))] for key in set(keys)}
    merged: list[tuple[str, int]] = []
    while any(by_key.values()):
        key = chance.choice(sorted(key for key, left in by_key.items() if left))  # type: ignore[attr-defined]
        merged.append(by_key[key].pop(0))
    figures = counted(keys, merged)
    assert not figures.losses
    assert not figures.deviations


def _running(keys: Iterable[str]) -> list[tuple[str, int]]:
    counts: dict[str, int] = {}
    answers = []
    for key in keys:
        counts[key] = counts.get(key, 0) + 1
        answers.append((key, counts[key]))
    return answers
