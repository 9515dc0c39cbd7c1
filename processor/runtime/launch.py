"""How a worker process finds the same job and settings as its coordinator, and how all of them are started."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from processor.errors import SettingsError
from processor.ids import WorkerId
from processor.runtime.processes import ProcessPool
from processor.settings.model import Settings
from processor.state.rocksdb_directory import LocalDirectories, default_root

SOCKETS_PATH_BYTES_MAX: Final = 80
"""Of the folder: a name of up to 20 follows, and no system takes more than 103 together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """The arguments of ``processor run`` that a worker needs too; of the environment it has what its parent has."""

    build: str
    """``MODULE:BUILD``."""
    config: tuple[Path, ...] = ()
    assignments: tuple[str, ...] = ()

    def command(self, worker: WorkerId, control_fd: int, sockets: Path) -> Sequence[str]:
        return (
            *(sys.executable, "-m", "processor", "worker", self.build),
            *("--worker", str(worker), "--control-fd", str(control_fd)),
            *("--parent", str(os.getpid()), "--sockets", str(sockets)),
            *(part for file in self.config for part in ("--config", str(file))),
            *(part for assignment in self.assignments for part in ("--set", assignment)),
        )


@contextmanager
def worker_processes(settings: Settings, launch: Launch | None) -> Iterator[ProcessPool]:
    """As many as ``runtime.workers`` says; all have ended afterwards. Raises SettingsError without ``launch``."""
    if launch is None:
        raise SettingsError(
            f"runtime.workers is {settings.runtime.workers}, and a job that is handed over as an object runs in this "
            "process alone.",
            remedy="Run it with 'processor run MODULE:BUILD', or set runtime.workers to 1.",
        )
    # Swept by the next start when this process is killed, as all local directories are. Not in state.directory: the
    # path of a socket must be short.
    directories = LocalDirectories(default_root())
    sockets = directories.make("sockets")
    if len(os.fsencode(sockets)) > SOCKETS_PATH_BYTES_MAX:
        raise SettingsError(
            f"'{sockets}' is too long a path for sockets of workers: it may have {SOCKETS_PATH_BYTES_MAX} bytes.",
            remedy="Set the environment's TMPDIR to a shorter path.",
        )
    sockets.mkdir(mode=0o700)
    pool = ProcessPool(lambda worker, fd: launch.command(worker, fd, sockets), settings.runtime.workers)
    try:
        yield pool
    finally:
        pool.close()
        directories.remove(sockets)
