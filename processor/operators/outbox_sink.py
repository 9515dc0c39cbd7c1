"""The sink inside a subtask: its output goes into the outbox of the checkpoint, and nowhere else.

Publishing what was decided is the runtime's part; this operator holds no connection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from processor.contracts.completion import Completion
from processor.contracts.sink import Sink, SinkContext
from processor.errors import BadRecord, ProcessorError, Where
from processor.fault_points import FaultHook, FaultPoint
from processor.ids import CheckpointId, PublisherId
from processor.invariant import invariant
from processor.operators.operator import BaseOperator, Collector, OperatorContext, OperatorSnapshot
from processor.operators.per_record import FailurePolicy
from processor.protocol.entries import OutboxFile
from processor.records.batch import Batch
from processor.records.rows import RowBlock
from processor.storage.outbox import encode_blocks
from processor.storage.outbox_files import OutboxFiles

V = TypeVar("V")


class _Outbox:
    """Rows between two cuts: encoded blocks until the file is written, then only the file."""

    __slots__ = ("blocks", "bytes", "cut", "file", "rows")

    def __init__(self) -> None:
        self.blocks: list[bytes] = []
        self.bytes = 0
        self.rows = 0
        self.cut: CheckpointId | None = None
        self.file: OutboxFile | None = None

    def append(self, blocks: Sequence[bytes], rows: int) -> None:
        self.blocks.extend(blocks)
        self.bytes += sum(map(len, blocks))
        self.rows += rows


class OutboxSink(BaseOperator[V], Generic[V]):
    """Encodes batches with the sink's codec and keeps the rows until a checkpoint that holds them is decided.

    Every snapshot lists all undecided outboxes, oldest first (R9): a checkpoint that was aborted, or whose
    completion still runs, takes nothing away from the ones after it. ``decided`` drops the ones cut at or
    below that checkpoint. Their bytes are bounded by ``outbox_bytes_max``, softly: at the bound ``pressed``
    asks for a checkpoint, but what still arrives is taken in.
    """

    def __init__(self, sink: Sink[V]) -> None:
        self._sink = sink

    def open(self, context: OperatorContext) -> None:
        self._failures = FailurePolicy(context.step, context)
        self._encode = self._sink.encoder(
            SinkContext(
                job=context.job,
                step=context.step,
                settings=context.settings,
                policy=context.policy,
                clock=context.clock,
                count=context.count,
                faults=context.faults,
            )
        ).encode
        self._publisher = PublisherId(context.job, context.step, context.subtask_index)
        self._bytes_max = context.outbox_bytes_max
        self._store = _Store(
            files=context.outboxes, prefix=context.file_prefix, token=context.token, faults=context.faults
        )
        self._current = _Outbox()
        self._undecided: list[_Outbox] = []
        self._undecided_bytes = 0

    def on_batch(self, input: int, batch: Batch[V], out: Collector[V]) -> None:
        try:
            blocks = self._encode(batch)
        except ProcessorError:
            raise
        except Exception as error:
            if not self._failures.skips:
                raise self._refused(batch, error) from error
            blocks = self._one_by_one(batch)
        for block in blocks:
            self._append(block)

    def _one_by_one(self, batch: Batch[V]) -> Sequence[RowBlock]:
        """The rows of the records that can be encoded; the others are counted (case 56)."""
        blocks: list[RowBlock] = []
        for index in range(len(batch)):
            try:
                blocks.extend(self._encode(batch.slice(index, index + 1)))
            except ProcessorError:
                raise
            except Exception:
                self._failures.skipped(1)
        return blocks

    def _refused(self, batch: Batch[V], error: Exception) -> BadRecord:
        """The error for the first record that cannot be encoded; encoding has no effects, so it may be
        repeated to find it."""
        at = 0
        for index in range(len(batch)):
            try:
                self._encode(batch.slice(index, index + 1))
            except Exception:
                at = index
                break
        return BadRecord(
            f"the sink cannot encode the record: {type(error).__name__}: {error}.",
            remedy="Mend the value or the format, or give the step on_error=Skip() to leave such records out.",
            where=batch.where(at, self._failures.step),
        )

    def _append(self, block: RowBlock) -> None:
        if not len(block):
            return
        try:
            self._current.append(encode_blocks(block), len(block))
        except BadRecord as error:
            if not self._failures.skips:
                raise BadRecord(
                    error.message, remedy=error.remedy, where=Where(step=self._failures.step)
                ) from error
            if len(block) == 1:
                self._failures.skipped(1)
                return
            middle = len(block) // 2
            self._append(block.slice(0, middle))
            self._append(block.slice(middle, len(block)))

    def cut(self, checkpoint: CheckpointId) -> Completion[OperatorSnapshot]:
        closed = self._current
        if closed.rows:
            closed.cut = checkpoint
            invariant(
                not self._undecided or (self._undecided[-1].cut or 0) < checkpoint, "cuts come in order"
            )
            self._undecided.append(closed)
            self._undecided_bytes += closed.bytes
            self._current = _Outbox()
        return _OutboxCompletion(tuple(self._undecided), self._publisher, self._store)

    def decided(self, checkpoint: CheckpointId) -> None:
        kept = [outbox for outbox in self._undecided if outbox.cut is None or outbox.cut > checkpoint]
        self._undecided_bytes = sum(outbox.bytes for outbox in kept)
        self._undecided = kept

    def pressed(self) -> bool:
        return self._undecided_bytes + self._current.bytes >= self._bytes_max


class _Store:
    """Writes outboxes as files with names of their own (R22)."""

    def __init__(
        self, *, files: OutboxFiles, prefix: str, token: Callable[[], str], faults: FaultHook
    ) -> None:
        self._files = files
        self._prefix = prefix
        self._token = token
        self._faults = faults

    def write(self, outbox: _Outbox, publisher: PublisherId) -> OutboxFile:
        invariant(outbox.cut is not None and outbox.rows > 0, "only a closed outbox with rows has a file")
        assert outbox.cut is not None
        self._faults(FaultPoint.STATE_WRITTEN_OUTBOX_NOT)
        file, rows = self._files.write(f"{self._prefix}{self._token()}.outbox", outbox.blocks)
        invariant(rows == outbox.rows, "an outbox file has the rows that were counted")
        return OutboxFile(publisher=publisher, cut=outbox.cut, file=file, rows=outbox.rows)


class _OutboxCompletion:
    """Writes what has no file yet. Completions of one subtask run one after another, so none is written
    twice; one that was discarded or failed leaves its outbox to the next, which lists it too."""

    def __init__(self, outboxes: tuple[_Outbox, ...], publisher: PublisherId, store: _Store) -> None:
        self._outboxes = outboxes
        self._publisher = publisher
        self._store = store

    def run(self) -> OperatorSnapshot:
        files: list[OutboxFile] = []
        for outbox in self._outboxes:
            file = outbox.file
            if file is None:
                file = self._store.write(outbox, self._publisher)
                outbox.file = file
                outbox.blocks = []  # the file has them; the bytes still count until they are decided
            files.append(file)
        return OperatorSnapshot(outboxes=tuple(files))

    def discard(self) -> None:
        """Nothing to free: the outboxes stay with the sink until they are decided."""
