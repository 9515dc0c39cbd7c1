"""``processor replay``: a stretch of history once more, with the code of today, into other topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from processor.cli.options import BuildArgument, ConfigOption, SetOption
from processor.cli.reporting import FELL_SHORT_EXIT_CODE, reporting
from processor.cli.run import DroppedStateOption, RenameOption

if TYPE_CHECKING:
    from processor.runtime.replay import Replay, ReplayedSink


OriginOption = Annotated[str, typer.Option("--from", metavar="DIR", help="The savepoint to begin with.")]
UntilOption = Annotated[
    str,
    typer.Option(
        "--until",
        metavar="END",
        help="Where to end: now, a time with its zone, TOPIC/PARTITION=OFFSET with commas between them, or a later "
        "savepoint.",
    ),
]
TopicMapOption = Annotated[
    list[str],
    typer.Option(
        "--topic-map",
        metavar="OUT=OTHER",
        help="Where to write instead; for every topic that the job writes.",
    ),
]
NameOption = Annotated[
    str | None,
    typer.Option("--as", metavar="NAME", help="Name of the replay, a job of its own; JOB-replay by default."),
]
CompareOption = Annotated[
    bool, typer.Option("--compare", help="Then look for the output in what came then, key by key.")
]


def replay(
    build: BuildArgument,
    origin: OriginOption,
    until: UntilOption,
    topic_map: TopicMapOption,
    name: NameOption = None,
    compare: CompareOption = False,
    config: ConfigOption = None,
    set_: SetOption = None,
    dropped_state: DroppedStateOption = None,
    rename: RenameOption = None,
) -> None:
    """Run a job from a savepoint to an end, and write into other topics. The same command goes on where it was
    interrupted. The exit code is 1 when it was stopped before its end, or what was compared differs."""
    with reporting() as told:
        from processor.cli.configured import load_configured
        from processor.cli.job_reference import load_graph
        from processor.cli.replay_until import ends_of, read_until
        from processor.ids import JobName
        from processor.plugins import installed_plugins
        from processor.runtime.daemon import run_job
        from processor.runtime.renaming import read_renamings, renamed
        from processor.runtime.replay import Replay, newest_checkpoint, read_targets
        from processor.runtime.start_options import StartOptions
        from processor.runtime.stretch import Stretch, at_its_end
        from processor.savepoint import open_savepoint
        from processor.telemetry.log import get_log

        settings = load_configured(config, set_, told).settings
        graph = load_graph(build)
        renamings, stores = read_renamings(rename or ()), settings.stores
        began = renamed(open_savepoint(origin, stores=stores).entry, renamings)
        end = read_until(until, stores, renamings)
        again = Replay(graph, settings, read_targets(topic_map), installed_plugins())
        stretch = Stretch(ends_of(again.sources, began, end, again.ends))
        sinks = again.sinks(stretch.reads)
        replaying = JobName(name or f"{graph.name}-replay")
        options = StartOptions(
            origin=origin,
            dropped_state=frozenset(dropped_state or ()),
            renamed=renamings,
        )
        log = get_log("runtime").bind(job=replaying)
        job = stretch.of(graph, replaying)
        code = run_job(job, again.settings, options, log, controlled_by=stretch.controlled_by)
        entry = newest_checkpoint(again.settings, replaying)
        if code or entry is None or not at_its_end(entry, stretch.ends):
            typer.echo("stopped before its end: the same command goes on from there", err=True)
            raise typer.Exit(code or FELL_SHORT_EXIT_CODE)
        typer.echo(f"replayed as '{replaying}'")
        if compare and not _told(again, sinks):
            raise typer.Exit(FELL_SHORT_EXIT_CODE)


def _told(again: Replay, sinks: Sequence[ReplayedSink]) -> bool:
    """Compare what every sink wrote, and say so; whether all is as it was."""
    same = True
    for sink in sinks:
        found = again.compare(sink)
        same = same and not found.different
        typer.echo(
            f"{sink.step.name}: {found.records} records again, {found.keys} keys, {found.different} not as then"
        )
        for each in found.shown:
            typer.echo(f"  {each}")
    return same
