"""Which processes another one has started, seen from outside."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def children(process: int) -> list[int]:
    """Numbers of those that it has started and that are there; none of a process that is not."""
    found: list[int] = []
    with suppress(FileNotFoundError):
        for thread in Path(f"/proc/{process}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended meanwhile
                found += map(int, (thread / "children").read_text().split())
    return found


def stands_still(process: int) -> bool:
    """Whether it was stopped by a signal."""
    _, _, rest = Path(f"/proc/{process}/stat").read_text().rpartition(")")
    return rest.split()[0] == "T"


def family(process: int) -> list[int]:
    """A process, and all that it and they have started."""
    return [process, *(member for child in children(process) for member in family(child))]
