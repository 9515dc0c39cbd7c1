"""A log store in memory that can be slow, forgetful and unsure, as object stores are."""

from __future__ import annotations

import threading

from processor.errors import Unavailable


class MemoryLog:
    """``unsure_before`` and ``unsure_after`` say how many of the next takes give no answer: without and with
    the entry being made. ``hidden_reads`` of the next reads do not find what is there. ``shown`` limits what
    a listing shows. ``careless`` looks first and writes then, as a store without exclusive create would.
    """

    def __init__(self, *, careless: bool = False) -> None:
        self.content: dict[int, bytes] = {}
        self.notes: dict[str, bytes] = {}
        self.unsure_before = 0
        self.unsure_after = 0
        self.hidden_reads = 0
        self.shown: int | None = None
        self.takes = 0
        self._careless = threading.Barrier(2) if careless else None
        self._lock = threading.Lock()

    def take(self, place: int, content: bytes) -> bool:
        self.takes += 1
        if self.unsure_before:
            self.unsure_before -= 1
            raise Unavailable("no answer")
        if self._careless is not None:
            free = place not in self.content
            self._careless.wait(10)  # both have looked before either writes
            if free:
                self.content[place] = content
            return free
        with self._lock:
            taken = self.content.setdefault(place, content) is content
        if self.unsure_after:
            self.unsure_after -= 1
            raise Unavailable("no answer")
        return taken

    def read(self, place: int) -> bytes | None:
        if self.hidden_reads:
            self.hidden_reads -= 1
            return None
        return self.content.get(place)

    def listed(self) -> list[int]:
        places = sorted(place for place in self.content if place > 0)
        return places if self.shown is None else [place for place in places if place <= self.shown]

    def delete(self, place: int) -> None:
        self.content.pop(place, None)

    def put_note(self, name: str, content: bytes) -> None:
        self.notes[name] = content

    def get_note(self, name: str) -> bytes | None:
        return self.notes.get(name)
