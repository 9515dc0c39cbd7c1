"""``processor savepoint``: checkpoints that stay, in directories of one's own; taken, and looked into."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from processor.cli.options import (
    ConfigOption,
    FormatOption,
    JobArgument,
    SavepointFormat,
    SetOption,
    TimeoutOption,
)
from processor.cli.reporting import FELL_SHORT_EXIT_CODE, reporting


class ExportFormat(StrEnum):
    """Of the file; the room of savepoints has the same, and is only loaded when it is used."""

    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


app = typer.Typer(
    name="savepoint",
    help="Take savepoints of a job, and look into them without it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

PathArgument = Annotated[
    str, typer.Argument(metavar="PATH", help="A savepoint, or what is kept for a job: a path or URI.")
]
StepArgument = Annotated[str, typer.Argument(metavar="STEP", help="The step that keeps the state.")]
StateArgument = Annotated[str, typer.Argument(metavar="STATE", help="The name of the state.")]
LimitOption = Annotated[
    int | None, typer.Option("--limit", min=1, metavar="N", help="So many, and no more; all when left out.")
]


@app.command()
def take(
    job: JobArgument,
    to: Annotated[str, typer.Option("--to", metavar="DIR", help="Where to make it: a directory, or a URI.")],
    config: ConfigOption = None,
    set_: SetOption = None,
    timeout: TimeoutOption = "10m",
    format: FormatOption = SavepointFormat.CANONICAL,
) -> None:
    """Have a running job write a savepoint, and go on. Its path is printed last."""
    with reporting() as told:
        from processor.cli.control import client_of, tell_outcome, timeout_ms
        from processor.storage.savepoint_places import place_named

        wait_ms = timeout_ms(timeout)
        native = format is SavepointFormat.NATIVE
        outcome = client_of(job, config, set_, told).savepoint(place_named(to), wait_ms, native=native)
        tell_outcome("savepoint", outcome)


@app.command("list")
def list_(
    directory: Annotated[
        str, typer.Argument(metavar="DIR", help="Where savepoints lie beside each other: a path or URI.")
    ],
    config: ConfigOption = None,
    set_: SetOption = None,
) -> None:
    """The savepoints in a directory, or right below a URI, oldest first."""
    with reporting() as told:
        from processor.cli.savepoint_place import reach
        from processor.cli.savepoint_text import list_text

        typer.echo(list_text(directory, reach(config, set_, told)))


@app.command()
def show(path: PathArgument, config: ConfigOption = None, set_: SetOption = None) -> None:
    """What it holds: its job, states with how many keys and timers, positions, files."""
    with reporting() as told:
        from processor.cli.savepoint_place import savepoint_at
        from processor.cli.savepoint_text import contents_text

        typer.echo(contents_text(savepoint_at(path, config, set_, told)))


@app.command()
def read(
    path: PathArgument,
    step: StepArgument,
    state: StateArgument,
    limit: LimitOption = None,
    config: ConfigOption = None,
    set_: SetOption = None,
) -> None:
    """The values of one state, a JSON object with key and value a line."""
    with reporting() as told:
        from itertools import islice

        from processor.cli.savepoint_place import savepoint_at
        from processor.cli.savepoint_text import value_line

        for key, value in islice(savepoint_at(path, config, set_, told).read(step, state), limit):
            typer.echo(value_line(key, value))


@app.command()
def diff(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="The one to compare with.")],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="The one that is compared.")],
    step: StepArgument,
    state: StateArgument,
    limit: LimitOption = None,
    config: ConfigOption = None,
    set_: SetOption = None,
) -> None:
    """Keys of one state whose values differ, a JSON object a line. The exit code is 1 when there are any."""
    with reporting() as told:
        from itertools import islice

        from processor.cli.savepoint_place import savepoint_at
        from processor.cli.savepoint_text import changed_line
        from processor.savepoint import difference

        found = False
        one, other = (savepoint_at(path, config, set_, told) for path in (before, after))
        for changed in islice(difference(one, other, step, state), limit):
            found = True
            typer.echo(changed_line(changed))
        if found:
            raise typer.Exit(FELL_SHORT_EXIT_CODE)


@app.command()
def export(
    path: PathArgument,
    step: StepArgument,
    state: StateArgument,
    to: Annotated[str, typer.Option("--to", metavar="FILE", help="The file to write; it must not exist.")],
    format: Annotated[
        ExportFormat, typer.Option("--format", help="JSON lines, CSV, or Parquet (which needs pyarrow).")
    ] = ExportFormat.JSON,
    config: ConfigOption = None,
    set_: SetOption = None,
) -> None:
    """Write all entries of one state into a file for other tools."""
    with reporting() as told:
        from processor.cli.savepoint_place import savepoint_at
        from processor.cli.savepoint_text import new_file
        from processor.savepoint import ExportFormat as Form
        from processor.savepoint import export

        savepoint = savepoint_at(path, config, set_, told)
        savepoint.table(step, state)
        with new_file(to) as file:
            rows = export(savepoint, step, state, Form(format.value), file)
        typer.echo(f"{rows:,} entries")


@app.command()
def rewrite(
    path: PathArgument,
    to: Annotated[str, typer.Option("--to", metavar="DIR", help="Where to make it: a directory, or a URI.")],
    drop: Annotated[
        list[str] | None,
        typer.Option("--drop", metavar="STEP[/STATE]", help="Leave it out; may be given several times."),
    ] = None,
    config: ConfigOption = None,
    set_: SetOption = None,
) -> None:
    """Write a canonical savepoint with what another savepoint or checkpoint has, whatever its format.

    Values are changed by programs: processor.savepoint.rewrite_savepoint.
    """
    with reporting() as told:
        from processor.cli.savepoint_place import reach
        from processor.savepoint import open_savepoint, rewrite_savepoint
        from processor.storage.savepoint_places import place_named

        stores, place = reach(config, set_, told), place_named(to)
        with typer.progressbar(
            length=0, label="entries", file=typer.get_text_stream("stderr"), show_pos=True
        ) as bar:
            savepoint = open_savepoint(path, stores=stores)
            rewrite_savepoint(savepoint, place, drop=drop or (), written=bar.update, stores=stores)
        typer.echo(place)


@app.command()
def verify(path: PathArgument, config: ConfigOption = None, set_: SetOption = None) -> None:
    """Read every file and compare it with what was written. The exit code is 1 when any is damaged."""
    with reporting() as told:
        from processor.cli.savepoint_place import savepoint_at
        from processor.cli.savepoint_text import verified_text
        from processor.savepoint import verify_files

        savepoint = savepoint_at(path, config, set_, told)
        files = len(savepoint.entry.files())
        with typer.progressbar(length=files, label="verifying", file=typer.get_text_stream("stderr")) as bar:
            verified = verify_files(savepoint, lambda _: bar.update(1))
        typer.echo(verified_text(path, verified))
        if verified.damage:
            raise typer.Exit(FELL_SHORT_EXIT_CODE)
