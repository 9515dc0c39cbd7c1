"""``processor probe``: whether a job on this machine lives, and whether it is ready; for Kubernetes and the like."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from processor.cli.options import ConfigOption, JobArgument, SetOption
from processor.cli.reporting import FELL_SHORT_EXIT_CODE, reporting

if TYPE_CHECKING:
    from processor.service.health import Health

app = typer.Typer(
    name="probe",
    help="Say whether a job on this machine lives or is ready: exit code 0, or 1 if not.",
    no_args_is_help=True,
)


@app.command("ready")
def ready(job: JobArgument, config: ConfigOption = None, set_: SetOption = None) -> None:
    """Whether the job runs: it has recovered, and its workers are there."""
    with reporting() as told:
        from processor.cli.control import client_of
        from processor.service.control_client import NotRunning
        from processor.service.health import Health, readiness

        try:
            _tell(readiness(client_of(job, config, set_, told).status()))
        except NotRunning as absent:
            _tell(Health(good=False, why=str(absent)))


@app.command("live")
def live(job: JobArgument, config: ConfigOption = None, set_: SetOption = None) -> None:
    """Whether the job's thread turns; one that has not begun to run yet lives. Whoever has started a process sees
    by itself when it has ended."""
    with reporting() as told:
        from processor.cli.configured import load_configured
        from processor.cli.control import client_by
        from processor.service.control_client import NotRunning
        from processor.service.health import Health, liveness

        settings = load_configured(config, set_, told).settings
        try:
            _tell(liveness(client_by(settings, job).status(), settings.runtime.hang_timeout))
        except NotRunning:
            _tell(Health(good=True, why="the job has not begun to run yet"))


def _tell(health: Health) -> None:
    typer.echo(health.why, err=not health.good)
    if not health.good:
        raise typer.Exit(FELL_SHORT_EXIT_CODE)
