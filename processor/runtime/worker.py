"""Steps the subtasks of one process, and publishes what its sinks have decided. One class in every runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from processor.contracts.clock import Clock
from processor.contracts.executor import Executor
from processor.errors import Unavailable
from processor.ids import NO_CHECKPOINT, Attempt, CheckpointId, Incarnation, Marker, PublisherId
from processor.protocol.messages import (
    AbortCheckpoint,
    AllRunning,
    CheckpointDecided,
    HoldSources,
    InjectBarrier,
    Order,
    Publication,
    PublicationDone,
    PublicationUnanswered,
    RefreshMarkers,
    Report,
    SubtaskRunning,
)
from processor.protocol.publishing import Wanted
from processor.runtime.author_exit import author_exit
from processor.runtime.publishers import Publishers
from processor.task.publication import PublishTools, publish, refresh_identity
from processor.task.subtask import Subtask

TICK_MS = 5
"""How often whoever turns coordinator or worker tells it that time has passed."""

RUNNING_AGAIN_MS = 1_000
"""Between two reports that the subtasks run, until the coordinator says that it knows."""


def idle_ms(longest_ms: int, due_ms: int | None, clock: Clock) -> int:
    """How long whoever has nothing to do may wait; ``due_ms``: when a processing-time timer is due."""
    return longest_ms if due_ms is None else min(longest_ms, max(1, due_ms - clock.wall_ms()))


class Worker:
    """Runs in one thread; background work comes back through the executor's ``deliver``."""

    def __init__(
        self,
        *,
        attempt: Attempt,
        incarnation: Incarnation,
        subtasks: Sequence[Subtask],
        publishes: Callable[[PublisherId], bool],
        publishers: Publishers,
        publish_tools: PublishTools,
        executor: Executor,
        report: Callable[[Report], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        """``subtasks``: producers before consumers. ``publishes``: whether an identity's output goes out here.
        ``failed`` hears of errors in background work."""
        self._attempt = attempt
        self._incarnation = incarnation
        self._subtasks = tuple(subtasks)
        self._here = frozenset(subtask.id for subtask in subtasks)
        self._publishes = publishes
        self._publishers = publishers
        self._tools = publish_tools
        self._executor = executor
        self._report = report
        self._failed = failed
        self._newest: dict[PublisherId, CheckpointId] = {}
        """The newest checkpoint that each identity was told to publish."""
        self._held_until = self._settled = NO_CHECKPOINT
        """Sources hold still for somebody elsewhere until this checkpoint, and the newest that was decided or given
        up, as far as is known here."""
        self._known_to_run = False
        self._running_again_ms: int | None = None

    def start(self) -> None:
        """All subtasks are there."""
        for subtask in self._subtasks:
            self._report(SubtaskRunning(attempt=self._attempt, subtask=subtask.id))

    def tick(self, now_ms: int) -> None:
        """Time has passed: say again what nobody has heard. ``now_ms`` is monotonic."""
        if self._known_to_run:
            return
        if self._running_again_ms is not None and now_ms >= self._running_again_ms:
            self.start()
            self._running_again_ms = None
        if self._running_again_ms is None:
            self._running_again_ms = now_ms + RUNNING_AGAIN_MS

    def step(self) -> bool:
        """One turn over all subtasks; True when any did anything."""
        # One full outbox or cache holds all sources: the checkpoint that empties it needs their barriers (R9).
        pressed = self._held_until > self._settled
        for subtask in self._subtasks:
            pressed = subtask.pressed() or pressed
        worked = False
        for subtask in self._subtasks:
            try:
                for _ in range(subtask.intake.elements_per_turn):
                    if not subtask.step(pressed=pressed):
                        break
                    worked = True
            except SystemExit as error:
                raise author_exit(subtask.id, error) from error
        return worked

    def next_processing_time_ms(self) -> int | None:
        """When the next processing-time timer of any subtask is due."""
        times = [subtask.next_processing_time_ms() for subtask in self._subtasks]
        return min((time_ms for time_ms in times if time_ms is not None), default=None)

    def handle(self, order: Order) -> None:
        if order.attempt != self._attempt:
            return
        match order:
            case AllRunning():
                self._known_to_run = True
            case HoldSources(subtask=full, until=until) if full not in self._here:
                self._held_until = max(self._held_until, until)
            case InjectBarrier(decided=checkpoint):
                self._settled = max(self._settled, checkpoint)
            case AbortCheckpoint(checkpoint=checkpoint) | CheckpointDecided(checkpoint=checkpoint):
                self._settled = max(self._settled, checkpoint)
            case _:
                pass
        for subtask in self._subtasks:
            subtask.handle(order)
        if isinstance(order, RefreshMarkers):
            for publisher, marker in order.markers:
                if self._publishes(publisher) and not self._overtaken(publisher, marker.checkpoint):
                    self._refresh(publisher, marker)
        if isinstance(order, CheckpointDecided):
            for publication in order.publications:
                publisher = publication.publisher
                if self._publishes(publisher) and not self._overtaken(publisher, order.checkpoint):
                    self._newest[publisher] = order.checkpoint
                    self._publish(order, publication)

    def _overtaken(self, publisher: PublisherId, checkpoint: CheckpointId) -> bool:
        """Whether the identity was told of a newer checkpoint already: the order is late or doubled. What it
        asks for is done, its files may be gone, and the marker would look like somebody else's."""
        return checkpoint < self._newest.get(publisher, checkpoint)

    def _refresh(self, publisher: PublisherId, marker: Marker) -> None:
        def failed(error: BaseException) -> None:
            if not isinstance(
                error, Unavailable
            ):  # then it is tried again well before the marker is forgotten
                self._failed(error)

        self._executor.submit(
            f"publish {publisher}",
            lambda: refresh_identity(self._publishers.of(publisher), publisher, marker, self._tools),
            lambda _: None,
            failed,
        )

    def _publish(self, order: CheckpointDecided, publication: Publication) -> None:
        publisher = self._publishers.of(publication.publisher)
        wanted = Wanted(
            incarnation=self._incarnation,
            attempt=self._attempt,
            checkpoint=order.checkpoint,
            rows=publication.rows,
        )

        def work() -> Marker:
            marker = publish(publisher, publication, wanted, self._tools)
            for outbox in publication.outboxes:
                self._tools.outboxes.forget(outbox.file)
            return marker

        def done(marker: Marker) -> None:
            self._report(
                PublicationDone(
                    attempt=self._attempt,
                    checkpoint=order.checkpoint,
                    publisher=publication.publisher,
                    marker=marker,
                )
            )

        def failed(error: BaseException) -> None:
            if not isinstance(error, Unavailable):
                self._failed(error)
                return
            self._report(
                PublicationUnanswered(
                    attempt=self._attempt,
                    checkpoint=order.checkpoint,
                    publisher=publication.publisher,
                    reason=str(error),
                )
            )

        self._executor.submit(f"publish {publication.publisher}", work, done, failed)

    def close(self) -> None:
        """Close every subtask; the first error is raised once all were tried."""
        failure: BaseException | None = None
        for subtask in reversed(self._subtasks):
            try:
                subtask.close()
            except Exception as error:
                failure = failure or error
        if failure is not None:
            raise failure
