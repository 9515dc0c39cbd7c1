"""The outboxes of one attempt in one worker: durable files, and in memory what was written until it is published.

A publisher may run in any process and after any crash, so an outbox is a file before its checkpoint is decided.
But nearly always the process that wrote it publishes it a moment later, and reading and checking the file
again would cost a tenth of all that a row costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from processor.contracts.file_store import FileStore
from processor.ids import FileRef
from processor.storage.outbox import OutboxWriter, StoredRows, read_outbox, stored_rows

KEPT_BYTES_MAX: Final = 192 * 2**20
"""Of encoded rows in memory. What is beyond is read from its file: who falls behind does not grow."""


class OutboxFiles:
    """Used by several threads; an outbox is written by one, and read by one at a time."""

    def __init__(self, files: FileStore, *, kept_bytes_max: int = KEPT_BYTES_MAX) -> None:
        self._files = files
        self._kept_bytes_max = kept_bytes_max
        self._kept: dict[FileRef, tuple[bytes, ...]] = {}
        """Every access is one operation on the dict: threads need no lock."""

    def write(self, name: str, blocks: Iterable[bytes]) -> tuple[FileRef, int]:
        """Make the blocks, each from ``encode_blocks``, a durable file of that name; its rows are counted.

        Raises DamagedFile when the name is taken, Unavailable; then nothing is there.
        """
        kept = tuple(blocks)
        writer = OutboxWriter(self._files, name)
        try:
            for block in kept:
                writer.write(block)
            ref = writer.finish()
        except BaseException:
            writer.discard()
            raise
        if sum(each.bytes for each in tuple(self._kept)) + ref.bytes <= self._kept_bytes_max:
            self._kept[ref] = kept
        return ref, writer.rows

    def read(self, ref: FileRef, from_row: int = 0) -> Iterator[StoredRows]:
        """See ``read_outbox``."""
        kept = self._kept.get(ref)
        if kept is None:
            return read_outbox(self._files, ref, from_row)
        return stored_rows(ref, map(memoryview, kept), from_row)

    def forget(self, ref: FileRef) -> None:
        """It is published. Idempotent; the file stays."""
        self._kept.pop(ref, None)
