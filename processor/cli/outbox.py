"""``processor outbox``: decided output that is not out yet. Works while the job is down (R14, R30)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from processor.cli.options import BuildArgument, ConfigOption, SetOption
from processor.cli.reporting import FELL_SHORT_EXIT_CODE, reporting

if TYPE_CHECKING:
    from processor.runtime.outbox_view import OutboxView

app = typer.Typer(
    name="outbox",
    help="Look at, publish or skip decided output of a job that is down.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

SinkOption = Annotated[str, typer.Option("--sink", metavar="STEP", help="The sink's step.")]
SubtaskOption = Annotated[int, typer.Option("--subtask", metavar="N", help="Its subtask, from 0.", min=0)]


@app.command("list")
def list_(build: BuildArgument, config: ConfigOption = None, set_: SetOption = None) -> None:
    """Compare the newest decided checkpoint with what the sinks' markers say; changes nothing."""
    with reporting() as told:
        from processor.cli.configured import load_configured
        from processor.cli.job_reference import load_graph
        from processor.runtime.outbox_tool import list_outboxes

        settings = load_configured(config, set_, told).settings
        typer.echo(outbox_text(list_outboxes(load_graph(build), settings)))


@app.command()
def publish(build: BuildArgument, config: ConfigOption = None, set_: SetOption = None) -> None:
    """Publish what is decided and not out, also where no marker was found: the operator vouches for that."""
    with reporting() as told:
        from processor.cli.configured import load_configured
        from processor.cli.job_reference import load_graph
        from processor.runtime.outbox_tool import publish_outboxes
        from processor.telemetry.log import get_log

        settings = load_configured(config, set_, told).settings
        graph = load_graph(build)
        left = publish_outboxes(graph, settings, get_log("outbox").bind(job=graph.name))
        typer.echo(outbox_text(left))
        if any(_unpublished(view) for view in left):
            raise typer.Exit(FELL_SHORT_EXIT_CODE)


@app.command()
def skip(
    build: BuildArgument,
    sink: SinkOption,
    subtask: SubtaskOption,
    row: Annotated[
        int | None,
        typer.Option("--row", metavar="N", help="The row, from 1; without it all rows not yet out.", min=1),
    ] = None,
    config: ConfigOption = None,
    set_: SetOption = None,
) -> None:
    """Move a marker past rows that are never to be sent. They are lost, and the log says so."""
    with reporting() as told:
        from processor.cli.configured import load_configured
        from processor.cli.job_reference import load_graph
        from processor.ids import StepName
        from processor.runtime.outbox_tool import skip_row
        from processor.telemetry.log import get_log

        settings = load_configured(config, set_, told).settings
        graph = load_graph(build)
        log = get_log("outbox").bind(job=graph.name)
        view = skip_row(graph, settings, log, sink=StepName(sink), subtask=subtask, row=row)
        typer.echo(outbox_text([view]))


def outbox_text(views: Sequence[OutboxView]) -> str:
    """One line an identity; a sentence when there is nothing."""
    from processor.cli.table import aligned
    from processor.settings.units import size_text

    if not views:
        return "nothing is decided and unpublished"
    rows = [("SINK", "SUBTASK", "CHECKPOINT", "ROWS", "PUBLISHED", "BYTES", "PROBLEM")]
    for view in views:
        rows.append(
            (
                str(view.publisher.sink),
                str(view.publisher.subtask),
                str(view.checkpoint),
                str(view.rows),
                "unknown" if view.rows_published is None else str(view.rows_published),
                size_text(view.bytes),
                view.problem or "-",
            )
        )
    return "\n".join(aligned(rows))


def _unpublished(view: OutboxView) -> bool:
    return view.rows_published is None or view.rows_published < view.rows
