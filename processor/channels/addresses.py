"""Where a worker is reached by others: ``unix:/path`` on the same machine, ``tcp:host:port`` over a network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

SOCKET_PATH_BYTES_MAX: Final = 103
"""Of the path of a Unix socket, on every system: 107 on Linux, 103 on macOS."""

PORT_MAX: Final = 65_535

_UNIX, _TCP = "unix:", "tcp:"


@dataclass(frozen=True, slots=True)
class UnixAddress:
    path: Path

    def __str__(self) -> str:
        return f"{_UNIX}{self.path}"


@dataclass(frozen=True, slots=True)
class TcpAddress:
    host: str
    """A name, an IPv4 address, or an IPv6 address without brackets."""
    port: int
    """0, to listen on: any free one."""

    def __str__(self) -> str:
        return f"{_TCP}[{self.host}]:{self.port}" if ":" in self.host else f"{_TCP}{self.host}:{self.port}"


Address = UnixAddress | TcpAddress


def parse_address(text: str) -> Address:
    """Inverse of ``str``. Raises ValueError, in words fit for the person who wrote the text."""
    if text.startswith(_UNIX):
        return _unix(text)
    if text.startswith(_TCP):
        return _tcp(text)
    raise ValueError(f"{text!r} is no address: write unix:/path or tcp:host:port")


def _unix(text: str) -> UnixAddress:
    path = Path(text.removeprefix(_UNIX))
    if not path.is_absolute() or "\0" in text:
        raise ValueError(f"{text!r} has no absolute path")
    size = len(str(path).encode())
    if size > SOCKET_PATH_BYTES_MAX:
        raise ValueError(
            f"{text!r} has a path of {size} bytes; a socket takes up to {SOCKET_PATH_BYTES_MAX}: write a shorter one"
        )
    return UnixAddress(path)


def _tcp(text: str) -> TcpAddress:
    host, colon, port = text.removeprefix(_TCP).rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{text!r} has an IPv6 address without brackets: write tcp:[::1]:7000")
    if not colon or not host or not (port.isascii() and port.isdigit()) or int(port) > PORT_MAX:
        raise ValueError(f"{text!r} is no address of a host: write tcp:host:port")
    return TcpAddress(host, int(port))
