"""Runs the tests of a mutant under it: pytest's exit code says whether they catch it (1), or not (0).

python -m tests.simulation.mutants.under D1_heard_is_well
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pytest

from tests.simulation.mutants.catalogue import SHOWN_BY_TESTS
from tests.simulation.mutants.mutant import applied


def main(arguments: Sequence[str]) -> int:
    (name,) = arguments
    mutant = SHOWN_BY_TESTS[name]
    with applied(mutant):
        return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *mutant.tests.split()]))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
