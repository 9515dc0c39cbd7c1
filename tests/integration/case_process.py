"""Runs a job of the simulation against a real broker, in a process of its own.

    python -m tests.integration.case_process NAME SEED SHAPE ORIGIN [SECTION.FIELD=VALUE …]

SHAPE is how its steps are laid out, such as memory-3-apart; ORIGIN is a savepoint to start from. A hyphen: none.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

from processor.cli.reporting import reporting
from processor.plugins import installed_plugins
from processor.runtime.daemon import run_job
from processor.runtime.start_options import StartOptions
from processor.settings.loading import load_settings
from processor.telemetry.log import configure_logging, get_log
from tests.integration.simulated_jobs import case_of
from tests.simulation.shape import Shape, laid_out

NONE = "-"


def main(arguments: Sequence[str]) -> int:
    name, seed, shape, origin, *assignments = arguments
    try:
        with reporting():
            settings = load_settings(
                plugins=installed_plugins().settings_models(), environ={}, assignments=assignments
            ).settings
            configure_logging(settings.log)
            graph = case_of(name, int(seed)).graph
            if shape != NONE:
                graph = laid_out(graph, Shape.parse(shape))
            options = StartOptions(origin=None if origin == NONE else origin)
            return run_job(graph, settings, options, get_log("runtime").bind(job=graph.name))
    except typer.Exit as ended:
        return ended.exit_code


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
