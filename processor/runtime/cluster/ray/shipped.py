"""With what a process of the job is started on another machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from processor.errors import SettingsError
from processor.settings.sources import ENVIRONMENT_PREFIX

NOT_THE_DRIVERS: Final = ("--set", "runtime.cluster.workers=joining")
"""What makes a coordinator or a worker of what would be another driver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipped:
    """The job and its settings, as both ends of a cluster name them. Paths are relative to a copy of the working
    directory."""

    build: str
    """``MODULE:BUILD``."""
    start: tuple[str, ...]
    """Further words of ``processor run``, such as where to begin."""
    config: tuple[str, ...]
    assignments: tuple[str, ...]
    environment: Mapping[str, str]
    """Settings of the driver's environment."""

    def coordinator(self, listen: str) -> list[str]:
        """Words of ``processor`` for the process that decides. ``listen``: where it waits for workers."""
        return [
            "run",
            self.build,
            *self.start,
            *self._settings(),
            "--set",
            f"runtime.cluster.listen={listen}",
        ]

    def worker(self, coordinator: str) -> list[str]:
        """Words of ``processor`` for one that steps. ``coordinator``: where the other one listens."""
        return ["worker", self.build, "--coordinator", coordinator, *self._settings()]

    def _settings(self) -> list[str]:
        return [
            *(word for file in self.config for word in ("--config", file)),
            *(word for assignment in self.assignments for word in ("--set", assignment)),
            *NOT_THE_DRIVERS,
        ]


def shipped_config(files: Sequence[Path], working_directory: Path) -> tuple[str, ...]:
    """Paths of files of settings in a copy of the working directory. Raises SettingsError for one outside of it."""
    root = working_directory.resolve()
    found = []
    for file in files:
        path = file.resolve()
        if not path.is_relative_to(root):
            raise SettingsError(
                f"--config {file} is not in {root}, of which the nodes get a copy.",
                remedy="Move it there, or set runtime.cluster.ray.working_directory to a folder that holds it and "
                "the job's module.",
            )
        found.append(str(path.relative_to(root)))
    return tuple(found)


def shipped_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What of an environment are settings of the processor."""
    return {name: value for name, value in environ.items() if name.upper().startswith(ENVIRONMENT_PREFIX)}
