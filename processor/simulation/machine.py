"""The disk of a simulated machine: what is written is in its page cache, and on the disk once it was synced.

Killing a process loses nothing. A crash of the machine loses, by the seed's choice, any part of what was not
synced: names of a folder, the content of a file, in whole or the end of it.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from random import Random


@dataclass(slots=True, eq=False)
class FileNode:
    """Content as everybody sees it, and as it would be after a crash."""

    content: bytearray = field(default_factory=bytearray)
    durable: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """One change of a folder that was not synced: the name leaves or gets a node; or moves, in one step."""

    name: str
    node: FileNode | FolderNode | None
    left: str | None = None


@dataclass(slots=True, eq=False)
class FolderNode:
    """Names as everybody sees them, as they would be after a crash, and the changes in between, in order."""

    names: dict[str, FileNode | FolderNode] = field(default_factory=dict)
    durable: dict[str, FileNode | FolderNode] = field(default_factory=dict)
    changes: list[_Change] = field(default_factory=list)
    removed: bool = False
    """Nothing can be added to a folder that was removed, even by who holds it open."""


class MachineDisk:
    """One file system. Errors are OSErrors, as the system raises them."""

    def __init__(self) -> None:
        self.root = FolderNode()
        self.full = False
        """Nothing more can be written."""
        self._damaged: dict[FileNode, bytes] = {}
        """What files that were damaged held before."""

    # --- names

    def find(self, path: str) -> FolderNode:
        """The folder of an absolute path."""
        node: FileNode | FolderNode = self.root
        for part in path.split("/"):
            if part:
                node = self.inner(_folder(node, part), part)
        return _folder(node, path)

    def inner(self, folder: FolderNode, name: str) -> FileNode | FolderNode:
        node = folder.names.get(name)
        if node is None:
            raise _error(errno.ENOENT, name)
        return node

    def make_folder(self, folder: FolderNode, name: str) -> None:
        self._add(folder, name, FolderNode())

    def create(self, folder: FolderNode, name: str) -> FileNode:
        file = FileNode()
        self._add(folder, name, file)
        return file

    def link(self, folder: FolderNode, name: str, new_name: str) -> None:
        self._add(folder, new_name, self.inner(folder, name))

    def replace(self, folder: FolderNode, name: str, new_name: str) -> None:
        node = self.inner(folder, name)
        del folder.names[name]
        folder.names[new_name] = node
        folder.changes.append(_Change(name=new_name, node=node, left=name))

    def remove(self, folder: FolderNode, name: str) -> None:
        if isinstance(self.inner(folder, name), FolderNode):
            raise _error(errno.EISDIR, name)
        self._drop(folder, name)

    def remove_folder(self, folder: FolderNode, name: str) -> None:
        inner = _folder(self.inner(folder, name), name)
        if inner.names:
            raise _error(errno.ENOTEMPTY, name)
        inner.removed = True
        self._drop(folder, name)

    def _add(self, folder: FolderNode, name: str, node: FileNode | FolderNode) -> None:
        if folder.removed:
            raise _error(errno.ENOENT, name)
        if name in folder.names:
            raise _error(errno.EEXIST, name)
        if self.full:
            raise _error(errno.ENOSPC, name)
        folder.names[name] = node
        folder.changes.append(_Change(name=name, node=node))

    def _drop(self, folder: FolderNode, name: str) -> None:
        del folder.names[name]
        folder.changes.append(_Change(name=name, node=None))

    # --- content

    def write(self, file: FileNode, data: bytes) -> int:
        """How much was written: half of it, at the moment when the disk becomes full."""
        if self.full:
            raise _error(errno.ENOSPC, "")
        file.content += data
        return len(data)

    def sync(self, node: FileNode | FolderNode) -> None:
        if isinstance(node, FileNode):
            node.durable = bytes(node.content)
        else:
            node.durable = dict(node.names)
            node.changes.clear()

    # --- damage

    def damage(self, file: FileNode, chance: Random) -> None:
        """Change what the disk has of a file: a bit, a page, or its end is lost."""
        self._damaged.setdefault(file, bytes(file.content))
        match chance.randrange(3):
            case 0:
                at = chance.randrange(len(file.content))
                file.content[at] ^= 1 << chance.randrange(8)
            case 1:
                del file.content[chance.randrange(len(file.content)) :]
            case _:
                file.content[:] = bytes(len(file.content))
        file.durable = bytes(file.content)

    def mend(self) -> bool:
        """Restore all that was damaged from a copy; False when nothing was."""
        damaged, self._damaged = self._damaged, {}
        for file, content in damaged.items():
            file.content, file.durable = bytearray(content), content
        return bool(damaged)

    # --- the end of the power

    def crash(self, chance: Random) -> int:
        """Forget what was not synced, or some of it; how many things were forgotten."""
        return _crash(self.root, chance)


def _crash(folder: FolderNode, chance: Random) -> int:
    kept = _kept(folder.changes, chance)
    names = dict(folder.durable)
    for change in kept:
        if change.left is not None:
            names.pop(change.left, None)
        if change.node is None:
            names.pop(change.name, None)
        else:
            names[change.name] = change.node
    forgotten = len(folder.changes) - len(kept)
    folder.names = names
    folder.durable = dict(names)
    folder.changes.clear()
    for node in names.values():
        if isinstance(node, FolderNode):
            node.removed = False
            forgotten += _crash(node, chance)
        elif len(node.content) != len(node.durable):
            forgotten += 1
            node.durable = _torn(node, chance)
            node.content = bytearray(node.durable)
    return forgotten


def _kept(changes: list[_Change], chance: Random) -> list[_Change]:
    """None of them, all, the first ones, or any: a disk promises nothing without a sync."""
    match chance.randrange(4):
        case 0:
            return []
        case 1:
            return list(changes)
        case 2:
            return changes[: chance.randint(0, len(changes))]
        case _:
            return [change for change in changes if chance.random() < 0.5]


def _torn(file: FileNode, chance: Random) -> bytes:
    """What the disk has of a file that grew since it was synced."""
    match chance.randrange(3):
        case 0:
            return file.durable
        case 1:
            return bytes(file.content[: chance.randint(len(file.durable), len(file.content))])
        case _:  # the size got there, the content did not
            return file.durable + bytes(len(file.content) - len(file.durable))


def _folder(node: FileNode | FolderNode, name: str) -> FolderNode:
    if not isinstance(node, FolderNode):
        raise _error(errno.ENOTDIR, name)
    return node


def _error(number: int, name: str) -> OSError:
    return OSError(number, os.strerror(number), name)
