"""All state of one step in one subtask that belongs to no key: restored by the rule of each, written into one file.

The file is one of keyed state: a list's items stand under their places, a map's entries under their keys, all of them
in the range of all key groups, for they belong to none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from processor.contracts.completion import Completion
from processor.contracts.file_store import FileStore
from processor.contracts.snapshot_format import SnapshotFormat
from processor.ids import CheckpointId, FileRef, KeyGroupRange, StepName
from processor.protocol.entries import StateFile
from processor.state.operator_state import Held, OperatorState, Redistribution

Versions = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorStateRequest:
    """What a step asks for when it opens."""

    step: StepName
    subtask_index: int
    parallelism: int
    max_parallelism: int
    snapshots: SnapshotFormat
    files: FileStore
    file_prefix: str
    token: Callable[[], str]
    restored: Sequence[StateFile]
    """Of every subtask of the step as it was, in order."""

    @property
    def everything(self) -> KeyGroupRange:
        return KeyGroupRange(0, self.max_parallelism)


class OperatorStates:
    """Opened with what is restored. One thread, but for the completions."""

    def __init__(self, declared: Mapping[str, OperatorState[Any]], request: OperatorStateRequest) -> None:
        """Raises DamagedFile by name."""
        self._request = request
        self._declared = declared
        self._held: dict[str, Held] = {
            name: state.open(name, request.step) for name, state in declared.items()
        }
        self._described = {name: state.described() for name, state in declared.items()}
        self._undecided: list[tuple[CheckpointId, Versions, _Writing]] = []
        self._decided: tuple[Versions, StateFile] | None = None
        """Of the newest checkpoint known to be decided: only its file may be listed again (R22)."""
        self._restore()

    def differ(self) -> bool:
        """Whether subtasks had what they should have had alike, and did not."""
        files = {held.file.sha256 for held in self._request.restored}
        alike = any(state.redistribution is Redistribution.SAME for state in self._declared.values())
        return alike and len(files) > 1

    def bind(self, function: object) -> None:
        """Give an instance of the declaring class its handles."""
        vars(function).update(self._held)

    def begin(self) -> None:
        """A record begins."""
        for held in self._held.values():
            held.begin()

    def undo(self) -> None:
        """It was not."""
        for held in self._held.values():
            held.undo()

    def cut(self, checkpoint: CheckpointId) -> Completion[tuple[StateFile, ...]]:
        """In constant time, without I/O; what has not changed since a decided checkpoint is not written again."""
        versions = tuple(held.version for held in self._held.values())
        again = self._decided[1] if self._decided is not None and self._decided[0] == versions else None
        # The token is drawn here, in the thread that draws all others, so that a seeded run repeats itself.
        name = f"{self._request.file_prefix}{self._request.token()}.state"
        frozen = [(held, held.frozen()) for held in self._held.values()]
        writing = _Writing(self._request, self._described, name, frozen, again)
        self._undecided.append((checkpoint, versions, writing))
        return writing

    def start_anew(self) -> None:
        """See ``KeyedState.start_anew``."""
        self._decided = None

    def decided(self, checkpoint: CheckpointId) -> None:
        """See ``KeyedState.decided``."""
        for index, (cut, versions, writing) in enumerate(self._undecided):
            if cut == checkpoint:
                if writing.file is not None:
                    self._decided = versions, writing.file
                del self._undecided[: index + 1]
                return

    def _restore(self) -> None:
        files = self._request.restored
        for name, state in self._declared.items():
            match state.redistribution:
                case Redistribution.SPLIT:
                    self._restore_part(name, files)
                case Redistribution.UNION:
                    for file in files:
                        self._take(name, file)
                case Redistribution.SAME:
                    # Where they are not, against the rule, all go on with that of the first.
                    for file in files[:1]:
                        self._take(name, file)
                case _:
                    assert_never(state.redistribution)

    def _restore_part(self, name: str, files: Sequence[StateFile]) -> None:
        index, parallelism = self._request.subtask_index, self._request.parallelism
        if len(files) == parallelism:
            self._take(name, files[index])
            return
        entries = [entry for file in files for entry in self._entries(name, file)]
        start, stop = (len(entries) * part // parallelism for part in (index, index + 1))
        part = entries[start:stop]
        self._held[name].restore([key for key, _ in part], [value for _, value in part])

    def _take(self, name: str, file: StateFile) -> None:
        entries = list(self._entries(name, file))
        self._held[name].restore([key for key, _ in entries], [value for _, value in entries])

    def _entries(self, name: str, file: StateFile) -> Iterator[tuple[Any, Any]]:
        request = self._request
        table = file.kept_as.get(name, name)
        codecs = {table: self._held[name].kind}
        for block in request.snapshots.read(
            request.files, file.file, request.everything, codecs, others=True
        ):
            yield from zip(block.keys, block.values, strict=True)


class _Writing:
    """The completion of one cut."""

    def __init__(
        self,
        request: OperatorStateRequest,
        described: Mapping[str, str],
        name: str,
        frozen: Sequence[tuple[Held, Any]],
        again: StateFile | None,
    ) -> None:
        """``again``: a file that holds what is to be written."""
        self._request = request
        self._described = described
        self._name = name
        self._frozen = frozen
        self.file: StateFile | None = again
        """The outcome."""

    def run(self) -> tuple[StateFile, ...]:
        """Raises UserCodeError for a value that is not of its declared type, Unavailable from the files."""
        if not self._frozen:
            return ()
        if self.file is None:
            self.file = self._describe(self._write())
        return (self.file,)

    def discard(self) -> None:
        """Nothing is held: the next cut holds it all again."""

    def _write(self) -> FileRef:
        request, everything = self._request, self._request.everything
        writer = request.snapshots.create(
            request.files.create(self._name),
            step=request.step,
            max_parallelism=request.max_parallelism,
            key_groups=everything,
            tables=list(self._described.items()),
        )
        try:
            for number, (held, frozen) in enumerate(self._frozen):
                for block in held.blocks(frozen, everything):
                    writer.block(number, block.groups, block.keys, block.values)
            return writer.finish()
        except BaseException:
            writer.discard()
            raise

    def _describe(self, file: FileRef) -> StateFile:
        return StateFile(
            step=self._request.step,
            file=file,
            key_groups=self._request.everything,
            states=dict(self._described),
        )
