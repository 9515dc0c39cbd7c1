"""The rules of publishing hold in every order of events, and none of them can be left out."""

from __future__ import annotations

import pytest

from processor.ids import Attempt, CheckpointId, Incarnation, Marker
from processor.protocol.publishing import Done, Send, Wanted, judge_publication
from tests.protocol.publishing_model import CI_VARIANTS, Variant, all_rules, explore, without
from tests.protocol.publishing_world import Rules

ABLATIONS = [(variant, rule) for variant in CI_VARIANTS for rule in variant.ablations]


@pytest.mark.parametrize("variant", CI_VARIANTS, ids=lambda variant: variant.name)
def test_r01_r03_r08_r10_to_r18_no_order_of_events_leads_to_a_bad_state(variant: Variant) -> None:
    result = explore(variant.bounds, Rules())
    assert not result.bad, f"{result.bad}, after:\n" + "\n".join(result.path)
    assert result.running_with_all_out > 0, "nothing bad happens because nothing is ever published"


@pytest.mark.parametrize(("variant", "rule"), ABLATIONS, ids=[f"{v.name}-{rule}" for v, rule in ABLATIONS])
def test_each_rule_is_needed(variant: Variant, rule: str) -> None:
    result = explore(variant.bounds, without(rule))
    assert result.bad, f"{variant.name}: nothing goes wrong without {rule} in {result.states:,} states"


def test_every_rule_of_the_model_has_an_ablation() -> None:
    shown = [rule for variant in CI_VARIANTS for rule in variant.ablations]
    assert sorted(shown) == sorted(all_rules())


def test_r08_r11_a_marker_rewritten_by_an_interrupted_going_back_is_still_the_expected_one() -> None:
    """A state of the model: one attempt can't read the newest checkpoint, opens an identity with its parent
    and dies; the next one can read it and must go on publishing rather than stop."""
    incarnation = Incarnation("i")
    expected = Marker(incarnation=incarnation, attempt=Attempt(1), checkpoint=CheckpointId(4), rows=2)
    reopened = Marker(incarnation=incarnation, attempt=Attempt(2), checkpoint=CheckpointId(4), rows=2)
    wanted = Wanted(incarnation=incarnation, attempt=Attempt(3), checkpoint=CheckpointId(5), rows=7)

    def sealed(attempt: Attempt) -> bool:
        return attempt <= 3

    assert judge_publication(reopened, wanted=wanted, expected=expected, sealed=sealed) == Send(from_row=0)
    out = wanted.marker(7)
    assert judge_publication(out, wanted=wanted, expected=expected, sealed=sealed) == Done()
