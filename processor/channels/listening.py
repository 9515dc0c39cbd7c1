"""Sockets by address: to listen on, and to connect with."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from pathlib import Path
from typing import Any, Final

from processor.channels.addresses import Address, TcpAddress, UnixAddress
from processor.errors import SettingsError, Unavailable

BACKLOG: Final = 256
"""Connections that may wait until they are accepted: the workers of a large job, all at once."""

KEEPALIVE_IDLE_S: Final = 10
KEEPALIVE_INTERVAL_S: Final = 5
KEEPALIVE_PROBES: Final = 3
UNANSWERED_MS: Final = 30_000
"""A machine that is gone says nothing: after so long without an answer a connection over a network is broken."""


class Listener:
    """Takes connections at an address. ``accept`` never blocks."""

    def __init__(self, address: Address) -> None:
        """Raises SettingsError for an address that cannot be listened on, or where others could."""
        self._path: Path | None = None
        family: socket.AddressFamily
        place: Any
        try:
            if isinstance(address, UnixAddress):
                _require_private(address.path.parent)
                family, place = socket.AF_UNIX, str(address.path)
            else:
                family, place = _resolved(address)
            self._socket = socket.socket(family, socket.SOCK_STREAM)
            self._listen(address, place)
        except OSError as error:
            raise SettingsError(
                f"nothing can listen on {address}: {error.strerror or error}.",
                remedy="Choose another address.",
            ) from error

    reads: Final = True
    writes: Final = False

    def ready(self) -> None:
        """Whoever waits accepts afterwards."""

    def _listen(self, address: Address, place: Any) -> None:
        self.address = address
        try:
            if isinstance(address, TcpAddress):
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind(place)
            if isinstance(address, TcpAddress):
                self.address = TcpAddress(address.host, self._socket.getsockname()[1])
            else:
                self._path = address.path
            self._socket.listen(BACKLOG)
            self._socket.setblocking(False)
        except OSError:
            self.close()
            raise

    def fileno(self) -> int:
        return self._socket.fileno()

    def accept(self) -> socket.socket | None:
        """The next connection, if one waits. Raises Unavailable when this process can have no more."""
        try:
            connected, _ = self._socket.accept()
        except (BlockingIOError, ConnectionError):  # nobody waits, or who did has gone
            return None
        except OSError as error:
            raise Unavailable(
                f"no connection can be accepted on {self.address}: {error.strerror or error}.",
                remedy="Look at the limit of open files.",
            ) from error
        prepare(connected)
        return connected

    def close(self) -> None:
        """Idempotent."""
        self._socket.close()
        path, self._path = self._path, None
        if path is not None:
            with contextlib.suppress(OSError):
                path.unlink()


class Connecting:
    """A socket on its way to an address. No call blocks, but for looking up the name of a host."""

    def __init__(self, address: Address) -> None:
        """Raises OSError."""
        if isinstance(address, UnixAddress):
            family, self._place = socket.AF_UNIX, str(address.path)
        else:
            family, self._place = _resolved(address)
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.setblocking(False)
        prepare(self.socket)

    def arrived(self) -> bool:
        """Whether it is there; to be asked until it is. Raises OSError when it does not get there."""
        failed = self.socket.connect_ex(self._place)
        if failed in (0, errno.EISCONN):
            return True
        if failed in (errno.EINPROGRESS, errno.EALREADY, errno.EAGAIN):
            return False
        raise OSError(failed, os.strerror(failed))


def prepare(opened: socket.socket) -> None:
    """What every connection over a network wants: no waiting for more to send, and an end when nobody answers."""
    if opened.family == socket.AF_UNIX:
        return
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    wanted = {
        "TCP_KEEPIDLE": KEEPALIVE_IDLE_S,
        "TCP_KEEPINTVL": KEEPALIVE_INTERVAL_S,
        "TCP_KEEPCNT": KEEPALIVE_PROBES,
        "TCP_USER_TIMEOUT": UNANSWERED_MS,
    }
    for name, value in wanted.items():
        option = getattr(socket, name, None)  # not every system has each
        if option is not None:
            opened.setsockopt(socket.IPPROTO_TCP, option, value)


def _resolved(address: TcpAddress) -> tuple[socket.AddressFamily, Any]:
    family, _, _, _, place = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
    return family, place


def _require_private(folder: Path) -> None:
    """Whoever reaches a socket without a secret speaks as a worker: nobody else may enter its folder."""
    found = folder.stat(follow_symlinks=False)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise SettingsError(
            f"workers would listen in {folder}, which others can enter, or which is somebody else's.",
            remedy="Give it to the user who runs the job, with mode 0700, or name another folder.",
        )
