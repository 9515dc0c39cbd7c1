"""``python -m processor``: the same as the ``processor`` command."""

from __future__ import annotations

from processor.cli.main import main

main()
