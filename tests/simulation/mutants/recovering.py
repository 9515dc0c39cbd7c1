"""Mutants of starting and recovering: sealing, openings, rewinds, what is kept (R1-R8, R14, R18, R22)."""

from __future__ import annotations

from typing import Final

from processor.simulation.faults import Faults
from tests.simulation.mutants.mutant import Edit, Mutant

SEAL: Final = "processor.protocol.recovery_seal:seal_log"
RECOVER: Final = "processor.protocol.recovery:recover"

ZOMBIES: Final = Faults(damages=0.7, replacements=15, points=3, request_slow=0.1, until_ms=20_000)
"""What it takes to go back behind somebody who is only asleep: a zombie that decided, and a damaged file (R8)."""

RECOVERING: Final = (
    Mutant(
        name="a_zombie_is_loud",
        breaks="A process that was replaced while it slept takes what it then finds for trouble of the job.",
        edits=(
            Edit(
                function="processor.runtime.attempt:RunningAttempt.superseded",
                find="return self._resources.log.read_all().newest_attempt > self.attempt",
                put="return False",
            ),
        ),
    ),
    Mutant(
        name="R01_not_sealing_first",
        breaks="The seal is written last, when everything is opened and about to run.",
        edits=(
            Edit(function=SEAL, find="reply = yield TakePlace(entry=seal)", put="reply = PlaceTaken()"),
            Edit(
                function=RECOVER,
                find="    log = standing.sealed.log\n",
                put="    reply = yield TakePlace(entry=seal)\n"
                "    if isinstance(reply, PlaceLost):\n"
                "        raise Fenced('a newer attempt was faster')\n"
                "    log = standing.sealed.log\n",
            ),
        ),
    ),
    Mutant(
        name="R01_seal_without_reading_again",
        breaks="Whose place for the seal was taken takes the next one, and goes on from the log as it was before.",
        edits=(
            Edit(
                function=SEAL,
                find="        reply = yield TakePlace(entry=seal)\n",
                put="        reply = yield TakePlace(entry=seal)\n"
                "        while isinstance(reply, PlaceLost):\n"
                "            import dataclasses\n"
                "            seal = dataclasses.replace(seal, place=type(seal.place)(seal.place + 1))\n"
                "            reply = yield TakePlace(entry=seal)\n",
            ),
        ),
    ),
    Mutant(
        name="R02_every_attempt_mints_an_incarnation",
        breaks="An attempt does not take the incarnation of its log.",
        edits=(Edit(function=SEAL, find="if incarnation is None:", put="if True:"),),
    ),
    Mutant(
        name="R02_markers_looked_at_after_the_log",
        breaks="The log is read before the markers: what is published in between looks like a lost end.",
        edits=(
            Edit(
                function=SEAL,
                find="        seen = yield from _look(identity)\n        read = yield from ask(ReadLog(), LogRead)\n",
                put="        read = yield from ask(ReadLog(), LogRead)\n        seen = yield from _look(identity)\n",
            ),
        ),
    ),
    Mutant(
        name="R03_rewind_at_every_start",
        job="restore",
        breaks="The same command line run again rewinds again.",
        edits=(
            Edit(
                function="processor.protocol.recovery:_rewind_wanted",
                find="if last is not None and last.token == token:",
                put="if False:",
            ),
        ),
    ),
    Mutant(
        name="R05_a_taken_place_counts_as_ours",
        breaks="Who finds the place of its entry taken goes on as if it had got it.",
        edits=(
            Edit(
                function="processor.storage.directory_log:DirectoryLog._link",
                find="        except FileExistsError:\n            return False\n",
                put="        except FileExistsError:\n            return True\n",
            ),
        ),
    ),
    Mutant(
        name="R05_entry_not_synced",
        breaks="An entry of the log is linked before its content is on the disk.",
        edits=(
            Edit(
                function="processor.storage.directory_log:DirectoryLog._write_temporary",
                find="                self._disk.sync(file)\n",
                put="",
            ),
        ),
    ),
    Mutant(
        name="R05_folder_of_the_log_not_synced",
        breaks="A decision counts as made before the name of its entry is on the disk.",
        edits=(
            Edit(
                function="processor.storage.directory_log:DirectoryLog._take",
                find="            self._disk.sync(folder)\n",
                put="",
            ),
        ),
    ),
    Mutant(
        name="R06_a_new_nonce_at_every_try",
        breaks="An entry that got through without an answer is taken for somebody else's.",
        edits=(
            Edit(
                function="processor.runtime.entry_writer:EntryWriter.take",
                find="return self.log.take(signed)",
                put="return self.log.take(self.sign(entry))",
            ),
        ),
    ),
    Mutant(
        name="R07_a_seal_may_fill_a_hole",
        job="copy",
        faults=Faults(second_daemons=10, disk_slow=0.05, sleeps=5, until_ms=20_000),
        breaks="A slow start seals a place that retention has freed meanwhile.",
        edits=(
            Edit(
                function="processor.storage.decision_log:DecisionLog.take",
                find="isinstance(outcome, Taken) and isinstance(entry, Seal)",
                put="False",
            ),
        ),
    ),
    Mutant(
        name="R08_going_back_behind_what_is_out",
        faults=ZOMBIES,
        breaks="A checkpoint that cannot be read is given up though some of it is published.",
        edits=(
            Edit(
                function="processor.protocol.publishing:judge_opening",
                find="if unreadable is not None and seen.checkpoint >= unreadable:",
                put="if False:",
            ),
        ),
    ),
    Mutant(
        name="R14_no_opening",
        job="shrink",
        faults=ZOMBIES,
        breaks="An attempt leaves the markers as the one before left them; older attempts find what they expect.",
        edits=(
            Edit(
                function="processor.task.publication:open_identity",
                find="            publisher.send(marker, ())\n",
                put="            if seen is not None:\n"
                "                return seen\n"
                "            publisher.send(marker, ())\n",
            ),
        ),
    ),
    Mutant(
        name="R18_open_only_the_last_two_plans",
        job="shrink",
        faults=ZOMBIES,
        breaks="Identities of plans before the last are not opened: two shrinking restarts leave one open.",
        edits=(
            Edit(
                function="processor.protocol.decisions:LogView.publishers_since",
                find="        return tuple(sorted(found))\n",
                put="        seals = [entry for entry in self.entries if isinstance(entry, Seal)]\n"
                "        return tuple(sorted(set().union(*(_publishers(s.sinks, job) for s in seals[-2:]))))\n",
            ),
        ),
    ),
    Mutant(
        name="R22_delete_what_is_kept",
        breaks="An entry condemns files of checkpoints that are kept.",
        edits=(
            Edit(
                function="processor.storage.retention:condemned_by",
                find="| set(given_up)) - used - before",
                put="| set(given_up)) - {file.name for file in entry.files()} - before",
            ),
        ),
    ),
    Mutant(
        name="R22_condemn_what_others_build_on",
        breaks="An entry condemns files that a checkpoint under way is built on.",
        edits=(
            Edit(
                function="processor.protocol.decision_line:DecisionLine.decide",
                find="needed_from=min(later, default=self.decided)",
                put="needed_from=self.decided",
            ),
            Edit(
                function="processor.protocol.pending_checkpoint:PendingCheckpoint.collect",
                find="if event.built_on is not None and event.built_on < self.base:",
                put="if False:",
            ),
        ),
    ),
    Mutant(
        name="decision_before_files_are_synced",
        breaks="Files of a checkpoint are acknowledged before they are on the disk.",
        edits=(
            Edit(
                function="processor.storage.directory_files:DirectoryWriter.finish",
                find="self._disk.sync(self._file)",
                put="pass",
            ),
        ),
    ),
    Mutant(
        name="R07_entries_before_seals_are_forgotten",
        job="copy",
        faults=Faults(second_daemons=40, disk_slow=0.1, until_ms=20_000),
        breaks="Retention frees the place that a zombie takes to be the next.",
        edits=(
            Edit(
                function="processor.storage.retention:_guarded",
                find="isinstance(entry, Seal | Rewind)",
                put="False",
            ),
        ),
    ),
)
