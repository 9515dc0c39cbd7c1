"""Second phases of several cuts as one."""

from __future__ import annotations

from collections.abc import Sequence

from processor.contracts.completion import Completion
from processor.operators.operator import OperatorSnapshot


class JoinedCompletion:
    """Second phases of operators of a chain, or of parts of one operator, run in their order."""

    def __init__(self, completions: Sequence[Completion[OperatorSnapshot]]) -> None:
        self._completions = tuple(completions)

    def run(self) -> OperatorSnapshot:
        """All snapshots in one. When one raises, all are discarded, so that no frozen state is forgotten."""
        try:
            snapshots = [completion.run() for completion in self._completions]
        except BaseException:
            self.discard()
            raise
        return OperatorSnapshot(
            keyed=tuple(file for snapshot in snapshots for file in snapshot.keyed),
            operators=tuple(file for snapshot in snapshots for file in snapshot.operators),
            outboxes=tuple(outbox for snapshot in snapshots for outbox in snapshot.outboxes),
            event_times=tuple(reached for snapshot in snapshots for reached in snapshot.event_times),
        )

    def discard(self) -> None:
        for completion in self._completions:
            completion.discard()
