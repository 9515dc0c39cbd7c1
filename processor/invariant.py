"""Assertions that stay on in production: a bug crashes, the world is handled."""

from __future__ import annotations

from processor.errors import EngineBug


def invariant(holds: bool, what: str) -> None:
    """Crash the attempt when a property the engine relies on does not hold.

    Raises: EngineBug, which restarts from the newest checkpoint rather than going on with a wrong state.
    """
    if not holds:
        raise EngineBug(what)
