"""A job as a process of its own, to be started, killed and stopped; and how far it has come, by its log."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from processor.errors import SettingsError
from processor.ids import JobName
from processor.protocol.decisions import is_published
from processor.storage.decision_log import DecisionLog
from processor.storage.directory import open_job_directory

PROJECT = Path(__file__).resolve().parents[1]
"""The checkout: jobs are imported from it."""

LOG_TAIL_BYTES = 4_000


class JobProcess:
    """Runs one command again and again; what it says goes to one file."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._command = [sys.executable, *command]
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Of the process that runs, or ran last."""
        assert self._process is not None, "never started"
        return self._process.pid

    def start(self, environment: Mapping[str, str] | None = None) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=PROJECT,
                env={**os.environ, **(environment or {})},
            )

    @property
    def started(self) -> bool:
        """Whether it was ever started."""
        return self._process is not None

    def exit_code(self) -> int | None:
        """None while it runs."""
        return None if self._process is None else self._process.poll()

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None, "never started"
        self._process.send_signal(number)

    def wait(self, timeout_s: float) -> int:
        """Its exit code. Raises TimeoutExpired when it runs on."""
        assert self._process is not None, "never started"
        return self._process.wait(timeout_s)

    def kill(self) -> None:
        """SIGKILL, if it runs; returns when it is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self, timeout_s: float) -> int:
        """SIGTERM: a last checkpoint, and its exit code. SIGKILL and TimeoutExpired when it takes too long."""
        self.signal(signal.SIGTERM)
        try:
            return self.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def said(self) -> str:
        """The end of its log."""
        if not self._log.exists():
            return ""
        return self._log.read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """What the decision log of a job says; zeros before it has one."""

    records_in: int = 0
    """Records before the positions of the newest decided checkpoint; control records count too."""
    checkpoint: int = 0
    attempts: int = 0
    published_by: int = 0
    """The attempt that published last."""
    published: bool = False
    """Whether the newest decided checkpoint is out."""
    positions: Mapping[str, int] = field(default_factory=dict)


def reached(checkpoints: Path, job: str) -> Reached:
    """Look into the checkpoint directory of a job, which may be running."""
    try:
        directory = open_job_directory(checkpoints, JobName(job), token=secrets.token_hex, make=False)
    except SettingsError:
        return Reached()
    return reached_by(DecisionLog(directory.log))


def reached_by(log: DecisionLog) -> Reached:
    """The same by a log, wherever it is."""
    view = log.read_all()
    newest, note = view.newest(), log.published()
    if newest is None:
        return Reached(attempts=view.newest_attempt)
    positions = {
        str(split): position.next
        for subtask in newest.subtasks
        for source in subtask.sources
        for split, position in source.positions.items()
    }
    return Reached(
        records_in=sum(positions.values()),
        checkpoint=newest.checkpoint,
        attempts=view.newest_attempt,
        published_by=0 if note is None else note.attempt,
        published=is_published(newest, note),
        positions=positions,
    )
