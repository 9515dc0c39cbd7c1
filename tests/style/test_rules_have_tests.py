"""Every rule of exactly-once, part and case has a test that names it, and tests/RULES.md says which."""

from __future__ import annotations

import pytest

from tests.style.rules_table import (
    ALSO,
    CASES,
    PARTS,
    RULES,
    UNREACHABLE,
    TestName,
    all_tests,
    by_rule,
    listed,
)

AGAIN = "run `python -m tests.style.rules_table`"


def test_every_test_in_the_table_exists():
    tests = all_tests()
    gone = sorted(
        f"{what}: {test.file}::{test.name}" for what, found in listed().items() for test in found - tests
    )
    assert not gone, f"{AGAIN}; these are no tests: {gone}"
    missing = [name for names in ALSO.values() for name in names if TestName(*name.split("::")) not in tests]
    assert not missing, f"ALSO names what is no test: {missing}"


def test_every_rule_and_case_has_a_test_in_the_table():
    found = listed()
    without = [what for what in (*RULES, *PARTS, *CASES) if not found.get(what) and what not in UNREACHABLE]
    assert not without, f"no test is listed for {without}; {AGAIN} once there is one"


def test_a_test_is_listed_under_what_it_names_only():
    named = by_rule()
    wrong = sorted(
        f"{what}: {test.name}" for what, tests in listed().items() for test in tests - named.get(what, set())
    )
    assert not wrong, f"{AGAIN}; these do not name what they are listed under: {wrong}"


def test_no_test_names_a_rule_or_case_that_nobody_knows():
    unknown = {
        what: sorted(test.name for test in tests)
        for what, tests in by_rule().items()
        if what not in {**RULES, **PARTS, **CASES}
    }
    assert not unknown, f"add them to tests/style/rules_table.py, or mend the names: {unknown}"


def test_what_is_called_unreachable_has_no_test():
    reached = [what for what in UNREACHABLE if by_rule().get(what)]
    assert not reached, f"UNREACHABLE names {reached}, which tests reach"


@pytest.mark.parametrize(
    ("name", "shows"),
    [
        ("test_r09_rows", ["R9"]),
        ("test_r08_r11_both", ["R8", "R11"]),
        ("test_r01_r03_r08_r10_to_r12_model", ["R1", "R3", "R8", "R10", "R11", "R12"]),
        ("test_case_16_trailing", ["case 16"]),
        ("test_r16", ["R16"]),
        ("test_a05_b2_c7_parts", ["A5", "B2", "C7"]),
        ("test_four_r16x_or_case_1", []),
    ],
)
def test_names_are_read_as_they_are_meant(name, shows):
    assert list(TestName("file", name).shows()) == shows
