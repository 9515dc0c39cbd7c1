"""Mutants of checkpoints under way: barriers, acknowledgements, outboxes, deadlines, stops (R9, R21-R26)."""

from __future__ import annotations

from typing import Final

from processor.simulation.faults import Faults
from tests.simulation.mutants.mutant import Edit, Mutant

COORDINATOR: Final = "processor.protocol.coordinator:Coordinator"
OUTBOX: Final = "processor.operators.outbox_sink:OutboxSink"
SUBTASK: Final = "processor.protocol.subtask_checkpoint:SubtaskCheckpoint"

CHECKPOINTS: Final = (
    Mutant(
        name="R09_forget_undecided_outboxes",
        breaks="A cut lists the outbox that it closed, and none of those of checkpoints that were given up.",
        edits=(
            Edit(
                function=f"{OUTBOX}.cut",
                find="_OutboxCompletion(tuple(self._undecided),",
                put="_OutboxCompletion((closed,) if closed.rows else (),",
            ),
        ),
    ),
    Mutant(
        name="R09_undecided_outboxes_out_of_order",
        breaks="The newest of several undecided outboxes is published first.",
        edits=(
            Edit(
                function=f"{OUTBOX}.cut",
                find="_OutboxCompletion(tuple(self._undecided),",
                put="_OutboxCompletion(tuple(reversed(self._undecided)),",
            ),
        ),
    ),
    Mutant(
        name="R09_decided_outboxes_listed_again",
        breaks="A subtask that has not heard of a decision gets its outboxes decided a second time.",
        edits=(
            Edit(
                function="processor.protocol.entries:SubtaskSnapshot.without_decided",
                find="if all(outbox.cut > decided for outbox in self.outboxes):",
                put="if True:",
            ),
        ),
    ),
    Mutant(
        name="R09_ended_subtasks_leave_the_plan",
        job="event-time",
        breaks="A checkpoint does not wait for subtasks whose input has ended; what they still hold is left out.",
        edits=(
            Edit(
                function="processor.protocol.subtask_states:SubtaskStates.plan",
                find="must_acknowledge=self.all,",
                put="must_acknowledge=(self.all - self._of(lambda s: s is SubtaskStatus.ENDED)) or self.all,",
            ),
        ),
    ),
    Mutant(
        name="R09_a_full_outbox_stops_all_reading",
        breaks="Barrier and bound wait for each other.",
        edits=(
            Edit(
                function="processor.task.channel_intake:ChannelIntake.step",
                find="if not self._outputs.ready():",
                put="if pressed or not self._outputs.ready():",
            ),
        ),
    ),
    Mutant(
        name="R21_orders_of_another_attempt_are_obeyed",
        job="count",
        faults=Faults(damages=1, message_late=0.5, message_doubled=0.5, sync_fails=0.03, until_ms=20_000),
        breaks="An order that was on its way when its attempt ended is obeyed by the next one.",
        edits=(
            Edit(
                function="processor.runtime.worker:Worker.handle",
                find="if order.attempt != self._attempt:",
                put="if False:",
            ),
        ),
    ),
    Mutant(
        name="R23_a_failed_copy_counts_as_a_savepoint",
        job="restore",
        faults=Faults(sync_fails=0.15, until_ms=20_000),
        breaks="A savepoint that could not be written is reported as written.",
        edits=(
            Edit(
                function="processor.runtime.driver:Driver._copy_savepoint",
                find="lambda error: copied(str(error) or repr(error))",
                put='lambda error: copied("")',
            ),
        ),
    ),
    Mutant(
        name="R24_end_at_the_decision",
        breaks="A job that was asked to stop ends when its last checkpoint is decided, and not when it is published.",
        edits=(
            Edit(
                function=f"{COORDINATOR}._dispatch",
                find="                self._statistics.decided(checkpoint, now_ms)\n",
                put="                self._statistics.decided(checkpoint, now_ms)\n"
                "                if self._line.publishing(checkpoint).request.kind.stops:\n"
                "                    actions += (EndJob(finished=False),)\n",
            ),
        ),
    ),
    Mutant(
        name="R24_the_end_comes_behind_the_barrier_of_a_drain",
        job="drain",
        breaks="What the end of event time brings out is behind the last checkpoint.",
        edits=(
            Edit(
                function="processor.task.source_intake:SourceIntake._cut",
                find="if kind is CheckpointKind.DRAIN and not self._subtask.ended:",
                put="if False:",
            ),
            Edit(
                function="processor.task.source_intake:SourceIntake._cut",
                find="        self._parts.faults(FaultPoint.BARRIER_INJECTED)\n",
                put="        self._parts.faults(FaultPoint.BARRIER_INJECTED)\n"
                "        if kind is CheckpointKind.DRAIN and not self._subtask.ended:\n"
                "            self._subtask.end()\n",
            ),
        ),
    ),
    Mutant(
        name="R25_no_deadline_for_acknowledgements",
        breaks="A checkpoint waits for ever for an acknowledgement that was lost.",
        edits=(
            Edit(
                function=f"{COORDINATOR}._deadlines",
                find="if (expired := self._collection.expired(now_ms)) is not None:",
                put="if False:",
            ),
        ),
    ),
    Mutant(
        name="R25_no_deadline_for_publishing",
        faults=Faults(message_lost=0.1, until_ms=20_000),
        breaks="A checkpoint waits for ever for a publish whose order or report was lost.",
        edits=(
            Edit(
                function="processor.protocol.decision_line:DecisionLine.overdue",
                find="if self._publishing is not None and now_ms >= self._publishing.deadline_ms:",
                put="if False:",
            ),
        ),
    ),
    Mutant(
        name="R26_late_barriers_are_taken",
        breaks="A subtask takes the order of a barrier that it had already, or whose checkpoint is over.",
        edits=(
            Edit(function=f"{SUBTASK}.accepts", find="return checkpoint > self._over", put="return True"),
        ),
    ),
    Mutant(
        name="one_input_not_blocked",
        job="bounded",
        faults=Faults(kills=40, until_ms=20_000),
        breaks="The first channel goes on after its barrier: what comes behind it gets into the snapshot.",
        edits=(
            Edit(
                function="processor.protocol.alignment:BarrierAlignment.blocked",
                find="return channel in self._blocked",
                put="return channel in self._blocked and channel != 0",
            ),
        ),
    ),
    Mutant(
        name="decided_without_the_last_acknowledgement",
        breaks="A checkpoint is complete when all but one of its subtasks have acknowledged.",
        edits=(
            Edit(
                function="processor.protocol.pending_checkpoint:PendingCheckpoint.collect",
                find="        if self._missing:\n",
                put="        if len(self._missing) > 1:\n",
            ),
            Edit(
                function="processor.protocol.pending_checkpoint:PendingCheckpoint.snapshots",
                find='        invariant(not self._missing, "only a complete checkpoint has snapshots to decide")\n',
                put="",
            ),
        ),
    ),
    Mutant(
        name="the_end_is_told_once",
        job="event-time",
        faults=Faults(message_lost=0.15, until_ms=20_000),
        breaks="When the report that a subtask has ended is lost, its acknowledgements do not tell it either.",
        edits=(
            Edit(
                function=f"{COORDINATOR}._acknowledged",
                find="if event.snapshot.finished:",
                put="if False:",
            ),
        ),
    ),
    Mutant(
        name="records_overtake_the_barrier",
        breaks="The snapshot is taken first, and the barrier follows the next batch.",
        edits=(
            Edit(
                function="processor.task.source_intake:SourceIntake._cut",
                find="        watermarks = self._event_time.watermarks.largest()",
                put="        taken = dict(self._reader.positions())\n"
                "        if not self._subtask.ended and self._event_time is None:\n"
                "            for _, batch in self._reader.poll(self._records_max, 0):\n"
                "                self._parts.chain.on_batch(0, batch)\n"
                "        watermarks = self._event_time.watermarks.largest()",
            ),
            Edit(
                function="processor.task.source_intake:SourceIntake._cut",
                find="positions=dict(self._reader.positions())",
                put="positions=taken",
            ),
        ),
    ),
    Mutant(
        name="R21_reports_of_another_attempt_count",
        job="count",
        faults=Faults(message_late=0.5, sync_fails=0.02, until_ms=20_000),
        breaks="A report that was on its way when its attempt ended counts for the next one.",
        edits=(
            Edit(
                function=f"{COORDINATOR}._handled",
                find='if getattr(event, "attempt", self._attempt) != self._attempt:',
                put="if False:",
            ),
        ),
    ),
    Mutant(
        name="cut_at_the_first_barrier",
        job="bounded",
        faults=Faults(kills=40, until_ms=20_000),
        breaks="A subtask cuts when the barrier is on one of its inputs, and drops it on the others.",
        edits=(
            Edit(
                function="processor.protocol.alignment:BarrierAlignment.barrier",
                find="if len(self._blocked) < len(self._overtakable):",
                put="if False:",
            ),
        ),
    ),
)
