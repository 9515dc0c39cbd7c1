"""What an operator does about decided output while the job is down: look, publish, skip (R14, R30).

Publishing and skipping seal the log like any attempt, so a job that runs after all is fenced and stops.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from processor.errors import Fenced, JobError, LogConflict
from processor.fault_points import no_faults
from processor.ids import Attempt, Marker, PublisherId, StepName
from processor.plan.chaining import plan as lay_out
from processor.plan.graph import JobGraph
from processor.protocol.decisions import LogView, expected_of, is_published
from processor.protocol.entries import CheckpointEntry, Published, Seal, SinkRecord
from processor.protocol.messages import Publication
from processor.protocol.publishing import Wanted
from processor.runtime.entry_writer import EntryWriter
from processor.runtime.outbox_view import OutboxView
from processor.runtime.publishers import Publishers
from processor.runtime.system import SystemChance, SystemClock
from processor.runtime.threads import ThreadedExecutor
from processor.settings.model import Settings
from processor.storage.decision_log import DecisionLog, Taken
from processor.storage.directory import JobStore
from processor.storage.job_store import open_job_store
from processor.storage.outbox_files import OutboxFiles
from processor.storage.places import places_of
from processor.task.publication import PublishTools, Settlement, publish
from processor.telemetry.log import Log
from processor.telemetry.metrics import Metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tool:
    """The job's log and publishers, opened while it is down."""

    graph: JobGraph
    settings: Settings
    store: JobStore
    log: DecisionLog
    publishers: Publishers
    entries: EntryWriter
    tools: PublishTools
    places: tuple[SinkRecord, ...]
    """Where the job's sinks publish as things are now."""

    def newest(self, view: LogView) -> CheckpointEntry | None:
        """The newest decided checkpoint, if anything of it may not be out."""
        entry = view.newest()
        if entry is None or is_published(entry, self.log.published()):
            return None
        return entry

    def view_of(self, entry: CheckpointEntry) -> list[OutboxView]:
        expected = expected_of(entry)
        return [
            _outbox_view(entry, publisher, expected.get(publisher), self.publishers.of(publisher).look())
            for publisher in entry.outboxes()
        ]

    def marker_topics_anew(self, view: LogView) -> bool:
        """Whether a marker topic is another than the one that the job has published with (R15)."""
        before = view.newest_seal()
        return before is not None and self._sinks_now(before) != before.sinks

    def seal(self, view: LogView) -> Seal:
        """Like the first act of an attempt (R1). It names marker topics as they are now: whoever settles what is
        decided vouches for them (R14). Raises Fenced when somebody else takes the place."""
        before = view.newest_seal()
        if before is None or view.incarnation is None:
            raise JobError(f"job '{self.graph.name}' has never run with this checkpoint directory.")
        seal = Seal(
            place=view.next_place,
            attempt=Attempt(view.newest_attempt + 1),
            nonce="",
            incarnation=view.incarnation,
            job=self.graph.name,
            sinks=self._sinks_now(before),
        )
        if not isinstance(self.entries.take(seal), Taken):
            raise Fenced(
                f"job '{self.graph.name}' runs: it has just written to its decision log.",
                remedy="Stop it first, with 'processor stop'.",
            )
        return seal

    def _sinks_now(self, before: Seal) -> tuple[SinkRecord, ...]:
        """The sinks of a seal with today's marker topics. Raises LogConflict when one is on another cluster."""
        now = {place.sink: place for place in self.places}
        for sink in before.sinks:
            if sink.sink in now and now[sink.sink].cluster != sink.cluster:
                raise LogConflict(
                    f"sink '{sink.sink}' has published on cluster {sink.cluster}; the settings lead to cluster "
                    f"{now[sink.sink].cluster}.",
                    remedy="Give the settings that the job runs with.",
                )
        return tuple(
            replace(sink, marker_store=now[sink.sink].marker_store) if sink.sink in now else sink
            for sink in before.sinks
        )

    def publish(self, entry: CheckpointEntry, seal: Seal, settlements: dict[PublisherId, Settlement]) -> None:
        """Publish the outboxes of the identities given, each by what the operator has decided."""
        expected = expected_of(entry)
        for publisher, outboxes in entry.outboxes().items():
            settlement = settlements.get(publisher)
            if settlement is None:
                continue
            publication = Publication(publisher=publisher, outboxes=outboxes, expected=expected[publisher])
            wanted = Wanted(
                incarnation=seal.incarnation,
                attempt=seal.attempt,
                checkpoint=entry.checkpoint,
                rows=publication.rows,
            )
            publish(self.publishers.of(publisher), publication, wanted, self.tools, settlement)

    def record_if_out(self, entry: CheckpointEntry, seal: Seal) -> list[OutboxView]:
        """Record the checkpoint as published once every identity's marker says so."""
        views = self.view_of(entry)
        if all(view.rows_published == view.rows for view in views):
            self.log.record_published(
                Published(incarnation=seal.incarnation, attempt=seal.attempt, checkpoint=entry.checkpoint)
            )
        return views


def list_outboxes(graph: JobGraph, settings: Settings) -> list[OutboxView]:
    """Identities with decided output that may not be out; empty when everything is. Changes nothing."""
    with _opened(graph, settings) as tool:
        entry = tool.newest(tool.log.read_all())
        return [] if entry is None else tool.view_of(entry)


def publish_outboxes(graph: JobGraph, settings: Settings, log: Log) -> list[OutboxView]:
    """Publish what is decided, also where no marker is found: the operator vouches that nothing is out. With that
    a marker topic that was made anew is settled too, even if nothing is left to publish (R14, R15).

    Returns what ``list_outboxes`` shows afterwards. Raises Fenced, LogConflict, PublishRefused, Unavailable.
    """
    with _opened(graph, settings) as tool:
        view = tool.log.read_all()
        entry = tool.newest(view)
        if entry is None:
            if tool.marker_topics_anew(view):
                tool.seal(view)
                log.info("nothing is decided and unpublished; the job goes on with the new marker topic")
            return []
        seal = tool.seal(view)
        vouched = Settlement(vouched=True)
        tool.publish(entry, seal, dict.fromkeys(entry.outboxes(), vouched))
        log.info("published what was decided", checkpoint=entry.checkpoint)
        return tool.record_if_out(entry, seal)


def skip_row(
    graph: JobGraph, settings: Settings, log: Log, *, sink: StepName, subtask: int, row: int | None
) -> OutboxView:
    """Move the marker of one identity past a row (from 1), or, with None, past all rows that are not out.

    Rows before and after a single row are published. Raises like ``publish_outboxes``; JobError when there
    is no such identity or row.
    """
    with _opened(graph, settings) as tool:
        view = tool.log.read_all()
        entry = tool.newest(view)
        publisher = PublisherId(graph.name, sink, subtask)
        outboxes = {} if entry is None else entry.outboxes()
        if entry is None or publisher not in outboxes:
            raise JobError(
                f"sink '{sink}' subtask {subtask} has no decided output that is not out.",
                remedy="See 'processor outbox list'.",
            )
        rows = sum(outbox.rows for outbox in outboxes[publisher])
        if row is not None and not 1 <= row <= rows:
            raise JobError(f"there is no row {row}: the outbox has rows 1 to {rows}.")
        seal = tool.seal(view)
        left_out = range(rows) if row is None else range(row - 1, row)
        tool.publish(entry, seal, {publisher: Settlement(vouched=True, leave_out=left_out)})
        log.warning(
            "left rows out for good",
            sink=sink,
            subtask=subtask,
            checkpoint=entry.checkpoint,
            rows="all that were not out" if row is None else row,
        )
        views = tool.record_if_out(entry, seal)
        return next(found for found in views if found.publisher == publisher)


def _outbox_view(
    entry: CheckpointEntry, publisher: PublisherId, expected: Marker | None, seen: Marker | None
) -> OutboxView:
    outboxes = entry.outboxes()[publisher]
    published: int | None = None
    problem = ""
    if seen is None:
        problem = "no marker is there: it can't be known whether it is out"
    elif seen.incarnation != entry.incarnation:
        problem = f"the marker is of another decision log: {seen}"
    elif seen.checkpoint == entry.checkpoint:
        published = seen.rows
    elif expected is not None and seen.checkpoint == expected.checkpoint:
        published = 0
    else:
        problem = f"the marker does not fit: {seen}"
    return OutboxView(
        publisher=publisher,
        checkpoint=entry.checkpoint,
        rows=sum(outbox.rows for outbox in outboxes),
        rows_published=published,
        bytes=sum(outbox.file.bytes for outbox in outboxes),
        problem=problem,
    )


@contextmanager
def _opened(graph: JobGraph, settings: Settings) -> Iterator[_Tool]:
    chance, clock = SystemChance(), SystemClock()
    plan = lay_out(graph, settings.runtime.default_parallelism)
    where = places_of(settings)
    store = open_job_store(where, graph.name, token=chance.token, make=False)
    log = DecisionLog(store.log)
    with ExitStack() as closing:
        executor = ThreadedExecutor()
        closing.callback(executor.close)
        publishers = Publishers(
            plan, settings=settings.plugins, clock=clock, metrics=Metrics(), faults=no_faults
        )
        closing.callback(publishers.close)
        places = publishers.check()
        for entry in log.read_all().entries:
            if isinstance(entry, Seal):
                publishers.remember(entry.sinks)
        tools = PublishTools(
            outboxes=OutboxFiles(store.files),
            sealed=lambda attempt: log.read_all().sealed(attempt),
            timeout_ms=settings.checkpoint.publish_timeout,
            clock=clock,
            pause=executor.pause,
            faults=no_faults,
        )
        yield _Tool(
            graph=graph,
            settings=settings,
            store=store,
            log=log,
            publishers=publishers,
            entries=EntryWriter(
                log=log,
                chance=chance,
                clock=clock,
                pause=executor.pause,
                timeout_ms=settings.checkpoint.decision_timeout,
            ),
            tools=tools,
            places=places,
        )
