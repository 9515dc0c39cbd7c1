"""Mutants of a job in several worker processes: who says what about which attempt, who publishes, who is gone."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from processor.simulation.faults import Faults
from tests.simulation.mutants.checkpoints import CHECKPOINTS
from tests.simulation.mutants.kinds import KINDS
from tests.simulation.mutants.mutant import Edit, Mutant
from tests.simulation.mutants.overtaking import OVERTAKING
from tests.simulation.mutants.state import STATE

RECEIVING: Final = "processor.channels.receiving:ReceivingChannel"
HOST: Final = "processor.runtime.worker_host:WorkerHost"
REMOTE: Final = "processor.runtime.remote_workers:RemoteWorkers"
WORKER: Final = "processor.runtime.worker:Worker"

_HOST_TESTS: Final = "tests/unit/runtime/test_worker_host.py"
_REMOTE_TESTS: Final = "tests/unit/runtime/test_remote_workers.py"
_SIMULATED_TESTS: Final = "tests/simulation/test_workers.py"
_WORKER_TESTS: Final = "tests/unit/runtime/test_worker.py"

_IN_WORKERS_TOO: Final = ("R25_", "R26_", "R27_", "R28_")
"""Rules whose mutants are caught where a job runs in several workers, too."""

_FAULTS: Final = {"R25_no_deadline_for_acknowledgements": Faults(message_lost=0.1, until_ms=20_000)}
"""For those of them that would need many seeds."""

WORKERS: Final = (
    *(
        replace(
            mutant,
            name=f"{mutant.name}_in_workers",
            workers=3,
            faults=mutant.faults or _FAULTS.get(mutant.name),
        )
        for mutant in (*CHECKPOINTS, *OVERTAKING, *STATE, *KINDS)
        if mutant.name.startswith(_IN_WORKERS_TOO) and not mutant.over_rocksdb
    ),
    Mutant(
        name="G4_credit_is_never_granted",
        job="count",
        workers=2,
        breaks="A channel whose window is full stays so.",
        edits=(
            Edit(
                function="processor.channels.credits:ReceiveWindow.taken",
                find="return due",
                put="return 0",
            ),
        ),
    ),
    Mutant(
        name="G4_credit_is_granted_twice",
        job="count",
        workers=2,
        breaks="More is granted than was on its way: every attempt fails at the first grant.",
        edits=(
            Edit(
                function="processor.channels.credits:ReceiveWindow.taken",
                find="return due",
                put="return 2 * due",
            ),
        ),
    ),
    Mutant(
        name="G4_a_write_that_comes_twice_is_read_twice",
        job="count",
        workers=2,
        faults=Faults(writes_doubled=0.02, until_ms=15_000),
        breaks="Frames are not counted: records of a doubled write are doubled.",
        edits=(
            Edit(
                function=f"{RECEIVING}.arrived",
                find="if frame.sequence != self._sequence:",
                put="if False:",
            ),
        ),
    ),
    Mutant(
        name="G4_a_write_that_is_lost_is_not_missed",
        job="count",
        workers=2,
        faults=Faults(writes_lost=0.02, until_ms=15_000),
        breaks="Frames are not counted: records of a lost write are lost.",
        edits=(
            Edit(
                function=f"{RECEIVING}.arrived",
                find="if frame.sequence != self._sequence:",
                put="if False:",
            ),
        ),
    ),
    Mutant(
        name="R21_a_worker_obeys_orders_of_an_older_attempt",
        job="count",
        workers=2,
        faults=Faults(damages=1, message_late=0.5, message_doubled=0.5, sync_fails=0.03, until_ms=20_000),
        breaks="An order that was on its way to a worker when its attempt ended is obeyed by the next one there.",
        edits=(
            Edit(function=f"{WORKER}.handle", find="if order.attempt != self._attempt:", put="if False:"),
        ),
    ),
    Mutant(
        name="R21_reports_of_workers_about_another_attempt_count",
        job="count",
        workers=2,
        faults=Faults(message_late=0.15, streams_break=20, until_ms=20_000),
        breaks="A report that was on its way from a worker when its attempt ended counts for the next one.",
        edits=(
            Edit(
                function="processor.protocol.coordinator:Coordinator._handled",
                find='if getattr(event, "attempt", self._attempt) != self._attempt:',
                put="if False:",
            ),
        ),
    ),
    Mutant(
        name="R09_sources_that_were_held_are_held_for_ever",
        workers=3,
        breaks="When the checkpoint that empties the full outbox elsewhere is decided, sources stay as they are.",
        edits=(
            Edit(
                function=f"{WORKER}.step",
                find="pressed = self._held_until > self._settled",
                put="pressed = self._held_until > 0",
            ),
        ),
    ),
)
"""Those that the simulation shows."""

WORKERS_SHOWN_BY_TESTS: Final = (
    Mutant(
        name="R09_a_full_outbox_in_another_worker_holds_no_source",
        breaks="Output that is not decided grows as long as anybody reads.",
        tests=f"{_SIMULATED_TESTS}::test_r09_a_full_outbox_in_one_worker_holds_the_sources_of_all {_WORKER_TESTS}",
        edits=(
            Edit(
                function=f"{WORKER}.handle",
                find="case HoldSources(subtask=full, until=until) if full not in self._here:",
                put="case HoldSources(subtask=full, until=until) if False:",
            ),
        ),
    ),
    Mutant(
        name="R10_every_worker_publishes_everything",
        breaks="Workers shut each other out, over and over.",
        tests=_WORKER_TESTS,
        edits=(
            Edit(
                function=f"{WORKER}.handle",
                find="if self._publishes(publisher) and not self._overtaken(publisher, order.checkpoint):",
                put="if not self._overtaken(publisher, order.checkpoint):",
            ),
        ),
    ),
    Mutant(
        name="R17_a_worker_that_is_gone_has_said_enough",
        breaks="A job ends although nobody knows whether its last output can be read.",
        tests=_REMOTE_TESTS,
        edits=(
            Edit(
                function=f"{REMOTE}.wait_visible",
                find="        self._failed = self._raise\n",
                put="        self._failed = self._nothing_more\n",
            ),
        ),
    ),
    Mutant(
        name="R01_the_next_attempt_begins_before_the_old_one_is_closed",
        breaks="Two attempts run in one worker.",
        tests=_HOST_TESTS,
        edits=(
            Edit(
                function=f"{HOST}._deploy",
                find="        self._close()\n        try:",
                put="        self._failed = False\n        try:",
            ),
        ),
    ),
    Mutant(
        name="R21_a_late_deploy_of_an_older_attempt_is_obeyed",
        breaks="The attempt that runs is closed for one that is over.",
        tests=_HOST_TESTS,
        edits=(
            Edit(
                function=f"{HOST}._deploy",
                find="part.attempt >= deploy.attempt:",
                put="part.attempt == deploy.attempt:",
            ),
        ),
    ),
    Mutant(
        name="R21_a_late_deploy_begins_an_attempt_that_was_released",
        breaks="A worker runs its part of an attempt of which it has said that nothing is open.",
        tests=_HOST_TESTS,
        edits=(
            Edit(function=f"{HOST}._deploy", find="if deploy.attempt <= self._over_until:", put="if False:"),
        ),
    ),
    Mutant(
        name="R21_a_deploy_that_comes_twice_begins_anew",
        breaks="What the attempt has done so far in this worker is gone.",
        tests=_HOST_TESTS,
        edits=(
            Edit(
                function=f"{HOST}._deploy",
                find="part.attempt >= deploy.attempt:",
                put="part.attempt > deploy.attempt:",
            ),
        ),
    ),
    Mutant(
        name="R21_a_late_release_of_an_older_attempt_closes_the_newer",
        breaks="A worker closes its part of the attempt that runs.",
        tests=_HOST_TESTS,
        edits=(
            Edit(
                function=f"{HOST}._handle",
                find="if part is None or part.attempt <= attempt:",
                put="if True:",
            ),
        ),
    ),
    Mutant(
        name="R17_a_worker_waits_for_what_another_attempt_published",
        breaks="Output of the attempt before is waited for by the next, and counts for it.",
        tests=_HOST_TESTS,
        edits=(
            Edit(
                function=f"{HOST}._handle",
                find="if part is not None and part.attempt == attempt:",
                put="if part is not None:",
            ),
        ),
    ),
    *(
        Mutant(
            name=name,
            breaks=breaks,
            tests=_REMOTE_TESTS,
            edits=(
                Edit(
                    function=f"{REMOTE}._heard",
                    find=f"                if of == attempt:\n                    {then}",
                    put=f"                if True:\n                    {then}",
                ),
            ),
        )
        for name, breaks, then in (
            (
                "R21_deployed_is_believed_of_any_attempt",
                "An attempt counts as deployed in a worker that has not heard of it.",
                "self._deployed",
            ),
            (
                "R21_a_failure_of_any_attempt_counts",
                "The failure of the attempt before ends the next one too.",
                "self._failed",
            ),
            (
                "R01_released_is_believed_of_any_attempt",
                "The next attempt begins while a worker has this one open.",
                "self._released",
            ),
            (
                "R17_visible_is_believed_of_any_attempt",
                "A job ends before its output can be read.",
                "self._visible",
            ),
        )
    ),
    Mutant(
        name="D1_a_worker_that_is_gone_is_not_missed",
        breaks="An attempt goes on without one of its workers.",
        tests=_REMOTE_TESTS,
        edits=(Edit(function=f"{REMOTE}._gone", find="if not self._starting:", put="if True:"),),
    ),
    Mutant(
        name="D1_nobody_is_judged",
        breaks="A worker that is silent or hangs stays in the attempt.",
        tests=_REMOTE_TESTS,
        edits=(
            Edit(
                function=f"{REMOTE}._look",
                find="for judged in self._liveness.look(now_ms):",
                put="for judged in ():",
            ),
        ),
    ),
    Mutant(
        name="D1_who_was_given_up_is_left_alone",
        breaks="A worker that hangs goes on some day, with its attempt open.",
        tests=_REMOTE_TESTS,
        edits=(Edit(function=f"{REMOTE}._give_up", find="        self._pool.kill(worker)\n", put=""),),
    ),
    Mutant(
        name="R01_who_does_not_release_is_left_alone",
        breaks="The next attempt begins while a worker has this one open.",
        tests=_REMOTE_TESTS,
        edits=(Edit(function=f"{REMOTE}.release", find="            self._pool.kill(worker)\n", put=""),),
    ),
)
