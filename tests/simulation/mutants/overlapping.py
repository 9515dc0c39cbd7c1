"""Mutants of checkpoints that overlap, and of what is said again until it is known (A2, A6, A7, R22)."""

from __future__ import annotations

from typing import Final

from processor.simulation.faults import Faults
from tests.simulation.mutants.mutant import Edit, Mutant

OVERLAPPING: Final = (
    Mutant(
        name="R22_condemn_what_those_under_way_build_on",
        job="count",
        breaks="A decision condemns files that a snapshot cut before it lists once more.",
        edits=(
            Edit(
                function="processor.storage.retention:condemned_by",
                find="if past.checkpoint >= needed_from:",
                put="if False:",
            ),
        ),
    ),
    Mutant(
        name="A06_an_older_one_stays_when_a_newer_is_complete",
        breaks="A checkpoint is decided behind a newer one, and goes back from it.",
        edits=(
            Edit(
                function="processor.protocol.collection:Collection._drop_older",
                find="if pending.checkpoint < than]",
                put="if False]",
            ),
        ),
    ),
    Mutant(
        name="A02_that_a_subtask_runs_is_said_once",
        job="copy",
        faults=Faults(message_lost=0.2, until_ms=20_000),
        breaks="Where the report is lost, no checkpoint starts until the time for starting has passed.",
        edits=(
            Edit(
                function="processor.runtime.worker:Worker.tick",
                find="if self._known_to_run:",
                put="if True:",
            ),
        ),
    ),
    Mutant(
        name="A07_a_split_that_was_found_is_handed_out_once",
        job="growing",
        faults=Faults(message_lost=0.2, until_ms=20_000),
        breaks="Where the order is lost, nobody reads the partition.",
        edits=(
            Edit(
                function="processor.runtime.discovery:Discovery.take",
                find="self.deployed()",
                put="pass",
            ),
        ),
    ),
)
