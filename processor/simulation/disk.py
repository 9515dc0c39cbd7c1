"""The disk as one simulated process uses it: the twin of ``processor.storage.disk``."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from processor.simulation.machine import FileNode, FolderNode, MachineDisk
from processor.simulation.process import SimulatedProcess
from processor.storage.disk import Disk

Trouble = Callable[[str], int]
"""Asked before every act that changes something: how long it takes, in microseconds. Raises OSError."""

DESCRIPTORS_MAX: Final = 10_000
"""More open at once is a leak."""


@dataclass(slots=True)
class _Opened:
    node: FileNode | FolderNode
    at: int = 0


class SimulatedDisk(Disk):
    """A dead process changes nothing; a live one waits at every change while others run."""

    def __init__(self, machine: MachineDisk, process: SimulatedProcess, trouble: Trouble) -> None:
        self._machine = machine
        self._process = process
        self._trouble = trouble
        self._opened: dict[int, _Opened] = {}
        self._next = 3

    def open_root(self, path: str) -> int:
        self._process.check()
        return self._descriptor(self._machine.find(path))

    def open_folder(self, folder: int, name: str) -> int:
        self._process.check()
        node = self._machine.inner(self._folder(folder), name)
        if not isinstance(node, FolderNode):
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
        return self._descriptor(node)

    def make_folder(self, folder: int, name: str) -> None:
        self._act("make folder", name)
        self._machine.make_folder(self._folder(folder), name)

    def create(self, folder: int, name: str) -> int:
        self._act("create", name)
        return self._descriptor(self._machine.create(self._folder(folder), name))

    def open(self, folder: int, name: str) -> tuple[int, int]:
        self._process.check()
        node = self._machine.inner(self._folder(folder), name)
        if not isinstance(node, FileNode):
            raise OSError(errno.EISDIR, "not a regular file", name)
        return self._descriptor(node), len(node.content)

    def write(self, file: int, data: bytes | memoryview) -> int:
        self._act("write", "")
        return self._machine.write(self._file(file), bytes(data))

    def read(self, file: int, length: int) -> bytes:
        self._process.check()
        opened = self._opened[file]
        part = bytes(self._file(file).content[opened.at : opened.at + length])
        opened.at += len(part)
        return part

    def sync(self, descriptor: int) -> None:
        self._act("sync", "")
        self._machine.sync(self._opened[descriptor].node)

    def link(self, folder: int, name: str, new_name: str) -> None:
        self._act("link", new_name)
        self._machine.link(self._folder(folder), name, new_name)

    def link_in(self, path: str, folder: int, name: str) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), name)  # the path is on a real disk

    def link_out(self, folder: int, name: str, path: str) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), name)

    def replace(self, folder: int, name: str, new_name: str) -> None:
        self._act("replace", new_name)
        self._machine.replace(self._folder(folder), name, new_name)

    def remove(self, folder: int, name: str) -> None:
        self._act("remove", name)
        self._machine.remove(self._folder(folder), name)

    def remove_folder(self, folder: int, name: str) -> None:
        self._act("remove folder", name)
        self._machine.remove_folder(self._folder(folder), name)

    def listing(self, folder: int) -> list[tuple[str, bool]]:
        self._process.check()
        names = self._folder(folder).names
        return sorted((name, isinstance(node, FolderNode)) for name, node in names.items())

    def close(self, descriptor: int) -> None:
        # Also by what is collected after the process has died: then it may not raise.
        if self._opened.pop(descriptor, None) is None and self._process.alive:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    def _act(self, act: str, name: str) -> None:
        self._process.check()
        self._process.world.wait_us(self._trouble(f"{act} {name}"))

    def _descriptor(self, node: FileNode | FolderNode) -> int:
        if len(self._opened) >= DESCRIPTORS_MAX:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        self._next += 1
        self._opened[self._next] = _Opened(node)
        return self._next

    def _folder(self, descriptor: int) -> FolderNode:
        node = self._opened[descriptor].node
        if not isinstance(node, FolderNode):
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        return node

    def _file(self, descriptor: int) -> FileNode:
        node = self._opened[descriptor].node
        if not isinstance(node, FileNode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        return node
