"""Kills during checkpoints, deletions and restores leave no hole, and garbage is collected later (A17, C6)."""

from __future__ import annotations

import pytest

from tests.unit.state.killed_checkpoints import sweep


@pytest.mark.kill
@pytest.mark.parametrize("seed", [1, 2])
def test_a17_kills_at_any_moment_leave_no_hole_and_no_garbage_for_ever(tmp_path, seed):
    seen = sweep(tmp_path, 4, seed)
    assert seen["kills"] == 4
    assert seen["files"] > 4, "checkpoints in the database's own files were restored"
