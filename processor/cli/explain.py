"""``processor explain``: how a job would be run."""

from __future__ import annotations

import typer

from processor.cli.options import BuildArgument, ConfigOption, SetOption
from processor.cli.reporting import reporting


def explain(build: BuildArgument, config: ConfigOption = None, set_: SetOption = None) -> None:
    """Show a job's steps, chains, subtasks and state, and run nothing."""
    with reporting() as told:
        from processor.cli.configured import load_configured
        from processor.cli.job_reference import load_graph
        from processor.plan.chaining import plan
        from processor.plan.explain import explain as drawn

        settings = load_configured(config, set_, told).settings
        typer.echo(drawn(plan(load_graph(build), settings.runtime.default_parallelism)))
