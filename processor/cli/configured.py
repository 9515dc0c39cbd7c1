"""Settings for a command: from its options, the environment, and the sections of the installed plugins."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from processor.cli.reporting import Reporting
    from processor.settings.loading import LoadedSettings


def load_configured(
    config: Sequence[Path] | None, assignments: Sequence[str] | None, told: Reporting
) -> LoadedSettings:
    """Load the settings and set logging up by them. Raises SettingsError."""
    from processor.plugins import installed_plugins
    from processor.settings.loading import load_settings
    from processor.settings.model import LogLevel
    from processor.telemetry.log import configure_logging

    loaded = load_settings(
        plugins=installed_plugins().settings_models(),
        files=config or (),
        environ=os.environ,
        assignments=assignments or (),
    )
    told.debug = loaded.settings.log.level is LogLevel.DEBUG
    configure_logging(loaded.settings.log)
    return loaded
