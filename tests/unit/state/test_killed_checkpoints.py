"""Kills during checkpoints, deletions and restores leave no hole, and garbage is collected later (A17, C6)."""

from __future__ import annotations

import pytest

from tests.kill_budget import budgeted
from tests.unit.state.killed_checkpoints import sweep

KILLS = budgeted(2, 4)


@pytest.mark.kill(KILLS)
@pytest.mark.parametrize("seed", budgeted([1], [1, 2]))
def test_a17_kills_at_any_moment_leave_no_hole_and_no_garbage_for_ever(tmp_path, seed):
    seen = sweep(tmp_path, KILLS, seed)
    assert seen["kills"] == KILLS
    assert seen["files"] > KILLS, "checkpoints in the database's own files were restored"
