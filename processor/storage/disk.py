"""The calls to the operating system that the directory store consists of, in one place.

Everything is relative to the descriptor of an open folder, so no path is resolved twice and no symbolic link
is followed on the way. Tests put a disk here that is full, fails, or forgets what was not synced.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

FOLDER_MODE = 0o700
FILE_MODE = 0o600

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# Not blocking: opening a named pipe must not wait for somebody to write into it.
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Disk:
    """System calls; every method raises OSError."""

    def open_root(self, path: str) -> int:
        """Descriptor of a folder whose path the operator chose; here links are followed."""
        return os.open(path, _FOLDER_FLAGS & ~os.O_NOFOLLOW)

    def open_folder(self, folder: int, name: str) -> int:
        return os.open(name, _FOLDER_FLAGS, dir_fd=folder)

    def make_folder(self, folder: int, name: str) -> None:
        os.mkdir(name, FOLDER_MODE, dir_fd=folder)

    def create(self, folder: int, name: str) -> int:
        """Descriptor of a new file, for writing; FileExistsError when there is one."""
        return os.open(name, _NEW_FLAGS, FILE_MODE, dir_fd=folder)

    def open(self, folder: int, name: str) -> tuple[int, int]:
        """Descriptor of a regular file, for reading, and its size."""
        descriptor = os.open(name, _READ_FLAGS, dir_fd=folder)
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            os.close(descriptor)
            raise OSError(errno.EISDIR, "not a regular file", name)
        return descriptor, found.st_size

    def write(self, file: int, data: bytes | memoryview) -> int:
        return os.write(file, data)

    def read(self, file: int, length: int) -> bytes:
        return os.read(file, length)

    def sync(self, descriptor: int) -> None:
        """Of a file or a folder: what was written, or which names it holds, survives a power loss."""
        os.fsync(descriptor)

    def link(self, folder: int, name: str, new_name: str) -> None:
        """Give a file a second name; FileExistsError when the name is taken."""
        os.link(name, new_name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)

    def link_in(self, path: str, folder: int, name: str) -> None:
        """``link`` for a file of another folder, whose path is of this process's own making."""
        os.link(path, name, dst_dir_fd=folder, follow_symlinks=False)

    def restrict(self, file: int) -> None:
        """Nobody else may read it, whoever made it."""
        os.fchmod(file, FILE_MODE)

    def link_out(self, folder: int, name: str, path: str) -> None:
        """The other way round."""
        os.link(name, path, src_dir_fd=folder, follow_symlinks=False)

    def replace(self, folder: int, name: str, new_name: str) -> None:
        os.replace(name, new_name, src_dir_fd=folder, dst_dir_fd=folder)

    def remove(self, folder: int, name: str) -> None:
        os.unlink(name, dir_fd=folder)

    def remove_folder(self, folder: int, name: str) -> None:
        os.rmdir(name, dir_fd=folder)

    def listing(self, folder: int) -> list[tuple[str, bool]]:
        """Names in a folder, sorted, each with whether it is a folder itself."""
        with os.scandir(folder) as found:
            return sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in found)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def write_all(self, file: int, data: bytes) -> None:
        """``write`` until everything is written."""
        rest = memoryview(data)
        while rest:
            rest = rest[self.write(file, rest) :]


@contextmanager
def closing(disk: Disk, descriptor: int) -> Iterator[int]:
    """The descriptor, closed at the end."""
    try:
        yield descriptor
    finally:
        disk.close(descriptor)
