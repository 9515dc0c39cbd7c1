"""An exactly-once stream processor for Kafka.

Everything an author of a job needs can be imported from here; names are loaded when first used, so that
``processor --help`` stays fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from processor.stream import *  # noqa: F403

__version__ = "0.1.0"

_OTHER_ROOMS: dict[str, str] = {}
"""Names that are not in ``processor.stream``, and the module each is in."""

if not TYPE_CHECKING:  # checkers are to find a misspelt name

    def __getattr__(name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(f"module 'processor' has no attribute '{name}'")
        import importlib

        module = importlib.import_module(_OTHER_ROOMS.get(name, "processor.stream"))
        offered: list[str] = module.__all__
        if name not in offered:
            raise AttributeError(f"module 'processor' has no attribute '{name}'")
        return getattr(module, name)
