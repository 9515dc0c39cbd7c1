"""The restore matrix on a real broker: so many cells that any two choices meet in one, audited across the seam.

A quarter of them is run; `CELLS=all` runs all. The whole matrix is run in the simulation: `make matrix`.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from tests.integration.case_run import CaseRun
from tests.simulation.matrix import Cell, all_cells, pairwise
from tests.waiting import wait_until

PUBLISHED_TIMEOUT_S = 60.0
EVERY = 4

CELLS = pairwise(all_cells())
RUN = CELLS if os.environ.get("CELLS") == "all" else CELLS[::EVERY]


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.parametrize("cell", RUN, ids=str)
def test_c2_c3_c5_a_savepoint_goes_over_to_another_backend_parallelism_and_chaining(
    kafka: str, tmp_path: Path, cell: Cell
) -> None:
    run = CaseRun.make(kafka, tmp_path, cell.job, cell.number)
    # The audit compares both sides of the seam.
    run.case = replace(run.case, checkpoint={**run.case.checkpoint, "retained": 1000})
    run.shaped(cell.before)
    with run.fed_and_watched(Random(cell.number)) as witnesses:
        run.start()
        wait_until(
            lambda: any(witness.records for witness in witnesses.values()),
            PUBLISHED_TIMEOUT_S,
            f"something is published:\n{run.process.said()}",
        )
        run.stop_with_savepoint("native" if cell.native else "canonical")
        assert run.origin is not None
        assert bool(list(Path(run.origin).rglob("*.avro"))) is not cell.native
        run.shaped(cell.after)
        run.start()
        run.finish()
    for report in run.audit(witnesses):
        assert report.passed, report.text()
        assert report.figure("6", "exact") == 1, report.text()
