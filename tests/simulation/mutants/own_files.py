"""Mutants of RocksDB's own files: what of them is listed again, who uses them, what is opened (R22, A17)."""

from __future__ import annotations

from typing import Final

from tests.simulation.mutants.mutant import Edit, Mutant

OWN_FILES: Final = (
    Mutant(
        name="R22_files_of_another_database_are_known_by_their_local_names",
        job="shrink",
        over_rocksdb=True,
        breaks="A database that was filled from another's entries takes the other's files for its own.",
        edits=(
            Edit(
                function="processor.state.keyed_state:StepState.__init__",
                find="Chain(files=tuple(request.restored)) if goes_on else Chain()",
                put="Chain(\n"
                "            files=tuple(request.restored)\n"
                "            if goes_on or (request.restored and request.restored[0].database is not None)\n"
                "            else ()\n"
                "        )",
            ),
        ),
    ),
    Mutant(
        name="A17_nobody_is_said_to_use_the_files_of_a_database",
        over_rocksdb=True,
        breaks="Only the description of a database counts as a file of the checkpoint: the others are swept.",
        edits=(
            Edit(
                function="processor.protocol.entries:StateFile.files",
                find="(self.file, *(each.file for each in self.database or ()))",
                put="(self.file,)",
            ),
        ),
    ),
    Mutant(
        name="a_database_of_other_key_groups_is_gone_on_with",
        job="shrink",
        over_rocksdb=True,
        breaks="At another parallelism a subtask opens the database that it restores, with all that is in it.",
        edits=(
            Edit(
                function="processor.state.backends:RocksDbBackend._begun",
                find="        if (description.key_groups, description.max_parallelism) != (\n"
                "            request.key_groups,\n"
                "            request.max_parallelism,\n"
                "        ):\n",
                put="        if description.max_parallelism != request.max_parallelism:\n",
            ),
        ),
    ),
    Mutant(
        name="timers_are_not_in_the_database",
        job="timers",
        over_rocksdb=True,
        breaks="Timers are kept in memory only: the database's own files have none.",
        edits=(
            Edit(
                function="processor.state.rocksdb_timers:RocksDbTimers.write_in_steps",
                find='                    batch.put(self._at(key, time_ms), b"")\n',
                put="                    pass\n",
            ),
        ),
    ),
    Mutant(
        name="timers_stay_in_the_database",
        job="timers",
        over_rocksdb=True,
        breaks="A timer that has fired stays in the database: it fires again after a restore.",
        edits=(
            Edit(
                function="processor.state.rocksdb_timers:RocksDbTimers.write_in_steps",
                find="                    batch.delete(self._at(key, time_ms))\n",
                put="                    pass\n",
            ),
        ),
    ),
)
