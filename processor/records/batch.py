"""The unit on every edge: parallel columns of values, timestamps, keys, headers and origins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import compress
from typing import Generic, TypeVar
from uuid import UUID

from processor.errors import Where
from processor.ids import SplitId

Plain = str | bytes | int | UUID | datetime
Key = Plain | tuple[Plain, ...]
Headers = tuple[tuple[str, bytes | None], ...]
"""Headers of one record, in order; names may repeat and values may be null."""

NO_HEADERS: Headers = ()
NO_TIMESTAMP = -1
"""Milliseconds of a record that carries no time."""

V_co = TypeVar("V_co", covariant=True)
V2 = TypeVar("V2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch(Generic[V_co]):
    """Some records of one input, in order; never empty, never with a barrier or watermark in its middle.

    Columns have equal lengths. A column that no record needs is None as a whole. Columns are shared
    between batches and never changed in place.
    """

    values: Sequence[V_co]
    timestamps: Sequence[int]
    """Milliseconds since 1970 UTC; NO_TIMESTAMP where a record has none."""
    keys: Sequence[Key] | None = None
    """The stream's key; present behind a ``key_by``."""
    headers: Sequence[Headers] | None = None
    split: SplitId | None = None
    """Where the records were read, for errors; None for records made by the engine (timers)."""
    offsets: Sequence[int] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def where(self, index: int, step: str | None = None) -> Where:
        """The place of record ``index``, for the text of an error."""
        offset = self.offsets[index] if self.offsets is not None else None
        return Where(step=step, split=self.split, offset=offset)

    def headers_of(self, index: int) -> Headers:
        return self.headers[index] if self.headers is not None else NO_HEADERS

    def with_values(self, values: Sequence[V2]) -> Batch[V2]:
        """The same records with other values, one for one."""
        return Batch(
            values=values,
            timestamps=self.timestamps,
            keys=self.keys,
            headers=self.headers,
            split=self.split,
            offsets=self.offsets,
        )

    def select(self, keep: Sequence[object]) -> Batch[V_co]:
        """The records whose entry in ``keep`` is true, in order; may be empty, then it must not travel."""
        return Batch(
            values=list(compress(self.values, keep)),
            timestamps=list(compress(self.timestamps, keep)),
            keys=None if self.keys is None else list(compress(self.keys, keep)),
            headers=None if self.headers is None else list(compress(self.headers, keep)),
            split=self.split,
            offsets=None if self.offsets is None else list(compress(self.offsets, keep)),
        )

    def take(self, indexes: Sequence[int]) -> Batch[V_co]:
        """The records at ``indexes``, in that order; an index may come twice."""
        values, timestamps, keys, headers, offsets = (
            self.values,
            self.timestamps,
            self.keys,
            self.headers,
            self.offsets,
        )
        return Batch(
            values=[values[i] for i in indexes],
            timestamps=[timestamps[i] for i in indexes],
            keys=None if keys is None else [keys[i] for i in indexes],
            headers=None if headers is None else [headers[i] for i in indexes],
            split=self.split,
            offsets=None if offsets is None else [offsets[i] for i in indexes],
        )

    def slice(self, start: int, stop: int) -> Batch[V_co]:
        """Records ``start <= i < stop``."""
        return Batch(
            values=self.values[start:stop],
            timestamps=self.timestamps[start:stop],
            keys=None if self.keys is None else self.keys[start:stop],
            headers=None if self.headers is None else self.headers[start:stop],
            split=self.split,
            offsets=None if self.offsets is None else self.offsets[start:stop],
        )
