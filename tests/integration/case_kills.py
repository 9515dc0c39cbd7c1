"""Kills the simulation's jobs on a real broker at random moments, and audits what came of it.

    python -m tests.integration.case_kills --jobs all --count 20 [--seed S] [--workers N]

So many kills of each job; in several workers it is any of its processes that is killed, or stopped for a while. One
that ends by itself is audited and run again with new input until it was killed so often. The result is printed last;
the exit code is 0 only when every audit passed.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random, SystemRandom

from connectors.kafka import dev_broker
from examples.job_process import reached
from tests.integration.case_run import CaseRun
from tests.integration.scenario import REACH_TIMEOUT_S
from tests.integration.simulated_jobs import REAL
from tests.integration.worker_kills import ACTS, COORDINATOR
from tests.waiting import wait_until

STARTING_SHARE = 0.3
"""So many of the kills come while the job starts or recovers, the others while it runs."""
STARTING_S = (0.2, 3.0)
RUNNING_S = (0.0, 2.0)
ROUNDS_MAX = 50
RESTORED = "restore"
RESCALED = (
    "overtaken-rescaled",
    "kinds",
    "expiring",
    "collect",
    "broadcast",
    "broadcast-overtaken",
    "every-state",
)
"""May have another parallelism at every start: what was in flight, and state, is dealt out anew."""
PARALLELISMS = (1, 2, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseOutcome:
    """What the kills of one job came to."""

    job: str
    kills: int = 0
    runs: int = 0
    attempts: int = 0
    records: int = 0
    losses: int = 0
    duplicates: int = 0
    failure: str = ""

    def line(self) -> str:
        return (
            f"{self.job}: {self.kills} kills in {self.runs} runs, {self.attempts} attempts, "
            f"{self.records:,} records, losses {self.losses}, duplicates {self.duplicates}: "
            f"{'FAILED' if self.failure else 'passed'}"
        )

    def and_then(self, other: CaseOutcome) -> CaseOutcome:
        return CaseOutcome(
            job=self.job,
            kills=self.kills + other.kills,
            runs=self.runs + other.runs,
            attempts=self.attempts + other.attempts,
            records=self.records + other.records,
            losses=self.losses + other.losses,
            duplicates=self.duplicates + other.duplicates,
            failure=self.failure or other.failure,
        )


def kill_case(bootstrap: str, job: str, kills: int, seed: int, workers: int) -> CaseOutcome:
    """Until it was killed so often, or an audit did not pass; then its folder is kept and named."""
    chance = Random(f"{seed}/{job}")
    outcome = CaseOutcome(job=job)
    while outcome.kills < kills and not outcome.failure and outcome.runs < ROUNDS_MAX:
        folder = Path(tempfile.mkdtemp(prefix=f"kills-{job}-"))
        backend = chance.choice(("memory", "rocksdb"))
        run = CaseRun.make(bootstrap, folder, job, chance.randrange(2**32), backend=backend, workers=workers)
        found = run_once(run, kills - outcome.kills, chance)
        if found.failure:
            kept = f"{job} seed {run.seed} on {backend}, kept in {folder}:\n{found.failure}"
            outcome = outcome.and_then(CaseOutcome(job=job, kills=found.kills, runs=1, failure=kept))
        else:
            shutil.rmtree(folder, ignore_errors=True)
            outcome = outcome.and_then(found)
    return outcome


def run_once(run: CaseRun, kills: int, chance: Random) -> CaseOutcome:
    """Feed, kill at most so many times, let it finish, audit. Failures are told in the outcome."""
    done, reports, failure = 0, [], ""
    try:
        with run.fed_and_watched(chance) as witnesses:
            done = strike(run, kills, chance)
            run.finish()
        reports = run.audit(witnesses)
        failure = "\n".join(report.text() for report in reports if not report.passed)
    except Exception as error:
        failure = f"{type(error).__name__}: {error}\nthe job said:\n{run.process.said()}"

    def most(figure: str) -> int:
        return max((int(report.figure("1", figure)) for report in reports), default=0)

    return CaseOutcome(
        job=run.name,
        kills=done,
        runs=1,
        attempts=reached(run.checkpoints, run.case.graph.name).attempts,
        records=most("records in"),
        losses=most("losses"),
        duplicates=most("duplicates"),
        failure=failure,
    )


def strike(run: CaseRun, kills: int, chance: Random) -> int:
    """Start and kill so often, then start once more; returns how often it was killed. A job that was to be restored
    is stopped with a savepoint half-way, and goes on from there in another parallelism."""
    acts = list(ACTS) if run.workers > 1 else [COORDINATOR]
    for done in range(kills):
        if run.kind == RESTORED and done == kills // 2:
            _started(run, chance)
            run.stop_with_savepoint()
            run.parallelism = chance.choice([each for each in PARALLELISMS if each != run.parallelism])
        _started(run, chance)
        code = wait_for_the_moment(run, chance)
        if code is not None:
            if code == 0 and run.case.input_first:
                return done
            raise AssertionError(f"the job ended by itself with {code}")
        ACTS[chance.choice(acts)](run.process, chance)
    _started(run, chance)
    return kills


def _started(run: CaseRun, chance: Random) -> None:
    """Start it if it is not there, some jobs with another parallelism than before."""
    if run.there():
        return
    code = run.process.exit_code()
    assert code in (None, 0, -signal.SIGKILL), f"the job ended by itself with {code}"
    if run.name in RESCALED:
        run.parallelism = chance.choice(PARALLELISMS)
    run.start()


def wait_for_the_moment(run: CaseRun, chance: Random) -> int | None:
    """Some way into its start or its run; its exit code, if it ends before."""
    span_s = STARTING_S
    if chance.random() > STARTING_SHARE:
        wait_until(run.running, REACH_TIMEOUT_S, f"it runs:\n{run.process.said()}")
        span_s = RUNNING_S
    with suppress(subprocess.TimeoutExpired):
        return run.process.wait(chance.uniform(*span_s))
    return None


def run_all(
    bootstrap: str, jobs: Sequence[str], kills: int, seed: int, workers: int = 1
) -> list[CaseOutcome]:
    """So many kills of each job."""
    outcomes = []
    for job in jobs:
        outcomes.append(kill_case(bootstrap, job, kills, seed, workers))
        print(f"  {outcomes[-1].line()}", flush=True)
    return outcomes


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Kills the simulation's jobs on a real broker.")
    parser.add_argument("--jobs", default="all", help="all, or names separated by commas")
    parser.add_argument("--count", type=int, default=20, help="kills of each")
    parser.add_argument("--seed", type=int, help="of jobs, input and moments")
    parser.add_argument("--workers", type=int, default=1, help="worker processes of one job")
    chosen = parser.parse_args(arguments)
    jobs = list(REAL) if chosen.jobs == "all" else chosen.jobs.split(",")
    unknown = [job for job in jobs if job not in REAL]
    if unknown or chosen.count < 1:
        parser.error(f"jobs are {', '.join(REAL)}, each killed at least once")
    seed = SystemRandom().randrange(2**32) if chosen.seed is None else chosen.seed
    bootstrap = dev_broker.up()
    print(f"seed {seed}, Kafka at {bootstrap}", flush=True)
    outcomes = run_all(bootstrap, jobs, chosen.count, seed, chosen.workers)
    failed = [outcome for outcome in outcomes if outcome.failure]
    for outcome in failed:
        print(f"\n{outcome.failure}")
    print(
        f"kills {sum(o.kills for o in outcomes)} in {sum(o.runs for o in outcomes)} runs of {len(jobs)} jobs, "
        f"losses {sum(o.losses for o in outcomes)}, duplicates {sum(o.duplicates for o in outcomes)}: "
        f"{'FAILED in ' + ', '.join(o.job for o in failed) if failed else 'all audits passed'}"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
