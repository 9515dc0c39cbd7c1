"""Removes what is over, a little after each batch, so that state that expires does not grow for ever."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from processor.contracts.state_store import KeptTable, KeyedState, TableSpec
from processor.state.expiry import Expiries

LOOKS_PER_WRITE: Final = 2
"""Places looked at for each that was written: then at most half of what is kept is over, however much comes."""
LOOKS_PER_BATCH: Final = 16
"""So that what is over goes also where nothing is written any more."""
LOOKS_MIN: Final = 512
"""Saved up until then: in a store on disk, to begin to look costs as much as some hundred looks."""


class Sweep:
    """The states of one running step that expire. Used between two batches."""

    def __init__(self, state: KeyedState, specs: Sequence[TableSpec], expiries: Expiries) -> None:
        self._state = state
        self._expiries = expiries
        self._specs = [spec for spec in specs if spec.left_of is not None]
        self._swept = {spec.name: 0 for spec in self._specs}
        """For each state how many writes have been answered by looks."""
        self._saved = {spec.name: 0 for spec in self._specs}

    def after_batch(self) -> None:
        """Bounded by what was written since the last call. By nothing else: where a batch writes more than is looked
        at behind it, what is over would pile up."""
        for spec in self._specs:
            written = self._expiries.of(spec.name).written
            saved = self._saved[spec.name] + LOOKS_PER_BATCH
            saved += LOOKS_PER_WRITE * (written - self._swept[spec.name])
            self._swept[spec.name] = written
            if saved >= LOOKS_MIN:
                self._look(spec, saved)
                saved = 0
            self._saved[spec.name] = saved

    def _look(self, spec: TableSpec, places_max: int) -> None:
        left_of = spec.left_of
        assert left_of is not None
        state = self._state
        table: KeptTable = state.map_table(spec.name) if spec.mapped else state.table(spec.name)
        over_ms = self._expiries.of(spec.name).over_everywhere_ms()
        for place, kept in state.some(spec.name, places_max):
            left = left_of(kept, over_ms)
            if left is not kept:
                table.keep(place, left)
