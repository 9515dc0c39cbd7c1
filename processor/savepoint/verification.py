"""Whether every file of a savepoint is as it was written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from processor.errors import DamagedFile
from processor.ids import FileRef
from processor.savepoint.opened import Savepoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What became of it."""

    files: int
    bytes: int
    damage: tuple[str, ...]
    """What is wrong with each file that is missing or not as it was written; empty when all are whole."""


def verify_files(savepoint: Savepoint, looked_at: Callable[[FileRef], None] = lambda _: None) -> Verified:
    """Read every file and compare size and hash. ``looked_at`` is called after each. Raises Unavailable."""
    refs = savepoint.entry.files()
    damage: list[str] = []
    for ref in refs:
        try:
            savepoint.directory.files.verify(ref)
        except DamagedFile as error:
            damage.append(error.message)
        looked_at(ref)
    return Verified(files=len(refs), bytes=sum(ref.bytes for ref in refs), damage=tuple(damage))
