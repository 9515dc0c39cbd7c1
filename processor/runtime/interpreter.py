"""How the interpreter of a process that steps subtasks is set."""

from __future__ import annotations

import gc
import sys
from typing import Final

SWITCH_INTERVAL_S: Final = 0.001
"""How soon a background thread gets the interpreter from the busy one. At Python's 5 ms a completion that needs it
for 0.3 s took 3 s, and checkpoints followed each other as slowly."""

YOUNG_OBJECTS_MAX: Final = 50_000
"""Objects made before the collector looks at the youngest: batches die by reference count, not by it."""


def tuned() -> None:
    """Set it, for the whole process."""
    gc.set_threshold(YOUNG_OBJECTS_MAX, 50, 100)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
