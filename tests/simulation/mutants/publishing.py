"""Mutants of publishing: identities, taking over, markers, transactions (R10-R17, R32)."""

from __future__ import annotations

from typing import Final

from processor.simulation.faults import Faults
from tests.simulation.mutants.mutant import Edit, Mutant

PUBLISH: Final = "processor.task.publication:publish"
JUDGE: Final = "processor.protocol.publishing:judge_publication"
KAFKA: Final = "connectors.kafka.publisher:KafkaPublisher"

OF_LEADERS: Final = Faults(
    leaders_lost=0.1, kills=10, sleeps=3, replacements=3, request_slow=0.02, until_ms=20_000
)

PUBLISHING: Final = (
    Mutant(
        name="R10_another_transactional_id_for_every_producer",
        breaks="Taking over shuts out nobody.",
        edits=(
            Edit(
                function=f"{KAFKA}._try_take_over",
                find="            self._identity,\n",
                put="            f'{self._identity}/{self._live_cluster().nonce()}',\n",
            ),
        ),
    ),
    Mutant(
        name="R11_publish_without_reading_the_marker",
        breaks="What the marker says is not looked at; it is taken to be the expected one.",
        edits=(
            Edit(
                function=PUBLISH,
                find="            seen = publisher.take_over()\n",
                put="            publisher.take_over()\n            seen = publication.expected\n",
            ),
        ),
    ),
    Mutant(
        name="R11_read_the_marker_before_initialising",
        breaks="Between reading the marker and shutting the others out, one of them may still commit.",
        edits=(
            Edit(
                function=f"{KAFKA}.take_over",
                find='        with self._again_when_silent("taking over"):\n',
                put='        with self._again_when_silent("reading the marker"):\n'
                "            self._seen = markers.read_fresh()\n"
                '        with self._again_when_silent("taking over"):\n',
            ),
            Edit(
                function=f"{KAFKA}.take_over",
                find="        with self._again_when_silent("
                '"reading the marker; a transaction of this identity may be open"):\n'
                "            self._seen = markers.read_fresh(settled=self._sent if undisturbed else None)\n",
                put="",
            ),
        ),
    ),
    Mutant(
        name="R11_send_again_without_reading",
        breaks="A transaction without an answer is sent again by a new producer that looks at nothing.",
        edits=(
            Edit(
                function=f"{KAFKA}.send",
                find="                self._send(producer, marker, rows)\n",
                put="                try:\n"
                "                    self._send(producer, marker, rows)\n"
                "                except (Retriable, Unavailable):\n"
                "                    self._abandon()\n"
                "                    self._producer = self._initialised_producer()\n"
                "                    self._send(self._producer, marker, rows)\n",
            ),
        ),
    ),
    Mutant(
        name="R11_no_answer_counts_as_a_commit",
        faults=Faults(request_lost=0.05, absences=10, cuts=10, until_ms=20_000),
        breaks="A commit without an answer is taken for one that went through.",
        edits=(
            Edit(
                function=f"{KAFKA}._send",
                find="            producer.commit(left_ms())\n",
                put="            try:\n"
                "                producer.commit(left_ms())\n"
                "            except (Retriable, Unavailable):\n"
                "                return\n",
            ),
        ),
    ),
    Mutant(
        name="R11_fewer_rows_count_as_all",
        breaks="A marker of the wanted checkpoint ends the publish, however many rows it says are out.",
        edits=(
            Edit(
                function=JUDGE,
                find="return Done() if seen.rows == wanted.rows else Send(from_row=seen.rows)",
                put="return Done()",
            ),
        ),
    ),
    Mutant(
        name="R11_begin_again_from_row_1",
        breaks="A publish that was interrupted begins from its first row again.",
        edits=(
            Edit(
                function=JUDGE,
                find="return Done() if seen.rows == wanted.rows else Send(from_row=seen.rows)",
                put="return Done() if seen.rows == wanted.rows else Send(from_row=0)",
            ),
        ),
    ),
    Mutant(
        name="R11_markers_of_newer_attempts_stop_nobody",
        breaks="A publisher that finds the marker of a newer attempt goes on as if it were its own.",
        edits=(
            Edit(
                function="processor.protocol.publishing:_foreign",
                find="if seen.attempt > attempt:",
                put="if False:",
            ),
        ),
    ),
    Mutant(
        name="R11_marker_beside_the_transaction",
        breaks="The marker is committed by itself and not in the transaction of its rows.",
        edits=(
            Edit(
                function=f"{KAFKA}._send_rows_and_marker",
                find="producer.send_offsets({markers.marker_at: stored}, markers.group(), left_ms())",
                put="markers._offsets.begin_commit({markers.marker_at: stored})",
            ),
        ),
    ),
    Mutant(
        name="R12_one_producer_for_all_transactions",
        job="copy",
        faults=Faults(request_doubled=0.1, lost_comes_late=1, until_ms=20_000),
        breaks="A producer is used again: a late, repeated EndTxn ends its next transaction half-way.",
        edits=(
            Edit(function=f"{KAFKA}.take_over", find="        self._abandon()\n", put=""),
            Edit(
                function=f"{KAFKA}.take_over",
                find="            self._producer = self._initialised_producer()\n",
                put="            if self._producer is None:\n"
                "                self._producer = self._initialised_producer()\n",
            ),
            Edit(
                function=f"{KAFKA}.send",
                find="        finally:\n",
                put="        except BaseException:\n",
            ),
            Edit(
                function=f"{KAFKA}.send",
                find="            self._abandon()\n",
                put="            self._abandon()\n            raise\n",
            ),
        ),
    ),
    Mutant(
        name="R13_publish_out_of_order",
        breaks="A checkpoint is decided, and published, while the one before is still being published.",
        edits=(
            Edit(
                function="processor.protocol.decision_line:DecisionLine.decide",
                find="or self._publishing is not None:",
                put="or False:",
            ),
        ),
    ),
    Mutant(
        name="R13_late_orders_to_publish_are_obeyed",
        breaks="An order to publish that was overtaken by a newer one is obeyed.",
        edits=(
            Edit(
                function="processor.runtime.worker:Worker._overtaken",
                find="return checkpoint < self._newest.get(publisher, checkpoint)",
                put="return False",
            ),
        ),
    ),
    Mutant(
        name="R15_trust_a_stale_read",
        breaks="An answer about the marker counts without the nonce that proves it fresh.",
        edits=(
            Edit(
                function="connectors.kafka.marker_store:read_proved_fresh",
                find="if stored[nonce_at] == nonce:",
                put="if True:",
            ),
        ),
    ),
    Mutant(
        name="R16_the_marker_counts_rows_not_sent",
        breaks="The marker of the first of several transactions says that all rows are out.",
        edits=(
            Edit(
                function=PUBLISH,
                find="publisher.send(wanted.marker(chunk.until), chunk)",
                put="publisher.send(wanted.marker(wanted.rows), chunk)",
            ),
        ),
    ),
    Mutant(
        name="R17_recorded_before_it_is_out",
        breaks="A checkpoint is recorded as published when it is decided.",
        edits=(
            Edit(
                function="processor.protocol.decided_checkpoint:DecidedCheckpoint.out_now",
                find="if self.missing or self._told:",
                put="if self._told:",
            ),
        ),
    ),
    Mutant(
        name="R17_end_before_output_is_visible",
        job="bounded",
        faults=Faults(late_markers=0.7, until_ms=20_000),
        breaks="The job ends well while its last output cannot be read yet.",
        edits=(
            Edit(
                function=f"{KAFKA}.wait_visible",
                find="        if self._unshown or self._hidden:",
                put="        if False:",
            ),
        ),
    ),
    Mutant(
        name="R32_nobody_looks_for_what_is_left_open",
        faults=OF_LEADERS,
        breaks="What was aborted while a partition had no leader comes out with what is sent next.",
        edits=(
            Edit(
                function="connectors.kafka.settling:Settling.glance",
                find="        before = self._settled\n",
                put="        return True\n",
            ),
        ),
    ),
    Mutant(
        name="R32_after_a_restart_nobody_looks",
        faults=OF_LEADERS,
        breaks="A new process takes it that no leader has changed since the last marker.",
        edits=(
            Edit(
                function="connectors.kafka.settling:Settling.led_by",
                find='same = leaders != "" and leaders == self._in_short()',
                put='same = leaders != ""',
            ),
        ),
    ),
    Mutant(
        name="R32_the_old_marker_counts_after_something_was_ended",
        faults=OF_LEADERS,
        breaks="After what was left open has been ended, by a new producer, the marker is not read again.",
        edits=(
            Edit(
                function=f"{KAFKA}._end_left_open",
                find="        self._abandon()\n",
                put="        self._abandon()\n"
                "        self._producer = self._initialised_producer()\n"
                "        return\n",
            ),
            Edit(
                function=f"{KAFKA}._settle",
                find="            if left:\n                self._hidden",
                put="            if left and not was_aborted:\n                self._hidden",
            ),
        ),
    ),
    Mutant(
        name="R32_what_is_left_open_counts_as_aborted",
        faults=OF_LEADERS,
        breaks="What was committed while a partition had no leader is aborted there.",
        edits=(
            Edit(
                function=f"{KAFKA}._settle",
                find="was_aborted = markers.settled == self._seen",
                put="was_aborted = True",
            ),
        ),
    ),
)
