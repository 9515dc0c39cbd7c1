"""Mutants of state, positions and time: what a snapshot holds, and what of it is restored (R27, R28)."""

from __future__ import annotations

from typing import Final

from tests.simulation.mutants.mutant import Edit, Mutant

RESTORING: Final = "processor.runtime.restoring"

STATE: Final = (
    Mutant(
        name="the_snapshot_sees_what_came_after_the_cut",
        breaks="The cut freezes nothing: what changes afterwards is in the snapshot, too.",
        edits=(
            Edit(
                function="processor.state.front:Front.freeze",
                find="self.changed = {}",
                put="pass",
            ),
        ),
    ),
    Mutant(
        name="timers_dropped_on_restore",
        job="timers",
        breaks="Restored timers are in the table and not in the index: they never fire.",
        edits=(
            Edit(
                function="processor.state.timers:TimerQueue.__init__",
                find="            self._index(key, time_ms)\n",
                put="            pass\n",
            ),
        ),
    ),
    Mutant(
        name="timers_dropped_from_snapshots",
        job="timers",
        breaks="Snapshots hold no timers.",
        edits=(
            Edit(
                function="processor.state.memory_store:TimerTable.blocks",
                find="iter(self._base)",
                put="iter(())",
            ),
            Edit(
                function="processor.state.memory_store:TimerTable.changes",
                find="iter(entries.items())",
                put="iter(())",
            ),
        ),
    ),
    Mutant(
        name="fired_timers_fire_again",
        job="timers",
        breaks="That a timer has fired is not part of a snapshot of changes.",
        edits=(
            Edit(
                function="processor.state.memory_store:TimerTable.changes",
                find="for removed in (False, True):",
                put="for removed in (False,):",
            ),
        ),
    ),
    Mutant(
        name="position_off_by_one",
        breaks="A restored source goes on one record behind the place where it stood.",
        edits=(
            Edit(
                function="processor.task.source_intake:SourceIntake._begin",
                find="        self._reader.assign(splits)\n",
                put="        import dataclasses\n"
                "        self._reader.assign(\n"
                "            {\n"
                "                split: dataclasses.replace(at, next=at.next + 1)\n"
                "                if at.next and not at.at_end\n"
                "                else at\n"
                "                for split, at in splits.items()\n"
                "            }\n"
                "        )\n",
            ),
        ),
    ),
    Mutant(
        name="position_one_too_low",
        breaks="A restored source reads the last record again.",
        edits=(
            Edit(
                function="processor.task.source_intake:SourceIntake._begin",
                find="        self._reader.assign(splits)\n",
                put="        import dataclasses\n"
                "        self._reader.assign(\n"
                "            {\n"
                "                split: dataclasses.replace(at, next=at.next - 1) if at.next else at\n"
                "                for split, at in splits.items()\n"
                "            }\n"
                "        )\n",
            ),
        ),
    ),
    Mutant(
        name="rescale_reads_files_of_the_same_range_only",
        job="restore",
        breaks="At another parallelism a subtask takes only files that are exactly its own key groups'.",
        edits=(
            Edit(
                function=f"{RESTORING}:restored_operator",
                find="state.key_groups.intersects(key_groups)",
                put="state.key_groups == key_groups",
            ),
        ),
    ),
    Mutant(
        name="changes_without_what_was_frozen_before",
        job="count",
        breaks="A snapshot of changes leaves out those of a cut before it that was not decided.",
        edits=(
            Edit(
                function="processor.state.keyed_state:StepState._changes",
                find="        cuts = [*(undecided.frozen for undecided in self._undecided), frozen]\n",
                put="        cuts = [frozen]\n",
            ),
        ),
    ),
    Mutant(
        name="keys_are_dealt_out_in_turn",
        job="count",
        breaks="Records of a keyed edge go to the subtasks without regard to who owns their keys.",
        edits=(
            Edit(
                function="processor.task.output_gate:KeyedOutput.emit",
                find="indexes[owners[key_group(key, limit)]].append(index)",
                put="indexes[index % len(indexes)].append(index)",
            ),
        ),
    ),
    Mutant(
        name="no_last_watermark",
        job="event-time",
        breaks="At the end of input event time does not reach its end, and what waits for it never comes out.",
        edits=(
            Edit(
                function="processor.task.subtask:Subtask.end",
                find="        parts.chain.on_watermark(MAX_TIME_MS)\n",
                put="",
            ),
            Edit(
                function="processor.task.subtask:Subtask.end",
                find="        parts.outputs.mark(Watermark(MAX_TIME_MS))\n",
                put="",
            ),
        ),
    ),
    Mutant(
        name="event_time_of_the_fastest_input",
        job="event-time",
        breaks="Event time is the maximum over the inputs: records of the slower ones are late.",
        edits=(
            Edit(
                function="processor.task.input_gate:InputGate._advance",
                find="slowest = min(active)",
                put="slowest = max(active)",
            ),
        ),
    ),
    Mutant(
        name="event_time_of_the_fastest_split",
        job="event-time",
        breaks="Event time of a source is the maximum over its splits.",
        edits=(
            Edit(
                function="processor.operators.watermarks:SplitWatermarks.advance",
                find="slowest = min(state.largest_ms for state in active)",
                put="slowest = max(state.largest_ms for state in active)",
            ),
        ),
    ),
    Mutant(
        name="R28_processing_time_forgotten_at_a_restore",
        job="timers",
        breaks="A restored job takes the wall clock as it is, even when it was set back.",
        edits=(
            Edit(
                function=f"{RESTORING}:processing_time_reached",
                find="return max((subtask.processing_time_ms for subtask in entry.subtasks), default=0)",
                put="return 0",
            ),
        ),
    ),
    Mutant(
        name="R28_processing_time_follows_the_clock_back",
        job="timers",
        breaks="Processing time goes back when the wall clock does.",
        edits=(
            Edit(
                function="processor.task.processing_clock:ProcessingClock.wall_ms",
                find="        return self._reached_ms\n",
                put="        return now_ms\n",
            ),
            Edit(
                function="processor.operators.at_hand:AtHand.advance_processing_time",
                find="max(self._now_ms, now_ms)",
                put="now_ms",
            ),
        ),
    ),
    Mutant(
        name="R27_event_time_forgotten_at_a_restore",
        job="event-time",
        breaks="A restored key does not remember the event time that it had reached.",
        edits=(
            Edit(
                function=f"{RESTORING}:restored_operator",
                find="watermarks[groups] = max(time_ms, watermarks.get(groups, time_ms))",
                put="pass",
            ),
        ),
    ),
)
