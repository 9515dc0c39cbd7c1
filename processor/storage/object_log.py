"""The decision log, and the notes beside it, in an object store (R5).

An entry is one object, made by one conditional put: of several writers the store lets one through and tells the
others. Whether a store really does is tried out before it holds a log (``two_writer_test``).
"""

from __future__ import annotations

from processor.fault_points import FaultHook, FaultPoint, no_faults
from processor.invariant import invariant
from processor.storage.block_file import damaged
from processor.storage.layout import (
    ENTRY_BYTES_MAX,
    LOG_FOLDER,
    NOTE_BYTES_MAX,
    NOTES_FOLDER,
    is_note_name,
    log_name,
    place_of,
)
from processor.storage.objects import Objects


class ObjectLog:
    """A LogStore on objects. Places below 1 are for probes: taken like the others, never listed."""

    def __init__(self, objects: Objects, *, faults: FaultHook = no_faults) -> None:
        """``objects`` belong to this job alone."""
        self._entries = objects.below(LOG_FOLDER)
        self._notes = objects.below(NOTES_FOLDER)
        self._faults = faults

    def take(self, place: int, content: bytes) -> bool:
        """Create the entry if its place is free. False: it is taken, perhaps by an earlier try of this call, whose
        answer was lost; the entry's nonce tells.

        Raises Unavailable when the outcome is not known (R6), ExternalRefusal.
        """
        invariant(len(content) <= ENTRY_BYTES_MAX, "an entry is within its limit")
        self._faults(FaultPoint.ENTRY_SYNCED_NOT_LINKED)
        taken = self._entries.create(log_name(place), content)
        self._faults(FaultPoint.LINKED_DIRECTORY_NOT_SYNCED)
        return taken

    def read(self, place: int) -> bytes | None:
        """The entry; None when the place is free. Raises DamagedFile when it cannot be one, Unavailable."""
        return _read(self._entries, log_name(place), ENTRY_BYTES_MAX)

    def listed(self) -> list[int]:
        """Places of all entries, ascending. Raises Unavailable."""
        return sorted(place for name in self._entries.names("") if (place := place_of(name)) is not None)

    def delete(self, place: int) -> None:
        """Remove an entry; a missing one is no error. Raises Unavailable."""
        self._entries.delete(log_name(place))

    def put_note(self, name: str, content: bytes) -> None:
        """Overwrite a note; durable on return, and at no moment half there. Raises Unavailable."""
        invariant(
            is_note_name(name) and len(content) <= NOTE_BYTES_MAX, "a note has a plain name and is small"
        )
        self._notes.replace(name, content)

    def get_note(self, name: str) -> bytes | None:
        """A note; None when there is none. Raises DamagedFile when it cannot be one, Unavailable."""
        invariant(is_note_name(name), "a note has a plain name")
        return _read(self._notes, name, NOTE_BYTES_MAX)


def _read(objects: Objects, name: str, bytes_max: int) -> bytes | None:
    found = objects.whole(name, bytes_max)
    if found is None:
        return None
    content, size = found
    if size > bytes_max:
        raise damaged(objects.path(name), f"has {size} bytes; {bytes_max} are the most there can be")
    return content
