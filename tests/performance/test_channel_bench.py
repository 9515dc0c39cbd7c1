"""The benchmark of channels between workers runs, and everything that is sent is taken: how fast is not looked at."""

from __future__ import annotations

from tests.performance.channel_bench import MIB, Case, measure, table


def test_what_is_sent_is_taken_and_everything_is_measured():
    case = Case(kind="clicks", batch_records=100, window_bytes=MIB)
    figures = measure(case, 4_950)
    assert figures.records == 5_000
    assert figures.bytes > figures.records * 20
    assert min(figures.seconds, figures.cpu_seconds, figures.bare_seconds, figures.bare_cpu_seconds) > 0
    assert len(table([figures]).splitlines()) == 2
