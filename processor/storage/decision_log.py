"""The decision log: numbered entries, each of which decides something once and for all (R1, R5, R6)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from processor.contracts.file_store import LogStore
from processor.errors import DamagedFile, ExternalRefusal, Unavailable
from processor.ids import Attempt, Place
from processor.invariant import invariant
from processor.protocol.decisions import LogView
from processor.protocol.entries import Entry, Published, Rewind, Seal
from processor.storage.layout import PUBLISHED_NOTE
from processor.storage.manifest import decode_entry, decode_published, encode_entry, encode_published

TAKE_TRIES_MAX = 5
"""How often "exists" may be followed by "not found" before the outcome counts as unknown."""

PROBE_ROUNDS = 8
PROBE_WAIT_S = 10.0
"""How long a writer of the two-writer test waits for the other to be ready."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The entry has its place: what it says is decided. Durable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """Somebody else has the place."""

    by: Entry


class DecisionLog:
    """The log as one attempt sees it. Used by one thread at a time."""

    def __init__(self, store: LogStore) -> None:
        self._store = store

    def read_all(self) -> LogView:
        """Every entry there is, in the order of places.

        The listing is a hint that may be old but is never too high: from its highest place the log is walked
        up until a place is free. Below, retention may have taken entries away. Raises DamagedFile naming the
        place; Unavailable.
        """
        entries: list[Entry] = []
        place = 0
        for place in self._store.listed():
            entry = self.read(Place(place))
            if entry is not None:
                entries.append(entry)
        while (entry := self.read(Place(place + 1))) is not None:
            entries.append(entry)
            place += 1
        return LogView(entries=_without_void_seals(entries))

    def read(self, place: Place) -> Entry | None:
        """One entry; None when its place is free, or it was forgotten. Raises DamagedFile; Unavailable."""
        content = self._store.read(place)
        return decode_entry(content, place) if content is not None else None

    def take(self, entry: Entry) -> Taken | Lost:
        """Take the entry's place with it.

        Its nonce tells whether an entry found there is this one: an earlier try of ours may have got
        through without an answer. Raises Unavailable when the outcome is not known: then nothing of what it
        decides may be dropped until ``resolve`` has said more (R6).

        A seal is lost, too, when its place was free only because retention had taken away what was there (R7):
        whoever starts reads the log, and may be slow from then on until it seals.
        """
        outcome = self._take(entry)
        if isinstance(outcome, Taken) and isinstance(entry, Seal):
            newest = self._newest_behind_a_hole(entry.place)
            if newest is not None:
                self._store.delete(entry.place)
                return Lost(by=newest)
        return outcome

    def _newest_behind_a_hole(self, place: Place) -> Entry | None:
        """The newest entry, if the seal at ``place`` fills a hole; None when it is the end of the log, or was.

        What follows a seal is the seal of a newer attempt, or the sealing attempt's own rewind: both are never
        deleted. What was deleted from a place is followed by something else, or by another hole: the entry
        before a seal or a rewind is never deleted either.
        """
        higher = [other for other in self._store.listed() if other > place]
        if not higher or isinstance(self.read(Place(place + 1)), Seal | Rewind):
            return None
        view = self.read_all()
        invariant(len(view.entries) > 0, "the newest entry of a log is never deleted")
        return view.entries[-1]

    def _take(self, entry: Entry) -> Taken | Lost:
        invariant(entry.nonce != "", "an entry has a nonce before it is written")
        invariant(entry.place > 0, "places are counted from 1")
        content = encode_entry(entry)
        for _ in range(TAKE_TRIES_MAX):
            if self._store.take(entry.place, content):
                return Taken()
            found = self.read(entry.place)
            if found is None:
                continue  # it was there and is not any more: a slow store, or a listing that runs ahead
            if found.nonce != entry.nonce:
                return Lost(by=found)
            invariant(found == entry, "one nonce is one entry")
            return Taken()
        raise Unavailable(
            f"place {entry.place} of the decision log exists and is not found, {TAKE_TRIES_MAX} times over.",
            remedy="Look at the store of the checkpoint directory; the next start finds what was decided.",
        )

    def resolve(self, entry: Entry) -> Taken | Lost:
        """Find out what became of a ``take`` without an answer. Raises Unavailable while it cannot be known.

        Taking again is the one question whose answer is final: reading alone could miss a write that is
        still on its way, and would not make durable what it finds.
        """
        return self.take(entry)

    def forget(self, place: Place) -> None:
        """Remove an entry that no rule keeps (R7). Raises Unavailable."""
        self._store.delete(place)

    def published(self) -> Published | None:
        """What is recorded as published; None when nothing is, or when the note is damaged: losing it costs
        one look at the markers (R17). Raises Unavailable."""
        content = self._store.get_note(PUBLISHED_NOTE)
        if content is None:
            return None
        try:
            return decode_published(content)
        except DamagedFile:
            return None

    def record_published(self, note: Published) -> None:
        """Overwrite what is recorded as published; durable on return. Raises Unavailable."""
        self._store.put_note(PUBLISHED_NOTE, encode_published(note))


def _without_void_seals(entries: list[Entry]) -> tuple[Entry, ...]:
    """Without seals that fill a hole, left by who died before it could take them back.

    Attempts never go back from a place to a later one. Behind such a seal there is always an entry of an older
    attempt: the last one before the next seal is kept (R7).
    """
    kept: list[Entry] = []
    lowest: Attempt | None = None
    for entry in reversed(entries):
        if isinstance(entry, Seal) and lowest is not None and entry.attempt > lowest:
            continue
        lowest = entry.attempt if lowest is None else min(lowest, entry.attempt)
        kept.append(entry)
    return tuple(reversed(kept))


def two_writer_test(first: LogStore, second: LogStore, token: Callable[[], str]) -> None:
    """Whether the store really gives a place to one writer only (R5). Two handles on the same log.

    Each round two threads take one probe place at the same moment. Raises ExternalRefusal when both got it,
    or when the entry is not the winner's; Unavailable. That neither was told is no refusal if one of them wrote:
    a store repeats a request whose answer was lost, and then says "exists" to the winner.
    """
    for _ in range(PROBE_ROUNDS):
        _probe(first, second, -int(token()[:15], 16) - 1)


def _probe(first: LogStore, second: LogStore, place: int) -> None:
    writers = [_ProbeWriter(store, place, name) for store, name in ((first, b"first"), (second, b"second"))]
    gate = threading.Barrier(len(writers))
    threads = [threading.Thread(target=writer.run, args=(gate,), daemon=True) for writer in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for writer in writers:
        if writer.failure is not None:
            raise writer.failure
    winners = [writer.content for writer in writers if writer.taken]
    found = first.read(place)
    first.delete(place)
    if len(winners) > 1 or found not in (winners or [writer.content for writer in writers]):
        raise ExternalRefusal(
            f"the store of the checkpoint directory cannot hold a decision log: of two writers that took one "
            f"place at the same moment {len(winners)} were told that they have it, and "
            f"{found!r} was read back.",
            remedy="Set checkpoint.log_directory to a local directory, or to a store that creates an object for one "
            "writer only; the files may stay where they are.",
        )


class _ProbeWriter:
    """One of the two writers."""

    def __init__(self, store: LogStore, place: int, content: bytes) -> None:
        self.content = content
        self.taken = False
        self.failure: Exception | None = None
        self._store = store
        self._place = place

    def run(self, gate: threading.Barrier) -> None:
        try:
            gate.wait(PROBE_WAIT_S)
            self.taken = self._store.take(self._place, self.content)
        except Exception as error:  # handed to the thread that asked
            self.failure = error
