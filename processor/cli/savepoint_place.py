"""A savepoint as a command line names it: a path, or a URI that settings say how to reach."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from processor.cli.reporting import Reporting
    from processor.savepoint import Savepoint
    from processor.settings.stores import StoreSettings


def reach(config: Sequence[Path] | None, assignments: Sequence[str] | None, told: Reporting) -> StoreSettings:
    """How stores are reached. Raises SettingsError."""
    from processor.cli.configured import load_configured

    return load_configured(config, assignments, told).settings.stores


def savepoint_at(
    path: str, config: Sequence[Path] | None, assignments: Sequence[str] | None, told: Reporting
) -> Savepoint:
    """Open it. Raises SettingsError, JobError, DamagedFile, Unavailable."""
    from processor.savepoint import open_savepoint

    return open_savepoint(path, stores=reach(config, assignments, told))
