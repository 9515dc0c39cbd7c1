"""The write-back cache over maps on disk: a map is what the disk holds of it, and over that what is not there yet.

S looks through a map while C writes parts into the store (``front``). It takes nothing from the store that an
unwritten part has an entry for, so it never matters how far C has come; all other entries stand still.
"""

from __future__ import annotations

from typing import Any, Protocol

from processor.state.batch_cache import BatchCache, DiskTable
from processor.state.front import FrozenPart
from processor.state.stored_keys import StoredKey

_Places = dict[StoredKey, dict[StoredKey, None]]
"""Keys, and under each the keys of entries."""


class MapStoreTable(DiskTable, Protocol):
    """A table of maps behind the cache."""

    def scan(self, key: StoredKey) -> list[tuple[Any, Any]]:
        """All entries of one key in the store, at one moment. Called by S, also while C is in ``write_in_steps``."""
        ...


class MapCache(BatchCache):
    """See ``BatchCache``. Of what is not yet known to be in the store, it knows which entries each key has."""

    __slots__ = ("_changed_places", "_frozen_places")

    _store: MapStoreTable

    def __init__(self, store: MapStoreTable, *, entries_max: int) -> None:
        super().__init__(store, entries_max=entries_max)
        self._changed_places: _Places = {}
        self._frozen_places: list[tuple[FrozenPart, _Places]] = []

    def put(self, key: Any, value: Any) -> None:
        self._changed_places.setdefault(key[0], {})[key[1]] = None
        super().put(key, value)

    def remove(self, key: Any) -> None:
        """What came after the last cut leaves no trace: entries that come and go between two cuts would pile up as
        deletions of nothing, and each look through the map would pass all of them (case 28)."""
        if self.changed.get(key) is None or self._below(key):
            self._changed_places.setdefault(key[0], {})[key[1]] = None
            super().remove(key)
            return
        self._values[key] = None
        del self.changed[key]
        places = self._changed_places[key[0]]
        del places[key[1]]
        if not places:
            del self._changed_places[key[0]]

    def freeze(self) -> FrozenPart | None:
        part = super().freeze()
        if part is not None:
            self._frozen_places.append((part, self._changed_places))
            self._changed_places = {}
        return part

    def settle(self) -> None:
        super().settle()
        if len(self._frozen_places) > len(self._frozen):
            # By what was seen there, not by asking again: what has just been written may leave the values next.
            self._frozen_places = [places for places in self._frozen_places if places[0] in self._frozen]

    def entries(self, key: StoredKey) -> list[tuple[Any, Any]]:
        """All entries of one key."""
        unwritten = dict(self._changed_places.get(key, ()))
        for _, places in self._frozen_places:
            unwritten.update(places.get(key, ()))
        found = [entry for entry in self._store.scan(key) if entry[0] not in unwritten]
        values = self._values  # they hold all that is unwritten, deletions as None
        for entry_key in unwritten:
            value = values[key, entry_key]
            if value is not None:
                found.append((entry_key, value))
        return found
