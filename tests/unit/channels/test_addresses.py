"""Addresses of workers: read as they are written, and refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from processor.channels.addresses import SOCKET_PATH_BYTES_MAX, TcpAddress, UnixAddress, parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("unix:/run/job/worker-0.sock", UnixAddress(Path("/run/job/worker-0.sock"))),
        ("tcp:worker-3.jobs:7000", TcpAddress("worker-3.jobs", 7000)),
        ("tcp:127.0.0.1:0", TcpAddress("127.0.0.1", 0)),
        ("tcp:[::1]:65535", TcpAddress("::1", 65_535)),
        (
            f"unix:/{'x' * (SOCKET_PATH_BYTES_MAX - 1)}",
            UnixAddress(Path("/" + "x" * (SOCKET_PATH_BYTES_MAX - 1))),
        ),
    ],
)
def test_an_address_is_read_as_it_is_written(text, address):
    assert parse_address(text) == address
    assert str(address) == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("/run/worker.sock", "write unix:/path or tcp:host:port"),
        ("unix:worker.sock", "no absolute path"),
        ("unix:/a\0b", "no absolute path"),
        (f"unix:/{'x' * SOCKET_PATH_BYTES_MAX}", "a path of 104 bytes"),
        (f"unix:/{'ä' * 60}", "a path of 121 bytes"),
        ("tcp:host", "no address of a host"),
        ("tcp::7000", "no address of a host"),
        ("tcp:host:", "no address of a host"),
        ("tcp:host:seven", "no address of a host"),
        ("tcp:host:65536", "no address of a host"),
        ("tcp:host:-1", "no address of a host"),
        ("tcp:::1:7000", "IPv6 address without brackets"),
    ],
)
def test_what_is_no_address_is_refused_in_words(text, why):
    with pytest.raises(ValueError, match=why):
        parse_address(text)
