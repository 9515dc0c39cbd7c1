"""From a job's name to the running job: what status, savepoint and stop have in common."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from processor.cli.reporting import FELL_SHORT_EXIT_CODE, Reporting
from processor.errors import SettingsError
from processor.ids import JobName

if TYPE_CHECKING:
    from processor.contracts.job_control import Outcome
    from processor.service.control_client import ControlClient
    from processor.settings.model import Settings


def client_of(
    job: str, config: Sequence[Path] | None, assignments: Sequence[str] | None, told: Reporting
) -> ControlClient:
    """The way to a job on this machine. Raises SettingsError without checkpoint.directory."""
    from processor.cli.configured import load_configured

    return client_by(load_configured(config, assignments, told).settings, job)


def client_by(settings: Settings, job: str) -> ControlClient:
    """The same for who has the settings."""
    from processor.service.control_client import ControlClient
    from processor.service.control_place import control_place, control_root

    return ControlClient(control_place(control_root(settings), JobName(job)), JobName(job))


def timeout_ms(text: str) -> int:
    """Of a ``--timeout`` option. Raises SettingsError."""
    from processor.settings.units import parse_duration_ms

    try:
        return parse_duration_ms(text)
    except ValueError as wrong:
        raise SettingsError(f"--timeout: {wrong}.", remedy="Write for example --timeout 5m.") from None


def tell_outcome(what: str, outcome: Outcome) -> None:
    """Print the checkpoint, and the path alone on the last line, or why it was refused."""
    if outcome.refused:
        typer.echo(f"error: {what} was refused: {outcome.refused}", err=True)
        raise typer.Exit(FELL_SHORT_EXIT_CODE)
    if outcome.checkpoint is not None:
        typer.echo(f"{what}: checkpoint {outcome.checkpoint}")
    if outcome.path:
        typer.echo(outcome.path)
