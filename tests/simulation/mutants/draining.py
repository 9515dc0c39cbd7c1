"""Mutants of a stop with drain, and of two streams with shared state (R24)."""

from __future__ import annotations

from typing import Final

from tests.simulation.mutants.mutant import Edit, Mutant

DRAINING: Final = (
    Mutant(
        name="R24_drain_without_the_end_of_its_sources",
        job="drain",
        breaks="A drain is a stop: what waits for event time stays in the state.",
        edits=(
            Edit(
                function="processor.task.source_intake:SourceIntake._cut",
                find="if kind is CheckpointKind.DRAIN and not self._subtask.ended:",
                put="if False:",
            ),
        ),
    ),
    Mutant(
        name="R24_a_drained_job_runs_on",
        job="drain",
        breaks="A drained job that is started again reads on, with event time at its end.",
        edits=(
            Edit(
                function="processor.runtime.supervisor:Supervisor._stop_decided",
                find="entry.drained or",
                put="",
            ),
        ),
    ),
    Mutant(
        name="R24_sources_resume_after_a_failed_drain",
        job="drain",
        breaks="After a drain that was given up the attempt runs on, with sources that have ended.",
        edits=(
            Edit(
                function="processor.protocol.coordinator:Coordinator._give_up",
                find="drains = pending.request.kind is CheckpointKind.DRAIN",
                put="drains = False",
            ),
            Edit(
                function="processor.protocol.coordinator:Coordinator._dropped",
                find="if stopped and request.kind is not CheckpointKind.DRAIN:",
                put="if stopped:",
            ),
        ),
    ),
    Mutant(
        name="the_right_stream_is_taken_for_the_left",
        job="connect",
        breaks="Records of both streams reach the function of the first.",
        edits=(
            Edit(
                function="processor.operators.keyed_process:KeyedProcessOperator.on_batch",
                find="self._record_methods[input]",
                put="self._record_methods[0]",
            ),
        ),
    ),
)
