"""What is done to one file of a directory, and which files that touches."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from random import Random
from typing import assert_never

from tests.damage.ways import flipped, zeroed


class Act(StrEnum):
    FLIPPED = "flipped"
    CUT = "cut"
    ZEROED = "zeroed"
    SWAPPED = "swapped"
    """With another, of the same kind if there is one."""
    OLDER = "older"
    """There is what another of its kind held, or the same one before."""
    MISSING = "missing"


def kind_of(name: str) -> str:
    """What sort of file it is, by where it lies and what its name ends with: nobody lists the sorts."""
    path = Path(name)
    return path.suffix.removeprefix(".") or path.parent.name


def names_of(directory: Path) -> list[str]:
    """All files there are, relative to the directory, sorted."""
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())


def perform(act: Act, directory: Path, name: str, older: Path, chance: Random) -> tuple[str, ...]:
    """Do it; the names of the files that are not as they were. None: what was done changed nothing."""
    file = directory / name
    content = file.read_bytes()
    match act:
        case Act.FLIPPED if content:
            file.write_bytes(flipped(content, chance.randrange(len(content)), 1 << chance.randrange(8)))
        case Act.CUT if content:
            file.write_bytes(content[: chance.randrange(len(content))])
        case Act.ZEROED:
            start, stop = sorted(chance.randrange(len(content) + 1) for _ in range(2))
            file.write_bytes(zeroed(content, start, stop))
        case Act.SWAPPED:
            return _swap(directory, name, chance)
        case Act.OLDER:
            found = [path for path in _like(older, name) + _like(directory, name) if path != file]
            if found:
                file.write_bytes(chance.choice(found).read_bytes())
        case Act.MISSING:
            file.unlink()
            return (name,)
        case Act.FLIPPED | Act.CUT:
            pass
        case _:
            assert_never(act)
    return (name,) if file.read_bytes() != content else ()


def _swap(directory: Path, name: str, chance: Random) -> tuple[str, ...]:
    file = directory / name
    others = [path for path in _like(directory, name) if path != file]
    others = others or [directory / each for each in names_of(directory) if each != name]
    other = chance.choice(others)
    mine, theirs = file.read_bytes(), other.read_bytes()
    if mine == theirs:
        return ()
    file.write_bytes(theirs)
    other.write_bytes(mine)
    return name, str(other.relative_to(directory))


def _like(directory: Path, name: str) -> list[Path]:
    return [directory / each for each in names_of(directory) if kind_of(each) == kind_of(name)]
