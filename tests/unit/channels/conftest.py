"""Where workers listen, and what they have to show."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from processor.channels.credentials import Credentials
from tests.unit.channels.certificates import Authority


@pytest.fixture(params=["unix", "tcp", "tls"])
def kind(request):
    """Over which sockets the test runs."""
    return request.param


@pytest.fixture
def place(kind):
    """The beginning of addresses; paths are short enough for a socket."""
    if kind != "unix":
        yield "tcp:127.0.0.1:0"
        return
    with tempfile.TemporaryDirectory(prefix="workers-") as folder:
        yield f"unix:{folder}"


@pytest.fixture
def credentials(kind, tmp_path: Path):
    """Of the workers of the job."""
    tls = Authority(tmp_path).tls("worker") if kind == "tls" else None
    return Credentials(secret=b"secret", tls=tls)
