"""One checkpoint from its decision until everything of it is out and recorded (R13)."""

from __future__ import annotations

from collections.abc import Mapping

from processor.ids import CheckpointId, Marker, PublisherId
from processor.invariant import invariant
from processor.protocol.checkpoint_status import CheckpointState, CheckpointStatus
from processor.protocol.entries import OutboxFile, SubtaskSnapshot
from processor.protocol.messages import Publication
from processor.protocol.pending_checkpoint import Request


class DecidedCheckpoint:
    """Knows what each identity has to publish, and which have not reported yet."""

    def __init__(
        self,
        *,
        checkpoint: CheckpointId,
        request: Request,
        state: CheckpointState,
        snapshots: tuple[SubtaskSnapshot, ...],
        markers: Mapping[PublisherId, Marker],
        deadline_ms: int,
    ) -> None:
        """``markers``: what every identity published before; each publication expects its own (R11)."""
        self.checkpoint = checkpoint
        self.request = request
        self.state = state
        state.to(CheckpointStatus.PUBLISHING)
        self.deadline_ms = deadline_ms
        self.publications = _publications(snapshots, markers)
        self.missing = {publication.publisher: publication for publication in self.publications}
        self._told = False

    def done(self, publisher: PublisherId, marker: Marker) -> bool:
        """An identity reports; False when it had reported before."""
        publication = self.missing.pop(publisher, None)
        if publication is None:
            return False
        invariant(marker.rows == publication.rows, "all rows of an identity are published")
        return True

    def out_now(self) -> bool:
        """True once: when everything is out, and nobody was told yet."""
        if self.missing or self._told:
            return False
        self._told = True
        return True

    def overdue(self, reason: str) -> str:
        """What is to be told when the time for it has passed."""
        if not self.missing:
            return (
                f"checkpoint {self.checkpoint} is published, but that was not recorded in time. Nothing is lost: "
                "the next attempt looks at the markers."
            )
        names = ", ".join(str(publisher) for publisher in sorted(self.missing))
        return (
            f"checkpoint {self.checkpoint} is decided but could not be published in time by {names}: {reason}. "
            "Nothing is lost: the next attempt publishes it."
        )


def _publications(
    snapshots: tuple[SubtaskSnapshot, ...], markers: Mapping[PublisherId, Marker]
) -> tuple[Publication, ...]:
    grouped: dict[PublisherId, list[OutboxFile]] = {}
    for snapshot in snapshots:
        for outbox in snapshot.outboxes:
            grouped.setdefault(outbox.publisher, []).append(outbox)
    for publisher in grouped:
        invariant(publisher in markers, f"{publisher} was opened before it publishes (R14)")
    return tuple(
        Publication(publisher=publisher, outboxes=tuple(files), expected=markers[publisher])
        for publisher, files in sorted(grouped.items())
    )
