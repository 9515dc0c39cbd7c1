"""In which worker each subtask runs: a function of the plan and the workers there are, the same for whoever asks."""

from __future__ import annotations

from collections.abc import Sequence

from processor.ids import PublisherId, SubtaskId, WorkerId
from processor.invariant import invariant
from processor.plan.execution import ExecutionPlan


class Placement:
    """Subtasks spread evenly; those of one index meet in one worker, so that forward edges stay in it."""

    def __init__(self, plan: ExecutionPlan, workers: Sequence[WorkerId]) -> None:
        invariant(len(workers) > 0, "a job has a worker")
        self._parallelism = {chain.name: chain.parallelism for chain in plan.chains.values()}
        self._sinks = {
            step.name: chain.name for chain in plan.chains.values() for step in chain.steps if step.sink
        }
        self._workers = tuple(sorted(workers))

    def of(self, subtask: SubtaskId) -> WorkerId:
        """Contiguous parts: a forward edge towards fewer subtasks, which unites neighbours, leaves few workers."""
        return self._workers[subtask.index * len(self._workers) // self._parallelism[subtask.chain]]

    def publishes(self, worker: WorkerId, identity: PublisherId) -> bool:
        """Whether it is this worker that publishes for an identity: the one with its subtask. Those of sinks and
        subtasks that the job no longer has (R18) are the first worker's."""
        chain = self._sinks.get(identity.sink)
        if chain is None or identity.subtask >= self._parallelism[chain]:
            return worker == self._workers[0]
        return worker == self.of(SubtaskId(chain, identity.subtask))
