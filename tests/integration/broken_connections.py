"""Connections of other processes, found and broken from outside, for real; neither side is told, or ends for it."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import Enum, auto
from pathlib import Path
from typing import Any, Final

import pytest

PIDFD_GETFD: Final = 438
"""The system call, of Linux on every machine: a duplicate of another process's descriptor."""

ESTABLISHED: Final = "01"
"""The state of a socket in /proc/net/tcp."""
CONNECTED: Final = "03"
"""And in /proc/net/unix."""

NOWHERE: Final = bytes(16)
"""An address of no family. Connecting a TCP socket with it ends its connection, and tells the other side to reset."""

NAMED: Final = re.compile(r"worker (\d+)")

_libc = ctypes.CDLL(None, use_errno=True)


class Break(Enum):
    """How a connection ends."""

    ENDED = auto()
    """Both directions are shut: both sides read the end of the stream."""
    RESET = auto()
    """As when a machine between them forgets it; of TCP only."""


def tcp_between(one: int, other: int) -> int:
    """The descriptor that process ``one`` has of its connection with process ``other``; there is exactly one."""
    theirs = {(remote, local) for local, remote in _tcp(other).values()}
    found = [descriptor for descriptor, ends in _tcp(one).items() if ends in theirs]
    assert len(found) == 1, f"processes {one} and {other} have {len(found)} connections"
    return found[0]


def unix_accepted(process: int) -> Sequence[int]:
    """Descriptors of the connections that others have made with a Unix socket of this process."""
    # Num RefCount Protocol Flags Type St Inode Path; who connects has no path
    rows = (line.split() for line in _lines(process, "unix"))
    accepted = {row[6] for row in rows if len(row) > 7 and row[5] == CONNECTED}
    return [descriptor for descriptor, inode in _sockets(process) if inode in accepted]


def break_connection(process: int, descriptor: int, how: Break) -> None:
    """Skips the test where the kernel lets nobody touch the descriptors of another process."""
    with _duplicate(process, descriptor) as connection:
        if how is Break.ENDED:
            connection.shutdown(socket.SHUT_RDWR)
        elif _libc.connect(connection.fileno(), NOWHERE, len(NOWHERE)) != 0:
            raise _failed("connect")


def workers_named(failure: Mapping[str, Any]) -> set[int]:
    """By a failure that ``status`` tells: the one that met it, and the one that it met it with."""
    return {int(failure["worker"]), *map(int, NAMED.findall(failure["text"]))}


@contextmanager
def _duplicate(process: int, descriptor: int) -> Iterator[socket.socket]:
    whose = os.pidfd_open(process)
    try:
        duplicate = _libc.syscall(PIDFD_GETFD, whose, descriptor, 0)
        if duplicate < 0:
            failed = _failed("pidfd_getfd")
            if failed.errno in (errno.EPERM, errno.ENOSYS):
                pytest.skip(f"this kernel gives nobody a descriptor of another process: {failed}")
            raise failed
    finally:
        os.close(whose)
    with socket.socket(fileno=duplicate) as opened:
        yield opened


def _failed(call: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{call}: {os.strerror(number)}")


def _tcp(process: int) -> dict[int, tuple[str, str]]:
    """Established connections: descriptor to both ends, the own one first."""
    # sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode …
    rows = (line.split() for line in _lines(process, "tcp"))
    ends = {row[9]: (row[1], row[2]) for row in rows if row[3] == ESTABLISHED}
    return {descriptor: ends[inode] for descriptor, inode in _sockets(process) if inode in ends}


def _lines(process: int, table: str) -> list[str]:
    return Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]


def _sockets(process: int) -> Iterator[tuple[int, str]]:
    """Descriptors and inodes."""
    for entry in Path(f"/proc/{process}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            kind, _, inode = os.readlink(entry).partition(":")
            if kind == "socket":
                yield int(entry.name), inode.strip("[]")
