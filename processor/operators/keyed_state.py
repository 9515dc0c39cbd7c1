"""Opens the keyed state of a step, and makes its snapshots part of the operator's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from processor.contracts.completion import Completion
from processor.contracts.state_store import NOTHING_OVER, KeyedState, KeyedStateRequest, TableSpec
from processor.ids import CheckpointId
from processor.operators.operator import OperatorContext, OperatorSnapshot
from processor.protocol.entries import ReachedEventTime, StateFile


def open_keyed_state(
    context: OperatorContext, tables: Sequence[TableSpec], described: Mapping[str, str]
) -> KeyedState:
    """The state of the subtask's key groups, with what the checkpoint holds of it."""
    return context.backend.open(
        KeyedStateRequest(
            step=context.step,
            subtask_index=context.subtask_index,
            max_parallelism=context.max_parallelism,
            key_groups=context.key_groups,
            tables=tables,
            described=described,
            files=context.files,
            file_prefix=context.file_prefix,
            token=context.token,
            restored=context.restored.keyed,
            faults=context.faults,
        )
    )


def cut_keyed_state(
    state: KeyedState,
    checkpoint: CheckpointId,
    event_times: tuple[ReachedEventTime, ...] = (),
    over_ms: Mapping[str, int] = NOTHING_OVER,
) -> Completion[OperatorSnapshot]:
    """``over_ms``: see ``KeyedState.cut``."""
    return _KeyedCompletion(state.cut(checkpoint, over_ms), event_times)


class _KeyedCompletion:
    def __init__(
        self, inner: Completion[tuple[StateFile, ...]], event_times: tuple[ReachedEventTime, ...]
    ) -> None:
        self._inner = inner
        self._event_times = event_times

    def run(self) -> OperatorSnapshot:
        return OperatorSnapshot(keyed=self._inner.run(), event_times=self._event_times)

    def discard(self) -> None:
        self._inner.discard()
