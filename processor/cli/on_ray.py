"""``processor run --cluster``: the same command, for processes on the nodes of a Ray cluster."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from processor.ids import JobName
    from processor.runtime.start_options import StartOptions
    from processor.settings.model import Settings


def run_on_cluster(
    build: str,
    job: JobName,
    settings: Settings,
    options: StartOptions,
    config: Sequence[Path],
    assignments: Sequence[str],
) -> int:
    """The exit code of the job. Raises what is wrong with the cluster, and with what it is to be given."""
    from processor.runtime.cluster.ray.driver import run_on_ray
    from processor.runtime.cluster.ray.shipped import Shipped, shipped_config, shipped_environment
    from processor.telemetry.log import get_log

    shipped = Shipped(
        build=build,
        start=tuple(start_words(options)),
        config=shipped_config(config, settings.runtime.cluster.ray.working_directory),
        assignments=tuple(assignments),
        environment=shipped_environment(os.environ),
    )
    return run_on_ray(shipped, settings, get_log("cluster").bind(job=job))


def start_words(options: StartOptions) -> list[str]:
    """The words of ``processor run`` that mean these options. A coordinator in the place of another is given them
    again: a rewind is done once (R3)."""
    words = []
    if options.fresh:
        words.append("--fresh")
    for word, value in (
        ("--from", options.origin),
        ("--request", options.request),
        ("--take-over", options.take_over),
    ):
        if value is not None:
            words += [word, value]
    if options.claim:
        words.append("--claim")
    if options.accept_duplicates:
        words.append("--accept-duplicates")
    for step in sorted(options.dropped_state):
        words += ["--allow-dropped-state", step]
    for renaming in options.renamed:
        words += ["--rename", f"{renaming.old}={renaming.new}"]
    return words
