"""An exactly-once stream processor for Kafka.

Everything an author of a job needs can be imported from here; names are loaded when first used, so that
``processor --help`` stays fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from processor.stream import *  # noqa: F403

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    import importlib

    stream = importlib.import_module("processor.stream")
    try:
        return getattr(stream, name)
    except AttributeError:
        raise AttributeError(f"module 'processor' has no attribute '{name}'") from None
