"""``processor verify``: holds a job's output against a plain recomputation from its input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from processor.cli.options import BuildArgument, ConfigOption, SetOption
from processor.cli.reporting import FELL_SHORT_EXIT_CODE, reporting

if TYPE_CHECKING:
    from processor.audit.expectation import Audit
    from processor.audit.report import AuditReport
    from processor.audit.verify import Witness
    from processor.contracts.topic_reader import TopicReader
    from processor.plan.graph import JobGraph, Step
    from processor.settings.model import Settings


def verify(
    build: BuildArgument,
    config: ConfigOption = None,
    set_: SetOption = None,
    passes_through: Annotated[
        bool,
        typer.Option("--pass-through", help="Whatever the job names: every record comes out as it went in."),
    ] = False,
    running: Annotated[
        bool,
        typer.Option("--running", help="The job runs: output beyond its newest checkpoint is right."),
    ] = False,
) -> None:
    """Recompute a job's output from its input, and look at every invariant of exactly-once."""
    with reporting() as told:
        from processor.audit.expectation import pass_through
        from processor.cli.configured import load_configured
        from processor.cli.job_reference import load_graph

        settings = load_configured(config, set_, told).settings
        graph = load_graph(build)
        audit = pass_through() if passes_through else None
        report = audit_job(graph, settings, audit=audit, running=running)
        typer.echo(report.text())
        if not report.passed:
            raise typer.Exit(FELL_SHORT_EXIT_CODE)


def audit_job(
    graph: JobGraph,
    settings: Settings,
    *,
    audit: Audit | None = None,
    running: bool = False,
    witness: Witness | None = None,
) -> AuditReport:
    """Gather the evidence about a job and look at it.

    ``audit`` stands in for the one that the job names; ``witness`` is somebody who was there all the time.
    Raises SettingsError, JobError: what is missing.
    """
    import secrets

    from processor.audit.several_inputs import SeveralInputs
    from processor.audit.verify import Evidence
    from processor.audit.verify import verify as look
    from processor.storage.decision_log import DecisionLog
    from processor.storage.job_store import open_job_store
    from processor.storage.places import places_of

    audit = audit or _audit_of(graph)
    sources = _steps(graph, "source", audit.source)
    sink = _only(graph, "sink", _steps(graph, "sink", audit.sink))
    where = places_of(settings)
    store = open_job_store(where, graph.name, token=secrets.token_hex, make=False)
    log = DecisionLog(store.log)
    view = log.read_all()
    seal = view.newest_seal()
    targets = [record.targets for record in (seal.sinks if seal else ()) if record.sink == sink.name]
    with ExitStack() as opened:
        outputs = opened.enter_context(_reader(settings.plugins, sink.sink))
        readers = {
            source.name: opened.enter_context(_reader(settings.plugins, source.source)) for source in sources
        }
        inputs = SeveralInputs(readers, view) if len(readers) > 1 else readers[sources[0].name]
        return look(
            Evidence(
                job=graph.name,
                audit=audit,
                log=view,
                published=log.published(),
                files=store.files,
                inputs=inputs,
                outputs=outputs,
                targets=tuple(sorted({topic for target in targets for topic in target})),
                retained=settings.checkpoint.retained,
                running=running,
                witness=witness,
            )
        )


def _audit_of(graph: JobGraph) -> Audit:
    from processor.audit.expectation import Audit
    from processor.errors import JobError

    if graph.audit is None:
        raise JobError(
            f"job '{graph.name}' names no audit, so nobody knows what its output must be.",
            remedy="Name one by job.audit(keyed_count(...)) or job.audit(pass_through(...)), of "
            "processor.audit; or give --pass-through for a job that changes nothing.",
        )
    audit = graph.audit
    if not isinstance(audit, Audit):
        raise JobError(
            f"the audit of job '{graph.name}' is a {type(audit).__name__}.",
            remedy="Give what keyed_count() or pass_through() of processor.audit returns.",
        )
    return audit


def _steps(graph: JobGraph, what: str, name: str | None) -> Sequence[Step]:
    """The step that the audit names; without a name, all of its kind."""
    from processor.errors import JobError

    steps = [step for step in graph.steps.values() if getattr(step, what) is not None]
    chosen = [step for step in steps if name is None or step.name == name]
    if not chosen:
        raise JobError(
            f"the audit of job '{graph.name}' names {what} '{name}'; there are {_listed(steps)}.",
            remedy=f"Name one by {what}=... in the audit.",
        )
    return chosen


def _only(graph: JobGraph, what: str, steps: Sequence[Step]) -> Step:
    from processor.errors import JobError

    if len(steps) > 1:
        raise JobError(
            f"the audit of job '{graph.name}' does not say which {what} it is about; there are "
            f"{_listed(steps)}.",
            remedy=f"Name one by {what}=... in the audit.",
        )
    return steps[0]


def _listed(steps: Sequence[Step]) -> str:
    return ", ".join(f"'{step.name}'" for step in steps)


@contextmanager
def _reader(sections: Mapping[str, Any], endpoint: object) -> Iterator[TopicReader]:
    """A reader of what a source reads or a sink writes, from the plugin that knows it."""
    from processor.errors import JobError
    from processor.plugins import installed_plugins

    plugins = installed_plugins()
    for name in plugins.names:
        reader = plugins.get(name).topic_reader(sections[name], endpoint)
        if reader is not None:
            try:
                yield reader
            finally:
                reader.close()
            return
    raise JobError(
        f"no installed plugin can read what {type(endpoint).__name__} reads or writes.",
        remedy="Verify jobs from and to systems whose plugin has a topic reader, such as Kafka.",
    )
