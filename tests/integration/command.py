"""The ``processor`` command, run as a person runs it: what it says and its exit code."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

from examples.job_process import PROJECT

COMMAND_TIMEOUT_S = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """How a command ended."""

    code: int
    out: str
    """Standard output: results."""
    err: str
    """Standard error: errors and the log."""

    def __str__(self) -> str:
        return f"exit code {self.code}\n{self.out}{self.err}"


def run_processor(*words: str) -> Said:
    """Raises TimeoutExpired, and ends the process, when it takes too long."""
    done = subprocess.run(
        [sys.executable, "-m", "processor", *words],
        cwd=PROJECT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_S,
        check=False,
    )
    return Said(code=done.returncode, out=done.stdout, err=done.stderr)
