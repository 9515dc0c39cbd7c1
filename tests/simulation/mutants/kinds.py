"""Mutants of kinds of state: maps, state that expires, state of subtasks (R27, R28)."""

from __future__ import annotations

from typing import Final

from tests.simulation.mutants.mutant import Edit, Mutant

KINDS: Final = (
    Mutant(
        name="removed_entries_of_maps_come_back",
        job="kinds",
        breaks="A snapshot of changes leaves out which entries of maps were removed, when others were set.",
        edits=(
            Edit(
                function="processor.state.map_blocks:changed_map_entries",
                find="        if gone:\n",
                put="        if gone and not there:\n",
            ),
        ),
    ),
    Mutant(
        name="restored_maps_lose_an_entry",
        job="kinds",
        breaks="Of every restored map only the entry that came last is there.",
        edits=(
            Edit(
                function="processor.state.map_values:MapValues.restored",
                find="self._maps.setdefault(key, {})[entry_key] = value",
                put="self._maps[key] = {entry_key: value}",
            ),
        ),
    ),
    Mutant(
        name="what_is_over_is_found_all_the_same",
        job="expiring",
        breaks="A value that has expired is there until it is swept away.",
        edits=(
            Edit(
                function="processor.state.expiring_tables:_Expiring._current",
                find="if touched_ms <= self._stamps.over_ms():",
                put="if False:",
            ),
        ),
    ),
    Mutant(
        name="every_read_renews",
        job="expiring",
        breaks="State that expires after the last write does so after the last read.",
        edits=(
            Edit(
                function="processor.state.expiring_tables:_Expiring._current",
                find="if self._stamps.reads_renew:",
                put="if True:",
            ),
        ),
    ),
    Mutant(
        name="a_restore_renews_what_expires",
        job="expiring",
        breaks="What comes out of a snapshot of maps that expire has been touched far in the future.",
        edits=(
            Edit(
                function="processor.state.map_values:MapValues.restored",
                find="self._maps.setdefault(key, {})[entry_key] = value",
                put="self._maps.setdefault(key, {})[entry_key] = (2**60, value[1]) "
                "if type(value) is tuple and len(value) == 2 else value",
            ),
        ),
    ),
    Mutant(
        name="snapshots_leave_out_what_is_not_over",
        job="expiring",
        breaks="A whole snapshot leaves out what has a little time left.",
        edits=(
            Edit(
                function="processor.state.stamped:left_of_value",
                find="touched_ms > over_ms",
                put="touched_ms > over_ms + 100",
            ),
        ),
    ),
    Mutant(
        name="what_is_alive_is_swept_away",
        job="expiring",
        breaks="Behind a batch, what has a little time left is removed, too.",
        edits=(
            Edit(
                function="processor.state.sweep:Sweep._look",
                find="over_ms = self._expiries.of(spec.name).over_everywhere_ms()",
                put="over_ms = self._expiries.of(spec.name).over_everywhere_ms() + 290",
            ),
        ),
    ),
    Mutant(
        name="R27_what_is_over_comes_back_with_a_restore",
        job="expiring",
        breaks="Values expire by the event time since the restore, and not by what their key group had reached.",
        edits=(
            Edit(
                function="processor.operators.at_hand:AtHand.now_ms",
                find="return self._at_least_restored(self._passed_ms)",
                put="return self._passed_ms",
            ),
        ),
    ),
    Mutant(
        name="union_lists_are_split",
        job="collect",
        breaks="At another parallelism a union list is dealt out, and nobody has all of it.",
        edits=(
            Edit(
                function="processor.state.operator_states:OperatorStates._restore",
                find="                    for file in files:\n                        self._take(name, file)\n",
                put="                    self._restore_part(name, files)\n",
            ),
        ),
    ),
    Mutant(
        name="split_lists_go_to_all",
        job="collect",
        breaks="Every subtask of a restored step gets all items of a list that should be dealt out.",
        edits=(
            Edit(
                function="processor.state.operator_states:OperatorStates._restore",
                find="self._restore_part(name, files)",
                put="[self._take(name, file) for file in files]",
            ),
        ),
    ),
    Mutant(
        name="lists_of_subtasks_that_are_no_more_are_forgotten",
        job="collect",
        breaks="A restored subtask takes the list of the one with its number, at any parallelism.",
        edits=(
            Edit(
                function="processor.state.operator_states:OperatorStates._restore_part",
                find="if len(files) == parallelism:",
                put="if index < len(files):",
            ),
        ),
    ),
    Mutant(
        name="broadcast_records_go_to_one_subtask",
        job="broadcast",
        breaks="A batch that is broadcast reaches one subtask, another one each time.",
        edits=(
            Edit(
                function="processor.task.output_gate:BroadcastOutput.emit",
                find="        for sender in self.senders:\n            sender.send(batch)\n",
                put="        self.senders = (*self.senders[1:], self.senders[0])\n"
                "        self.senders[0].send(batch)\n",
            ),
        ),
    ),
    Mutant(
        name="broadcast_state_is_that_of_the_same_number",
        job="broadcast",
        breaks="Subtasks that there were not before begin without broadcast state.",
        edits=(
            Edit(
                function="processor.state.operator_states:OperatorStates._restore",
                find="for file in files[:1]:",
                put="for file in files[self._request.subtask_index :][:1]:",
            ),
        ),
    ),
    Mutant(
        name="a_snapshot_of_broadcast_state_sees_what_came_after_the_cut",
        job="broadcast",
        breaks="A map in the hands of a snapshot goes on changing.",
        edits=(
            Edit(
                function="processor.state.broadcast_map:BroadcastMap._change",
                find="            self._kept = dict(self._kept)\n",
                put="            pass\n",
            ),
        ),
    ),
    Mutant(
        name="R22_a_file_of_an_older_version_is_listed_again",
        job="broadcast",
        breaks="The file of a decided checkpoint is listed again though the state has changed since.",
        edits=(
            Edit(
                function="processor.state.operator_states:OperatorStates.cut",
                find="and self._decided[0] == versions",
                put="and True",
            ),
        ),
    ),
    Mutant(
        name="R27_broadcast_edges_are_overtaken",
        job="broadcast-overtaken",
        breaks="Barriers overtake records that are broadcast, and nobody can say to whom they go at a restore.",
        edits=(
            Edit(
                function="processor.plan.chaining:plan",
                find="overtakable=edge.kind is EdgeKind.KEYED",
                put="overtakable=edge.kind is not EdgeKind.FORWARD",
            ),
        ),
    ),
)
