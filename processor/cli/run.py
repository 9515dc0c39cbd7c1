"""``processor run``: the daemon."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from processor.cli.options import BuildArgument, ConfigOption, ParentOption, SetOption, tied_to
from processor.cli.reporting import reporting
from processor.errors import SettingsError

FreshOption = Annotated[
    bool, typer.Option("--fresh", help="Rewind: begin at the sources' start positions with empty state.")
]
OriginOption = Annotated[
    str | None, typer.Option("--from", metavar="DIR", help="Rewind: begin with this savepoint or checkpoint.")
]
ClaimOption = Annotated[
    bool,
    typer.Option(
        "--claim", help="Take the files of --from over instead of copying them: its job cannot go on."
    ),
]
RequestOption = Annotated[
    str | None,
    typer.Option(
        "--request", metavar="NAME", help="Name of the rewind: the same name does not rewind twice."
    ),
]
TakeOverOption = Annotated[
    str | None,
    typer.Option(
        "--take-over", metavar="INCARNATION", help="Go on although the sinks' markers are of this other log."
    ),
]
AcceptDuplicatesOption = Annotated[
    bool, typer.Option("--accept-duplicates", help="Rewind although later output is already published.")
]
DroppedStateOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-dropped-state",
        metavar="STEP",
        help="Forget the state of a step that the job no longer has; may be given several times.",
    ),
]
RenameOption = Annotated[
    list[str] | None,
    typer.Option(
        "--rename",
        metavar="OLD=NEW",
        help="A step that the checkpoint calls OLD, or a state STEP/OLD=STEP/NEW; may be given several times.",
    ),
]
WorkersOption = Annotated[
    int | None,
    typer.Option("--workers", metavar="N", help="Processes that share the job: runtime.workers."),
]

ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Run on the nodes of a Ray cluster, such as ray://host:10001: runtime.cluster.ray.address.",
    ),
]


def run(
    build: BuildArgument,
    config: ConfigOption = None,
    set_: SetOption = None,
    fresh: FreshOption = False,
    origin: OriginOption = None,
    claim: ClaimOption = False,
    request: RequestOption = None,
    take_over: TakeOverOption = None,
    accept_duplicates: AcceptDuplicatesOption = False,
    dropped_state: DroppedStateOption = None,
    rename: RenameOption = None,
    workers: WorkersOption = None,
    cluster: ClusterOption = None,
    parent: ParentOption = None,
) -> None:
    """Run a job until it ends or is stopped, going on from its newest checkpoint."""
    tied_to(parent)
    with reporting() as told:
        _check_rewind(fresh=fresh, origin=origin, claim=claim, request=request)
        from processor.cli.configured import load_configured
        from processor.cli.job_reference import load_graph
        from processor.storage.places import places_of

        assignments = [*(set_ or ()), *_assigned(workers, cluster)]
        settings = load_configured(config, assignments, told).settings
        places_of(settings)  # before the job's code, slow to import perhaps
        graph = load_graph(build)

        from processor.runtime.daemon import run_job
        from processor.runtime.launch import Launch
        from processor.runtime.renaming import read_renamings
        from processor.runtime.start_options import StartOptions
        from processor.settings.cluster import WorkersFrom
        from processor.telemetry.log import get_log

        options = StartOptions(
            fresh=fresh,
            origin=origin,
            claim=claim,
            request=request,
            take_over=take_over,
            accept_duplicates=accept_duplicates,
            dropped_state=frozenset(dropped_state or ()),
            renamed=read_renamings(rename or ()),
        )
        if settings.runtime.cluster.workers is WorkersFrom.RAY:
            from processor.cli.on_ray import run_on_cluster

            raise typer.Exit(run_on_cluster(build, graph.name, settings, options, config or (), assignments))
        launch = Launch(build=build, config=tuple(config or ()), assignments=tuple(assignments))
        code = run_job(graph, settings, options, get_log("runtime").bind(job=graph.name), launch=launch)
        raise typer.Exit(code)


def _assigned(workers: int | None, cluster: str | None) -> Iterator[str]:
    """Settings that have an option of their own."""
    if workers is not None:
        yield f"runtime.workers={workers}"
    if cluster is not None:
        yield "runtime.cluster.workers=ray"
        yield f"runtime.cluster.ray.address={cluster}"


def _check_rewind(*, fresh: bool, origin: str | None, claim: bool, request: str | None) -> None:
    """Raises SettingsError for options that contradict each other, or name what was not asked for."""
    if fresh and origin is not None:
        raise SettingsError("--fresh and --from were both given.", remedy="Give the one that is meant.")
    if claim and origin is None:
        raise SettingsError(
            "--claim was given, and nothing to claim.",
            remedy="Give --from DIR too, the checkpoint directory of the other job.",
        )
    if request is not None and not fresh and origin is None:
        raise SettingsError(
            f"--request '{request}' names a rewind, and none was asked for.",
            remedy="Give --fresh or --from DIR too, or leave --request out.",
        )
