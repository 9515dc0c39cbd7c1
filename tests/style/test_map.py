"""The map of the house is complete: every room of the engine is named in processor/README.md."""

from __future__ import annotations

import re

from tests.style.sources import ROOT, python_files

MAP = ROOT / "processor" / "README.md"


def rooms() -> set[str]:
    """The folders and files directly in processor/, without the package's own `__init__` and `__main__`."""
    found = set()
    for source in python_files("processor"):
        room = source.path.parts[1]
        if not room.startswith("__"):
            found.add(room.removesuffix(".py"))
    return found


def test_every_room_is_on_the_map() -> None:
    assert rooms(), "processor/ is empty"
    assert MAP.exists(), "processor/README.md, the map of the rooms, is not there"
    named = set(re.findall(r"`([a-z_]+)(?:\.py|/)?`", MAP.read_text()))
    assert not rooms() - named, f"not named in processor/README.md: {sorted(rooms() - named)}"
