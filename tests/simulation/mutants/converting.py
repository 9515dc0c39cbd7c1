"""Mutants of canonical savepoints: what is converted, how it stands in Avro, what is believed of a file (C2, C5)."""

from __future__ import annotations

from typing import Final

from tests.simulation.mutants.mutant import Edit, Mutant

CANONICAL: Final = "processor.savepoint.canonical"
AVRO: Final = "processor.savepoint.avro_file"

_OF_JOBS: Final = "tests/unit/savepoint/test_canonical.py"
_OF_EVERY_KIND: Final = "tests/unit/savepoint/test_every_kind.py"
_OF_CHAINS: Final = "tests/unit/savepoint/test_latest.py"
_OF_VALUES: Final = "tests/laws/test_avro_round_trip.py"

CONVERTING: Final = (
    Mutant(
        name="C2_what_was_removed_is_in_the_savepoint",
        breaks="A key whose state was cleared has it again after a start from the savepoint.",
        tests=_OF_CHAINS,
        edits=(
            Edit(
                function="processor.savepoint.latest:Latest._take",
                find="self._together.pop(entry, None)",
                put="pass",
            ),
        ),
    ),
    Mutant(
        name="C2_the_first_of_an_entry_counts",
        breaks="Of a chain of files the oldest value of each key is in the savepoint.",
        tests=_OF_CHAINS,
        edits=(
            Edit(
                function="processor.savepoint.latest:Latest._take",
                find="            self._together.update(zip(entries, some.values, strict=True))\n",
                put="            for entry, value in zip(entries, some.values, strict=True):\n"
                "                self._together.setdefault(entry, value)\n",
            ),
        ),
    ),
    Mutant(
        name="C2_an_empty_list_of_a_subtask_is_left_out",
        breaks="Of a subtask whose list was empty it is not known any more that it had one.",
        tests=_OF_EVERY_KIND,
        edits=(
            Edit(
                function=f"{CANONICAL}:_to_avro",
                find="even_if_empty=table.redistribution is not None,",
                put="even_if_empty=False,",
            ),
        ),
    ),
    Mutant(
        name="C2_what_belongs_to_subtasks_is_left_out",
        breaks="A savepoint has the state of keys, and no other.",
        tests=_OF_EVERY_KIND,
        edits=(
            Edit(
                function=f"{CANONICAL}:_with",
                find="written(subtask, subtask.operators, False)",
                put="()",
            ),
        ),
    ),
    Mutant(
        name="C5_key_groups_are_those_of_then",
        breaks="A job with another maximum parallelism takes the key groups of the savepoint for its own.",
        tests=_OF_JOBS,
        edits=(
            Edit(
                function=f"{CANONICAL}:from_canonical",
                find="key_groups = groups if same else everywhere",
                put="key_groups = groups",
            ),
        ),
    ),
    Mutant(
        name="C2_all_tables_of_a_step_are_the_first",
        breaks="What is restored of the second state of a step is in the first.",
        tests=_OF_JOBS,
        edits=(
            Edit(
                function=f"{CANONICAL}:_to_blocks",
                find="writer.block(number, key_groups,",
                put="writer.block(0, key_groups,",
            ),
        ),
    ),
    Mutant(
        name="R23_a_file_is_believed_unseen",
        breaks="A damaged file of Avro is read as far as Avro finds nothing wrong.",
        tests=_OF_JOBS,
        edits=(
            Edit(
                function=f"{AVRO}:read_avro",
                find="    files.verify(ref)  # what Avro's reader makes of other bytes is anybody's guess\n",
                put="",
            ),
        ),
    ),
    Mutant(
        name="R27_the_earliest_event_time_counts",
        breaks="With another maximum parallelism what was late is on time.",
        tests=_OF_JOBS,
        edits=(
            Edit(
                function=f"{CANONICAL}:_event_times_everywhere",
                find="max(reached.watermark_ms, latest.get(",
                put="min(reached.watermark_ms, latest.get(",
            ),
        ),
    ),
    Mutant(
        name="C2_keys_are_of_the_type_of_the_first",
        breaks="A key of another type than the first one's stops the savepoint, or becomes another key.",
        tests=_OF_VALUES,
        edits=(
            Edit(
                function=f"{AVRO}:_Rows._check",
                find="if layout.keys is not KeyForm.ANY and form_of(some.keys) is not layout.keys:",
                put="if False:",
            ),
        ),
    ),
    Mutant(
        name="C2_entry_keys_are_of_the_type_of_the_first",
        breaks="The same of the keys of a map's entries.",
        tests=_OF_VALUES,
        edits=(
            Edit(
                function=f"{AVRO}:_Rows._check",
                find="if layout.entry_keys not in (None, KeyForm.ANY) and",
                put="if False and",
            ),
        ),
    ),
    Mutant(
        name="C2_ints_have_63_bits",
        breaks="A count above 2**63 stops the savepoint.",
        tests=_OF_VALUES,
        edits=(
            Edit(
                function=f"{AVRO}:_wider_ints", find="if not layout.wide and layout.state:", put="if False:"
            ),
        ),
    ),
    Mutant(
        name="C2_the_records_of_a_union_are_told_apart_by_their_fields",
        breaks="Of two records of a union with the same fields it is not known which one it was.",
        tests=_OF_VALUES,
        edits=(
            Edit(
                function=f"{AVRO}:read_avro",
                find="named=_several_records(header.writer_schema)",
                put="named=False",
            ),
        ),
    ),
    Mutant(
        name="C2_a_second_try_writes_what_was_left_of_the_first",
        breaks="When a wider type is needed half-way, the entries before that are left out.",
        tests=_OF_VALUES,
        edits=(
            Edit(
                function=f"{AVRO}:write_avro",
                find="layout, found = narrow.wider, entries()",
                put="layout = narrow.wider",
            ),
        ),
    ),
)
