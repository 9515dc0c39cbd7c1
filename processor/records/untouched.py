"""Bytes that pass through a job as they are."""

from __future__ import annotations

from typing import Final

AS_IT_IS: Final = bytes.__bytes__
"""Gives back the bytes it is given, and takes nothing else: anything but bytes is a TypeError. A source or sink that
is given this has nothing to call for each record."""
