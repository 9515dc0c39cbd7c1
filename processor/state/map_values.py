"""All maps of one table in memory, for the subtask's thread alone (``memory_values``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from processor.state.front import Front
from processor.state.memory_values import InMemoryTable
from processor.state.stored_keys import StoredKey


class MapValues(Front):
    """See ``Front``. A dict of entries for each key, so that to look through one map no other is touched; what
    changed is kept flat, by the place (key, the entry's key), for the completion."""

    __slots__ = ("_maps",)

    _store: InMemoryTable

    def __init__(self, store: InMemoryTable) -> None:
        super().__init__(store)
        self._maps: dict[StoredKey, dict[StoredKey, Any]] = {}

    def restored(self) -> None:
        """The store has taken all of the snapshots."""
        found: Iterable[tuple[Any, Any]] = self._store.entries()
        for (key, entry_key), value in found:
            self._maps.setdefault(key, {})[entry_key] = value

    def get(self, key: Any) -> Any:
        """The value at the place (key, the entry's key), None when there is none."""
        entries = self._maps.get(key[0])
        return None if entries is None else entries.get(key[1])

    def put(self, key: Any, value: Any) -> None:
        if value is None:
            self.remove(key)
            return
        entries = self._maps.get(key[0])
        if entries is None:
            self._maps[key[0]] = {key[1]: value}
        else:
            entries[key[1]] = value
        self.changed[key] = value

    def remove(self, key: Any) -> None:
        entries = self._maps.get(key[0])
        if entries is not None:
            entries.pop(key[1], None)
            if not entries:
                del self._maps[key[0]]
        self.changed[key] = None

    def entries(self, key: StoredKey) -> list[tuple[Any, Any]]:
        """All entries of one key."""
        return list(self._maps.get(key, {}).items())
