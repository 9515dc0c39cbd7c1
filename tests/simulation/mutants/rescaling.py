"""Mutants of rescaling a job that runs (D5)."""

from __future__ import annotations

from typing import Final

from tests.simulation.mutants.mutant import Edit, Mutant

SUPERVISOR: Final = "processor.runtime.supervisor:Supervisor"

RESCALING: Final = (
    Mutant(
        name="D5_the_next_attempt_is_laid_out_as_the_one_before",
        breaks="The job stops for a moment, and runs as it did.",
        edits=(
            Edit(
                function=f"{SUPERVISOR}.run",
                find="self._parts = replace(self._parts, layout=outcome)",
                put="self._rescaling = _Rescaling(layout=self._parts.layout, answer=self._rescaling.answer)",
            ),
        ),
    ),
    Mutant(
        name="D5_a_rescaling_is_an_ordinary_checkpoint",
        breaks="Whoever asked for another parallelism gets a checkpoint, and is told that it has it.",
        workers=3,
        edits=(
            Edit(
                function="processor.protocol.messages:CheckpointKind.stops",
                find="return self.ends_job or self is CheckpointKind.RESCALE",
                put="return self.ends_job",
            ),
        ),
    ),
    Mutant(
        name="D5_the_attempt_before_is_not_released",
        breaks="Its part goes on in workers that have another already.",
        workers=3,
        edits=(
            Edit(
                function=f"{SUPERVISOR}._close",
                find="attempt.close()",
                put="pass",
            ),
        ),
    ),
)
