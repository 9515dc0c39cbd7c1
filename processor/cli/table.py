"""Columns of text, aligned; plain, so that it can be piped, grepped and compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


def aligned(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Lines with every column as wide as its widest cell; all rows have the same number of cells."""
    table = [tuple(row) for row in rows]
    if not table:
        return
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    for row in table:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
