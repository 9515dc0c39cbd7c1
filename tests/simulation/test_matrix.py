"""Cells of the restore matrix, so many that any two choices meet in one; all of them are `make matrix`."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest

from processor.plan.chaining import plan
from tests.simulation.matrix import JOBS_RESTORED, Cell, all_cells, pairwise, run_cell
from tests.simulation.shape import BACKENDS, PARALLELISMS, Shape, all_shapes, laid_out

CELLS = pairwise(all_cells())

FAILED_ONCE = {
    551: "ended though a worker was killed before its output was seen: unit/runtime/test_remote_workers, test_r17_…",
}


@pytest.mark.parametrize("number", FAILED_ONCE)
def test_a_cell_that_failed_once_passes(number: int) -> None:
    result = run_cell(all_cells()[number - 1])
    assert result.good, "\n".join([FAILED_ONCE[number], *result.problems])


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_c2_c3_c5_d4_a_savepoint_goes_over_to_another_backend_parallelism_and_chaining(cell: Cell) -> None:
    result = run_cell(cell)
    assert result.good, "\n".join(result.problems)


def test_every_shape_is_restored_into_every_shape() -> None:
    shapes = all_shapes()
    assert len(shapes) == len(BACKENDS) * len(PARALLELISMS) * 2
    for job in JOBS_RESTORED:
        for native in (False, True):
            pairs = {(c.before, c.after) for c in all_cells() if c.job == job and c.native is native}
            assert pairs == {(before, after) for before in shapes for after in shapes}


def test_any_two_choices_meet() -> None:
    def pairs(cells) -> set:
        return {pair for cell in cells for pair in combinations(enumerate(cell.choices), 2)}

    assert pairs(CELLS) == pairs(all_cells())
    assert len(CELLS) < len(all_cells()) / 50


@pytest.mark.parametrize("job", JOBS_RESTORED)
@pytest.mark.parametrize("parallelism", PARALLELISMS)
def test_steps_behind_a_keyed_one_are_chained_or_not(job: str, parallelism: int) -> None:
    graph = JOBS_RESTORED[job](Random(1)).graph
    chains = [
        plan(laid_out(graph, Shape(backend=BACKENDS[0], parallelism=parallelism, chained=chained)), 1).chains
        for chained in (True, False)
    ]
    chained, apart = (
        {tuple(step.name for step in chain.steps) for chain in each.values()} for each in chains
    )
    assert any("count" in names and len(names) > 1 for names in chained)
    assert ("count",) in apart


def test_a_shape_is_a_word() -> None:
    for shape in all_shapes():
        assert Shape.parse(str(shape)) == shape
