"""Where workers listen."""

from __future__ import annotations

import tempfile

import pytest


@pytest.fixture(params=["unix"])
def place():
    """The beginning of addresses of each kind; paths are short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="workers-") as folder:
        yield f"unix:{folder}"
