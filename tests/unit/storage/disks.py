"""Disks that fail, and one that loses on a power cut whatever was not synced."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from processor.storage.disk import Disk


class Tokens:
    """Names nobody else has: counted, so that a run can be repeated."""

    def __init__(self, start: int = 0) -> None:
        self._next = start

    def __call__(self) -> str:
        self._next += 1
        return f"{self._next:032x}"


class FailingDisk(Disk):
    """Its n-th change fails, counted from 1; the ones before and after succeed. Reading never fails.

    A write that fails has written half, as a disk does that becomes full.
    """

    def __init__(self, failing: int, number: int = errno.ENOSPC) -> None:
        self.failing = failing
        self.number = number
        self.changes = 0
        self.hit = ""

    def _change(self, act: str) -> bool:
        self.changes += 1
        if self.changes == self.failing:
            self.hit = act
            return True
        return False

    def _error(self) -> OSError:
        return OSError(self.number, os.strerror(self.number))

    def make_folder(self, folder: int, name: str) -> None:
        if self._change("make_folder"):
            raise self._error()
        super().make_folder(folder, name)

    def create(self, folder: int, name: str) -> int:
        if self._change("create"):
            raise self._error()
        return super().create(folder, name)

    def write(self, file: int, data: bytes | memoryview) -> int:
        if self._change("write"):
            super().write(file, data[: len(data) // 2])
            raise self._error()
        return super().write(file, data)

    def sync(self, descriptor: int) -> None:
        if self._change("sync"):
            raise self._error()
        super().sync(descriptor)

    def link(self, folder: int, name: str, new_name: str) -> None:
        if self._change("link"):
            raise self._error()
        super().link(folder, name, new_name)

    def replace(self, folder: int, name: str, new_name: str) -> None:
        if self._change("replace"):
            raise self._error()
        super().replace(folder, name, new_name)


class AnswerLostDisk(Disk):
    """The n-th link is made, but the caller is told that it failed: a network file system's lost answer."""

    def __init__(self, failing: int = 1) -> None:
        self._left = failing

    def link(self, folder: int, name: str, new_name: str) -> None:
        super().link(folder, name, new_name)
        self._left -= 1
        if self._left == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))


class LossyDisk(Disk):
    """Remembers what was not synced; ``power_cut`` takes it away from the real directory.

    A name is safe once its folder was synced, content once its file was. Needs /proc to know the paths of
    descriptors.
    """

    def __init__(self) -> None:
        self._new_names: dict[Path, list[tuple[str, str | None]]] = {}
        self._unsynced: set[int] = set()

    def make_folder(self, folder: int, name: str) -> None:
        super().make_folder(folder, name)
        self._named(folder, name)

    def create(self, folder: int, name: str) -> int:
        file = super().create(folder, name)
        self._named(folder, name)
        self._unsynced.add(os.fstat(file).st_ino)
        return file

    def link(self, folder: int, name: str, new_name: str) -> None:
        super().link(folder, name, new_name)
        self._named(folder, new_name)

    def replace(self, folder: int, name: str, new_name: str) -> None:
        kept = _path(folder) / f"{new_name}.before-{len(self._new_names)}"
        before = None
        if (_path(folder) / new_name).exists():
            os.link(_path(folder) / new_name, kept)
            before = kept.name
        super().replace(folder, name, new_name)
        self._new_names.setdefault(_path(folder), []).append((new_name, before))

    def sync(self, descriptor: int) -> None:
        super().sync(descriptor)
        path = _path(descriptor)
        if path.is_dir():
            for _, before in self._new_names.pop(path, []):
                if before is not None:
                    (path / before).unlink()
        else:
            self._unsynced.discard(os.fstat(descriptor).st_ino)

    def power_cut(self, root: Path) -> None:
        """Take away what was not synced: content first, then names, the deepest first."""
        for path in sorted(root.rglob("*")):
            if path.is_file() and path.stat().st_ino in self._unsynced:
                path.write_bytes(b"")
        for folder, names in sorted(self._new_names.items(), reverse=True):
            for name, before in reversed(names):
                _remove(folder / name)
                if before is not None:
                    (folder / before).rename(folder / name)
        self._new_names.clear()
        self._unsynced.clear()

    def _named(self, folder: int, name: str) -> None:
        self._new_names.setdefault(_path(folder), []).append((name, None))


def _path(descriptor: int) -> Path:
    return Path(os.readlink(f"/proc/self/fd/{descriptor}"))


def _remove(path: Path) -> None:
    if path.is_dir():
        for inner in path.iterdir():
            _remove(inner)
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
