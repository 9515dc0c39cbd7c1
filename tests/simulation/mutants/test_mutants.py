"""The simulation catches what it claims to catch: the short form of ``make mutants``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.mutants.catalogue import MUTANTS, SHOWN_BY_TESTS
from tests.simulation.mutants.hunt import known
from tests.simulation.mutants.mutant import Edit, Mutant, MutantDoesNotFit, mutated

ROOT = Path(__file__).parents[3]
NEXT_SEEDS = 40
"""How many more are tried when the seed of last time shows nothing any more: its draws may have changed."""


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_fits_the_code_and_a_seed_that_shows_it_is_known(name: str):
    for function, code in mutated(MUTANTS[name]):
        assert function.__code__ != code
    assert name in known(), "run `make mutants`"


EVERY = 1 if os.environ.get("MUTANTS") == "all" else 4
"""Each of them starts a test run of its own: `make mutants` looks at all."""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SHOWN_BY_TESTS)[::EVERY])
def test_a_mutant_that_the_simulation_cannot_show_is_caught_by_its_tests(name: str):
    """They fail with it, and pass without: that they do is seen where they run by themselves."""
    under = subprocess.run(
        [sys.executable, "-m", "tests.simulation.mutants.under", name],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert under.returncode == pytest.ExitCode.TESTS_FAILED, under.stdout + under.stderr
    assert "NameError" not in under.stdout, f"the mutant is no program: {under.stdout}"


def test_no_seed_is_kept_for_a_mutant_that_is_gone():
    assert known().keys() <= MUTANTS.keys()


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_every_mutant_is_caught():
    """In processes of their own: this one goes on with the code as it is."""
    hunted = subprocess.run(
        [sys.executable, "-m", "tests.simulation.mutants", "--known", "--seeds", str(NEXT_SEEDS)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert hunted.returncode == 0, hunted.stdout + hunted.stderr


def test_an_edit_that_no_longer_fits_is_an_error():
    function = "processor.task.subtask:Subtask.end"
    gone = Mutant(
        name="gone", breaks="nothing", edits=(Edit(function=function, find="no such text", put=""),)
    )
    with pytest.raises(MutantDoesNotFit, match="holds 0 times"):
        mutated(gone)
    renamed = Mutant(
        name="renamed", breaks="nothing", edits=(Edit(function=f"{function}s", find="", put=""),)
    )
    with pytest.raises(MutantDoesNotFit, match="there are 0 of the name ends"):
        mutated(renamed)
