"""Kills a running job at random moments, again and again, and audits what came of it.

    python -m tests.integration.kills --count 50 [--seed S] [--workers N] [--minutes M] [--store s3]

Pass-through and keyed count, both backends, parallelism 1 and 3, each with its share of the kills. Checkpoints are in
a directory, or in an S3 server that loses and doubles answers. With several workers it is a worker, the coordinator,
or both, that are killed or stopped for a while. The result is printed last; the exit code is 0 only when every audit
passed.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from connectors.kafka import dev_broker
from examples.job_process import JobProcess, Reached
from tests.integration.scenario import REACH_TIMEOUT_S, STOP_TIMEOUT_S, Feeder, Scenario, spread
from tests.integration.unreliable_s3 import UnreliableS3, unreliable_s3
from tests.integration.worker_kills import ACTS, COORDINATOR, SETTINGS, WORKER
from tests.waiting import wait_until

STORES = DIRECTORY, S3 = "directory", "s3"

STARTING_SHARE = 0.3
"""Of all kills: those that may come before the job runs, or while it recovers."""
STARTING_S = (0.5, 3.5)
RUNNING_S = (0.1, 2.5)
"""From the start of the process, or from when the job runs, to the end."""

SLOW_S = 4.0
"""A recovery that took longer is shown."""

OVERLAPPING = {"checkpoint.interval": "20ms", "checkpoint.max_concurrent": "3"}
"""Settings of half of the runs: checkpoints that begin before the one before is decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """From the death of a worker to the first output of a new attempt that can be read."""

    seconds: float
    said: str
    """The end of the job's log by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one run came to."""

    kills: int
    attempts: int
    records: int
    losses: int
    duplicates: int
    failure: str
    recoveries: tuple[Recovery, ...] = ()


def run_kills(
    scenario: Scenario,
    kills: int,
    chance: random.Random,
    acts: Sequence[str] = (COORDINATOR,),
    *,
    starting_share: float = STARTING_SHARE,
) -> Outcome:
    """Feed, kill so many times, drain, stop, audit. Failures are told in the outcome. ``acts``: who is killed, in
    turn; ``starting_share``: of the kills, those that meet a job which is still starting."""
    witness, process = scenario.witness(), scenario.process()
    feeder = Feeder(scenario.bootstrap, scenario.topic_in, seed=chance.randrange(2**32))
    done, losses, duplicates, records, failure = 0, 0, 0, 0, ""
    recoveries: list[Recovery] = []
    feeder.start()
    witness.start()
    try:
        for number in range(kills):
            _run_for_a_while(scenario, process, chance, starting_share)
            act = acts[number % len(acts)]
            before = scenario.reached()
            begun_s = time.monotonic()
            ACTS[act](process, chance)
            done += 1
            if act == WORKER:
                _wait_recovered(scenario, process, before)
                recoveries.append(Recovery(seconds=time.monotonic() - begun_s, said=process.said()))
        if process.exit_code() is not None:
            process.start()
        feeder.stop()
        scenario.drain(process)
        code = process.stop(STOP_TIMEOUT_S)
        if code != 0:
            raise AssertionError(f"the job stopped with exit code {code}")
        witness.stop()
        reports = scenario.audit(witness)
        losses = max(int(report.figure("1", "losses")) for report in reports)
        duplicates = max(int(report.figure("1", "duplicates")) for report in reports)
        records = int(reports[0].figure("1", "records in"))
        failure = "\n".join(report.text() for report in reports if not report.passed)
        open_ = scenario.open_transactions()
        if open_:
            failure += f"\ntransactions left open: {open_}"
    except Exception as error:
        failure = f"{type(error).__name__}: {error}\nthe job said:\n{process.said()}"
    finally:
        process.kill()
    attempts = scenario.reached().attempts
    return Outcome(
        kills=done,
        attempts=attempts,
        records=records,
        losses=losses,
        duplicates=duplicates,
        failure=failure,
        recoveries=tuple(recoveries),
    )


def _wait_recovered(scenario: Scenario, process: JobProcess, before: Reached) -> None:
    """Until an attempt without the dead worker has published."""
    # One that was still recovering has it replaced, and goes on.
    attempt = before.attempts + (before.published_by == before.attempts)

    def published() -> bool:
        assert process.exit_code() is None, "the job ended by itself"
        return scenario.reached().published_by >= attempt

    wait_until(published, REACH_TIMEOUT_S, "a new attempt publishes")


def _run_for_a_while(
    scenario: Scenario, process: JobProcess, chance: random.Random, starting_share: float
) -> None:
    """Some way into the start of the job, or into its run."""
    span_s = RUNNING_S
    if process.started and process.exit_code() is None:
        pass  # only a worker was killed, or somebody slept
    elif chance.random() < starting_share:
        span_s = STARTING_S
        process.start()
    else:
        scenario.start(process)
    with suppress(subprocess.TimeoutExpired):
        code = process.wait(chance.uniform(*span_s))
        raise AssertionError(f"the job ended by itself with {code}")


def _tell_recoveries(recoveries: Sequence[Recovery]) -> None:
    if not recoveries:
        return
    by_time = sorted(recoveries, key=lambda recovery: recovery.seconds)
    median, p99 = (by_time[len(by_time) * share // 100].seconds for share in (50, 99))
    slowest = by_time[-1]
    if slowest.seconds > SLOW_S:
        print(f"\nthe slowest recovery took {slowest.seconds:.2f} s; the job said:\n{slowest.said}\n")
    print(
        f"from the death of a worker to new output: median {median:.2f} s, p99 {p99:.2f} s of {len(by_time)}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Kills a running job at random moments and audits it.")
    parser.add_argument("--count", type=int, default=10, help="kills in all")
    parser.add_argument("--minutes", type=float, help="go on with further rounds of kills for so long")
    parser.add_argument("--seed", type=int, help="of the moments and of the spread")
    parser.add_argument("--store", choices=STORES, default=DIRECTORY, help="where checkpoints are kept")
    parser.add_argument("--workers", type=int, default=1, help="worker processes of one job")
    chosen = parser.parse_args(arguments)
    if chosen.workers < 1 or chosen.count < 1:
        parser.error("a job has at least 1 worker, and is killed at least once")
    seed = random.SystemRandom().randrange(2**32) if chosen.seed is None else chosen.seed
    bootstrap = dev_broker.up()
    print(f"seed {seed}, Kafka at {bootstrap}", flush=True)
    end = time.monotonic() + 60 * (chosen.minutes or 0)
    outcomes = run_round(bootstrap, chosen.count, random.Random(seed), chosen.store, chosen.workers)
    while time.monotonic() < end and not any(outcome.failure for outcome in outcomes):
        seed += 1
        print(f"seed {seed}", flush=True)
        outcomes += run_round(bootstrap, chosen.count, random.Random(seed), chosen.store, chosen.workers)
    _tell_recoveries([recovery for outcome in outcomes for recovery in outcome.recoveries])
    failed = [outcome for outcome in outcomes if outcome.failure]
    for outcome in failed:
        print(f"\n{outcome.failure}")
    print(
        f"kills {sum(o.kills for o in outcomes)} in {len(outcomes)} runs, "
        f"attempts {sum(o.attempts for o in outcomes)}, records {sum(o.records for o in outcomes):,}, "
        f"losses {sum(o.losses for o in outcomes)}, duplicates {sum(o.duplicates for o in outcomes)}: "
        f"{'FAILED in ' + str(len(failed)) + ' runs' if failed else 'all audits passed'}"
    )
    return 1 if failed else 0


def run_round(
    bootstrap: str, count: int, chance: random.Random, store: str = DIRECTORY, workers: int = 1
) -> list[Outcome]:
    """So many kills, spread evenly; folders of runs that failed are kept and named."""
    plan = spread(count, chance)
    for job, backend, parallelism, kills in plan:
        print(f"  planned: {job:5} {backend:7} parallelism {parallelism}: {kills} kills")
    with ExitStack() as opened:
        s3 = opened.enter_context(unreliable_s3(random.Random(chance.random()))) if store == S3 else None
        outcomes = [_run_one(bootstrap, *one, chance, s3, workers) for one in plan]
        if s3 is not None:
            print(f"  of requests for places of the log: {s3.told()}")
    return outcomes


def _run_one(
    bootstrap: str,
    job: str,
    backend: str,
    parallelism: int,
    kills: int,
    chance: random.Random,
    s3: UnreliableS3 | None,
    workers: int,
) -> Outcome:
    folder = Path(tempfile.mkdtemp(prefix="kills-"))
    settings = {**(OVERLAPPING if parallelism > 1 else {}), **(s3.settings(folder) if s3 else {})}
    scenario = Scenario.make(
        bootstrap, folder, job=job, backend=backend, parallelism=parallelism, settings=settings
    )
    acts: Sequence[str] = (COORDINATOR,)
    if workers > 1:
        scenario = scenario.with_settings({"runtime.workers": str(workers), **SETTINGS})
        acts = chance.sample(tuple(ACTS), len(ACTS))
    outcome = run_kills(scenario, kills, chance, acts)
    kept = f", kept in {folder}"
    if not outcome.failure:
        shutil.rmtree(folder, ignore_errors=True)
        kept = ""
    print(
        f"  {job:5} {backend:7} parallelism {parallelism}: {outcome.kills} kills, "
        f"{outcome.attempts} attempts, {outcome.records:,} records, "
        f"losses {outcome.losses}, duplicates {outcome.duplicates}: "
        f"{'FAILED' if outcome.failure else 'passed'}{kept}",
        flush=True,
    )
    return outcome


if __name__ == "__main__":
    raise SystemExit(main())
