"""Columns on their way into msgpack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def encodable(column: Sequence[Any] | None) -> Sequence[Any] | None:
    """The column as a type the encoder knows: itself when it is one; None for one that is left out."""
    return column if column is None or type(column) in (list, tuple) else list(column)
