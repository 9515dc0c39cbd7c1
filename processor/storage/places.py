"""Where the checkpoints of all jobs are, by the settings."""

from __future__ import annotations

from dataclasses import dataclass

from processor.errors import SettingsError
from processor.settings.location import Location
from processor.settings.model import Settings
from processor.settings.stores import StoreSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where files and log of all jobs are, as settings say."""

    files: Location
    log: Location
    stores: StoreSettings


def places_of(settings: Settings) -> Places:
    """Raises SettingsError when nobody said where."""
    checkpoint = settings.checkpoint
    if checkpoint.directory is None:
        raise SettingsError(
            "checkpoint.directory is not set: nobody knows where the checkpoints are.",
            remedy="Set it in a --config file, as PROCESSOR__CHECKPOINT__DIRECTORY, or with "
            "--set checkpoint.directory=PATH.",
        )
    return Places(
        files=checkpoint.directory,
        log=checkpoint.log_directory or checkpoint.directory,
        stores=settings.stores,
    )
