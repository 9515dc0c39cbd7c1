"""One seed, one run: twice in this process, and in processes with other hash seeds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.chosen import run
from tests.simulation.jobs import JOBS

ROOT = Path(__file__).parents[2]
SHOW_DIGESTS = """
from tests.simulation.chosen import run
from tests.simulation.jobs import JOBS
print([run(3, job=job).digest for job in JOBS])
print([run(3, job="count", workers=3).digest])
"""


@pytest.mark.parametrize("job", JOBS)
def test_one_seed_gives_one_trace(job: str):
    first, second = run(5, job=job, keep_trace=True), run(5, job=job, keep_trace=True)
    assert first.trace == second.trace
    assert first.digest == second.digest
    assert first.faults, "a run in which nothing happens shows nothing"


@pytest.mark.parametrize("job", ["kinds", "connect-overtaken", "restore"])
def test_one_seed_gives_one_trace_of_several_workers(job: str):
    first, second = run(5, job=job, workers=3, keep_trace=True), run(5, job=job, workers=3, keep_trace=True)
    assert first.trace == second.trace
    assert first.met


def test_another_seed_gives_another_trace():
    assert run(5, job="copy").digest != run(6, job="copy").digest


def test_the_trace_does_not_depend_on_being_kept():
    assert run(7, job="count").digest == run(7, job="count", keep_trace=True).digest


def test_hash_seeds_do_not_matter():
    shown = [
        subprocess.run(
            [sys.executable, "-c", SHOW_DIGESTS],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert shown[0] == shown[1]
