"""One operating-system process that outlives the program which started it, known by pid *and* start time."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

POLL_INTERVAL_S = 0.05
"""How often a wait looks whether the process is gone."""

KILL_TIMEOUT_S = 10.0
"""How long the kernel may take to remove a process after SIGKILL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """A pid together with the start time of its process.

    A pid alone is recycled: whoever signals a pid read from a file may hit a stranger. No signal is sent
    from here before the start time of the process that has the pid now was compared.
    """

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """The identity of the process that has this pid now; None when there is none (or only a zombie)."""
        started = _start_time(pid)
        return None if started is None else cls(pid=pid, started=started)

    def is_running(self) -> bool:
        """Whether the very process is still there; a paused one is."""
        _reap(self.pid)
        return _start_time(self.pid) == self.started

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal to the process; False when it is no longer there."""
        if not self.is_running():
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True

    def wait_gone(self, timeout_s: float) -> bool:
        """Wait until the process is gone; False when it still runs after `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        while self.is_running():
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_INTERVAL_S)
        return True

    def stop(self, grace_s: float) -> None:
        """SIGTERM, and SIGKILL when it has not ended within `grace_s`. Does nothing if it is gone."""
        if not self.signal(signal.SIGTERM):
            return
        self.signal(signal.SIGCONT)  # a paused process would get the SIGTERM only when it is resumed
        if not self.wait_gone(grace_s):
            self.kill()

    def kill(self) -> None:
        """SIGKILL, and wait until the process is gone. Does nothing if it is gone already."""
        if self.signal(signal.SIGKILL) and not self.wait_gone(KILL_TIMEOUT_S):
            raise TimeoutError(f"process {self.pid} still runs {KILL_TIMEOUT_S} s after SIGKILL")


def spawn(command: Sequence[str], *, log: Path, environment: Mapping[str, str]) -> ProcessIdentity:
    """Start a process in a session of its own, its output appended to `log`, its input empty.

    A session of its own: Ctrl-C in the terminal that started a broker must not stop the broker. Not
    `subprocess.Popen`: that object warns when it is forgotten while its process runs, which is the plan here.
    """
    pid = os.posix_spawn(
        command[0],
        list(command),
        dict(environment),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.fspath(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )
    identity = ProcessIdentity.of(pid)
    if identity is None:
        raise ChildProcessError(f"{command[0]} ended at once; its output is in {log}")
    return identity


def _reap(pid: int) -> None:
    """Collect the process if it is a dead child of ours: until then it counts as there."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return  # not our child, or collected before


def _start_time(pid: int) -> str | None:
    """Start time of a process in the system's words, good for comparing only; None for none or a zombie."""
    proc = Path("/proc")
    if (proc / "self" / "stat").exists():
        try:
            stat = (proc / str(pid) / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return None
        # The second field, the program's name, may hold blanks and brackets: count from the last bracket.
        fields = stat.rpartition(")")[2].split()
        state, start_ticks = fields[0], fields[19]
        if state in "ZX":
            return None
        # Ticks count from the boot: without its id, a pid file from before a reboot could match a stranger.
        boot = (proc / "sys" / "kernel" / "random" / "boot_id").read_text().strip()
        return f"{boot}:{start_ticks}"
    answer = subprocess.run(
        ["ps", "-o", "state=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.strip()
    state, _, started = answer.partition(" ")
    return None if not started or state.startswith("Z") else started.strip()
