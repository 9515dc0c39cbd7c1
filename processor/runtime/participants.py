"""Who takes part in checkpoints on the coordinator's side, before barriers go out (A7): sources' enumerators, and
the author's hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from processor.contracts.checkpoint_hook import HOOK_BYTES_MAX, CheckpointHook
from processor.contracts.executor import Executor
from processor.errors import JobError
from processor.ids import CheckpointId
from processor.protocol.coordinator_messages import ParticipantFailed, ParticipantsReady
from processor.protocol.entries import CheckpointEntry, ParticipantState
from processor.runtime.discovery import Discovery
from processor.telemetry.log import Log

LANE = "participants"
"""Hooks are called one at a time, in the order of checkpoints."""

_HOOK = "hook "
"""Begins the names of hooks among the participants; those of enumerators begin otherwise."""


class Participants:
    """All of one attempt."""

    def __init__(
        self, discovery: Discovery, hooks: Mapping[str, CheckpointHook], *, executor: Executor, log: Log
    ) -> None:
        self._discovery = discovery
        self._hooks = dict(hooks)
        self._executor = executor
        self._log = log

    def restore(self, entry: CheckpointEntry) -> None:
        """Hand everybody what the checkpoint kept. Blocks. Raises what a hook or an enumerator raises."""
        kept = {state.name: state.data for state in entry.participants}
        self._discovery.restored(entry, kept)
        for name, hook in self._hooks.items():
            if (data := kept.get(_HOOK + name)) is not None:
                hook.restore(data)

    def take(
        self, checkpoint: CheckpointId, tell: Callable[[ParticipantsReady | ParticipantFailed], None]
    ) -> None:
        """Let everybody take part; ``tell`` is called once, in the job's thread."""
        found = self._discovery.take()
        if not self._hooks:
            tell(ParticipantsReady(checkpoint=checkpoint, states=found))
            return

        def work() -> tuple[ParticipantState, ...]:
            return tuple(
                ParticipantState(name=_HOOK + name, data=data)
                for name, hook in self._hooks.items()
                if (data := _taken(name, hook, checkpoint))
            )

        def done(states: tuple[ParticipantState, ...]) -> None:
            tell(ParticipantsReady(checkpoint=checkpoint, states=(*found, *states)))

        def failed(error: BaseException) -> None:
            if not isinstance(error, Exception):
                raise error
            tell(ParticipantFailed(checkpoint=checkpoint, reason=f"{type(error).__name__}: {error}"))

        self._executor.submit(LANE, work, done, failed)

    def tell(self, checkpoint: CheckpointId, *, completed: bool) -> None:
        """News of a checkpoint that they took part in."""
        for name, hook in self._hooks.items():
            self._news(name, hook.completed if completed else hook.aborted, checkpoint)

    def _news(self, name: str, call: Callable[[int], None], checkpoint: CheckpointId) -> None:
        def failed(error: BaseException) -> None:
            self._log.warning("a checkpoint hook failed", hook=name, checkpoint=checkpoint, error=error)

        self._executor.submit(LANE, lambda: call(checkpoint), lambda _: None, failed)


def _taken(name: str, hook: CheckpointHook, checkpoint: CheckpointId) -> bytes:
    data: object = hook.take(checkpoint)
    if not isinstance(data, bytes) or len(data) > HOOK_BYTES_MAX:
        what = f"{len(data)} bytes" if isinstance(data, bytes) else f"a {type(data).__qualname__}"
        raise JobError(
            f"hook '{name}' took {what} for checkpoint {checkpoint}.",
            remedy=f"Return bytes, at most {HOOK_BYTES_MAX}; keep what is larger elsewhere, and its name here.",
        )
    return data
