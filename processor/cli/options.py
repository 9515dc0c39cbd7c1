"""Options and arguments that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class SavepointFormat(StrEnum):
    """How a savepoint holds state."""

    CANONICAL = "canonical"
    NATIVE = "native"


ConfigOption = Annotated[
    list[Path] | None,
    typer.Option("--config", "-c", metavar="FILE", help="A YAML file of settings; later ones win."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", "-s", metavar="SECTION.FIELD=VALUE", help="One setting; wins over files and environment."
    ),
]
JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="The job's name.")]
BuildArgument = Annotated[
    str,
    typer.Argument(
        metavar="MODULE:BUILD", help="The function that builds the job, such as word_count:build."
    ),
]
ParentOption = Annotated[
    int | None,
    typer.Option("--parent", hidden=True, help="Number of the process that this one is not to outlive."),
]
FormatOption = Annotated[
    SavepointFormat,
    typer.Option(
        "--format",
        help="canonical: Avro, which any release, backend and Avro tool reads, and which is kept readable. native: "
        "copies of the backend's own files; sooner done.",
    ),
]
TimeoutOption = Annotated[
    str, typer.Option("--timeout", metavar="DURATION", help="How long to wait for the answer, such as 5m.")
]


def tied_to(parent: int | None) -> None:
    """End when that process ends; with None, never."""
    if parent is not None:
        from processor.runtime.parent_death import die_with_parent

        die_with_parent(parent)
