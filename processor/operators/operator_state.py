"""Opens what of a step's state belongs to the subtask, and makes its snapshots part of the operator's."""

from __future__ import annotations

from typing import Final

from processor.contracts.completion import Completion
from processor.operators.operator import OperatorContext, OperatorSnapshot
from processor.protocol.entries import StateFile
from processor.state.operator_state import declared_operator_states
from processor.state.operator_states import OperatorStateRequest, OperatorStates

COPIES_DIFFER: Final = "broadcast_copies_differ"
"""Counter of a step: subtasks had other broadcast state than the first, whose is now theirs. What on_broadcast did
depended on more than its records."""


def open_operator_states(context: OperatorContext, function: type) -> OperatorStates:
    """The state that a class declares, with what the checkpoint holds of it."""
    states = OperatorStates(
        declared_operator_states(function),
        OperatorStateRequest(
            step=context.step,
            subtask_index=context.subtask_index,
            parallelism=context.parallelism,
            max_parallelism=context.max_parallelism,
            snapshots=context.backend.snapshots,
            files=context.files,
            file_prefix=context.file_prefix,
            token=context.token,
            restored=context.restored.operators,
        ),
    )
    if states.differ():
        context.count(COPIES_DIFFER, 1)
    return states


class OperatorCompletion:
    """The second phase of a step without keyed state."""

    def __init__(self, states: Completion[tuple[StateFile, ...]]) -> None:
        self._states = states

    def run(self) -> OperatorSnapshot:
        return OperatorSnapshot(operators=self._states.run())

    def discard(self) -> None:
        self._states.discard()
