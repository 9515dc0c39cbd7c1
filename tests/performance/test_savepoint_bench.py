"""The benchmark of savepoints runs, and what it measures is right: how fast is not looked at."""

from __future__ import annotations

from tests.performance.savepoint_bench import VALUES, measure, table


def test_what_is_written_is_read_back_and_everything_is_measured():
    result = measure(6_000, 1)
    for name in VALUES:
        assert all(rate > 0 for rate in result["values"][name].values())
    assert len(table(result).splitlines()) == 1 + len(VALUES)
