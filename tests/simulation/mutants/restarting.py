"""Mutants of what follows a failure, and of who is taken for lost (D1, D2). Tests show them: a job that is started
again too often, or once too seldom, loses nothing and doubles nothing.
"""

from __future__ import annotations

from typing import Final

from tests.simulation.mutants.mutant import Edit, Mutant

STRATEGY: Final = "processor.protocol.restart_strategy:RestartStrategy"
HISTORY: Final = "processor.protocol.failure_history:FailureHistory"
LIVENESS: Final = "processor.protocol.liveness:Liveness"

_STRATEGY_TESTS: Final = "tests/protocol/test_restart_strategy.py"
_HISTORY_TESTS: Final = "tests/protocol/test_failure_history.py"
_LIVENESS_TESTS: Final = "tests/protocol/test_liveness.py"

RESTARTING: Final = (
    Mutant(
        name="D2_running_long_earns_restarts_without_progress",
        breaks="A job that fails every quarter of an hour, and publishes nothing, is started again for ever.",
        tests=_STRATEGY_TESTS,
        edits=(
            Edit(
                function="processor.protocol.restart_strategy:AttemptEnd.ran_well",
                find="return self.progressed and self.ran_ms",
                put="return self.ran_ms",
            ),
        ),
    ),
    Mutant(
        name="D2_progress_earns_restarts_at_once",
        breaks="A job that publishes one checkpoint and fails is started again for ever.",
        tests=_STRATEGY_TESTS,
        edits=(
            Edit(
                function="processor.protocol.restart_strategy:AttemptEnd.ran_well",
                find="self.progressed and self.ran_ms >= reset_after_ms",
                put="self.progressed",
            ),
        ),
    ),
    Mutant(
        name="D2_one_restart_more",
        breaks="There is one restart more than was set.",
        tests=_STRATEGY_TESTS,
        edits=(
            Edit(
                function=f"{STRATEGY}._counted",
                find="self._in_a_row >= policy.restarts_max",
                put="self._in_a_row > policy.restarts_max",
            ),
        ),
    ),
    Mutant(
        name="D2_a_rate_counts_failures_of_all_time",
        breaks="What failed long ago counts for the interval of now.",
        tests=_STRATEGY_TESTS,
        edits=(
            Edit(function=f"{STRATEGY}._seldom", find="while self._failed_ms and", put="while False and"),
        ),
    ),
    Mutant(
        name="D2_pauses_never_begin_anew",
        breaks="After a good run of months the first pause is as long as the last one before.",
        tests=_STRATEGY_TESTS,
        edits=(
            Edit(
                function=f"{STRATEGY}._longer",
                find="first = self._in_a_row == 1",
                put="first = self._delay_ms == 0",
            ),
        ),
    ),
    Mutant(
        name="D2_pauses_grow_from_what_chance_has_left_of_them",
        breaks="With jitter pauses do not come to the longest.",
        tests=_STRATEGY_TESTS,
        edits=(
            Edit(
                function=f"{STRATEGY}._longer",
                find="        return round(self._delay_ms * (1 - policy.jitter * drawn / DRAWN_BELOW))\n",
                put="        self._delay_ms *= 1 - policy.jitter * drawn / DRAWN_BELOW\n"
                "        return round(self._delay_ms)\n",
            ),
        ),
    ),
    Mutant(
        name="D2_chance_makes_pauses_longer_than_the_longest",
        breaks="What is set as the longest pause is not.",
        tests=_STRATEGY_TESTS,
        edits=(Edit(function=f"{STRATEGY}._longer", find="(1 - policy.jitter", put="(1 + policy.jitter"),),
    ),
    Mutant(
        name="D2_an_outage_is_said_to_come_again",
        breaks="Of a broker that is away it is said that no restart will mend it.",
        tests=_HISTORY_TESTS,
        edits=(
            Edit(
                function=f"{HISTORY}._again",
                find="if not own or",
                put="if",
            ),
        ),
    ),
    Mutant(
        name="D2_a_failure_after_progress_is_said_to_come_again",
        breaks="Of a job that comes further each time it is said that it does not.",
        tests=_HISTORY_TESTS,
        edits=(
            Edit(function=f"{HISTORY}._again", find="if failure.progressed and not record:", put="if False:"),
        ),
    ),
    Mutant(
        name="D2_failures_before_progress_count",
        breaks="What failed there once, and was got over, makes the next failure there one that comes again.",
        tests=_HISTORY_TESTS,
        edits=(
            Edit(
                function=f"{HISTORY}._again",
                find="if before.progressed and not record:",
                put="if False:",
            ),
        ),
    ),
    Mutant(
        name="D2_only_the_failure_right_before_is_looked_at",
        breaks="Two bad records in two partitions take turns, and nobody is told.",
        tests=_HISTORY_TESTS,
        edits=(
            Edit(function=f"{HISTORY}._again", find="if before.progressed and not record:", put="if True:"),
        ),
    ),
    Mutant(
        name="D2_progress_elsewhere_speaks_for_a_bad_record",
        breaks="One bad record of many partitions is never named, for the others go on.",
        tests=_HISTORY_TESTS,
        edits=(
            Edit(
                function=f"{HISTORY}._again",
                find="record = failure.where.offset is not None",
                put="record = False",
            ),
        ),
    ),
    Mutant(
        name="D2_any_failure_at_the_place_is_the_same",
        breaks="A service that fails in ever new ways counts as a record that can't be handled.",
        tests=_HISTORY_TESTS,
        edits=(
            Edit(
                function="processor.protocol.failure_history:_same",
                find="(before.where, before.error, before.cause) == (failure.where, failure.error, failure.cause)",
                put="before.where == failure.where",
            ),
        ),
    ),
    Mutant(
        name="D1_a_judge_that_slept_judges",
        breaks="A coordinator that was stopped for a minute takes all its workers for lost.",
        tests=_LIVENESS_TESTS,
        edits=(
            Edit(
                function=f"{LIVENESS}.look",
                find="if 2 * (now_ms - self._looked_ms) > self._policy.heartbeat_timeout_ms:",
                put="if False:",
            ),
        ),
    ),
    Mutant(
        name="D1_every_look_is_an_awakening",
        breaks="Nobody is ever lost.",
        tests=_LIVENESS_TESTS,
        edits=(
            Edit(
                function=f"{LIVENESS}.look",
                find="if 2 * (now_ms - self._looked_ms) > self._policy.heartbeat_timeout_ms:",
                put="if True:",
            ),
        ),
    ),
    Mutant(
        name="D1_a_machine_that_slept_has_workers_that_hang",
        breaks="A laptop is opened, and all workers are ended for not having turned over night.",
        tests=_LIVENESS_TESTS,
        edits=(
            Edit(
                function=f"{LIVENESS}._judge",
                find="still_ms = min(heard.turn_age_ms, awake_ms)",
                put="still_ms = heard.turn_age_ms",
            ),
        ),
    ),
    Mutant(
        name="D1_heard_is_well",
        breaks="A worker that is in an endless loop is never found.",
        tests=_LIVENESS_TESTS,
        edits=(
            Edit(
                function=f"{LIVENESS}._judge",
                find="if still_ms >= self._policy.hang_timeout_ms:",
                put="if False:",
            ),
        ),
    ),
    Mutant(
        name="D1_where_it_stands_is_asked_once_in_a_life",
        breaks="A worker that was slow once hangs without a word later.",
        tests=_LIVENESS_TESTS,
        edits=(
            Edit(
                function=f"{LIVENESS}.heard",
                find="asked=before.asked and not turned",
                put="asked=before.asked",
            ),
        ),
    ),
    Mutant(
        name="R21_a_heartbeat_of_one_that_was_given_up_counts",
        breaks="A worker that was given up for lost is watched again because of a late heartbeat.",
        tests=_LIVENESS_TESTS,
        edits=(
            Edit(
                function=f"{LIVENESS}.heard",
                find="            return False\n",
                put="            before = _Heard(at_ms=now_ms, turn_age_ms=0)\n",
            ),
        ),
    ),
)
