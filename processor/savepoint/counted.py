"""How many keys and timers each step has: all state is read once, and no value is decoded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from processor.ids import StepName
from processor.records.key_groups import encode_key
from processor.savepoint.opened import Savepoint
from processor.savepoint.tables import HeldTable, all_entries_of, tables_of
from processor.state.operator_state import Redistribution


def count_keys(savepoint: Savepoint) -> Mapping[tuple[str, str], int]:
    """By step and state, or table of timers (TIMER_TABLES): keys, of a list that belongs to subtasks its items, of
    timers each. Of what all subtasks have alike it counts that of the first. Raises DamagedFile by name."""
    found: Counter[tuple[str, str]] = Counter()
    for step in savepoint.entry.shape.stateful:
        for keyed in (True, False):
            tables = tables_of(savepoint.entry, step, keyed=keyed)
            if tables:
                found.update(_of_step(savepoint, step, tables))
    return found


def _of_step(savepoint: Savepoint, step: StepName, tables: tuple[HeldTable, ...]) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    counted: set[str] = set()
    for subtask in sorted(savepoint.entry.subtasks, key=lambda each: each.subtask):
        maps: dict[str, set[bytes]] = {}
        alike: set[str] = set()
        for table, some in all_entries_of(savepoint.directory.files, subtask, tables):
            if table.mapped:
                maps.setdefault(table.name, set()).update(map(encode_key, some.keys))
            elif table.name not in counted:
                found[step, table.name] += len(some.keys)
                if table.redistribution is Redistribution.SAME:
                    alike.add(table.name)
        counted |= alike
        for name, keys in maps.items():
            found[step, name] += len(keys)
    return found
