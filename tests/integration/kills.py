"""Kills a running job at random moments, again and again, and audits what came of it.

    python -m tests.integration.kills --count 50 [--seed S] [--workers 1] [--minutes M] [--store s3]

Pass-through and keyed count, both backends, parallelism 1 and 3, each with its share of the kills. Checkpoints are in
a directory, or in an S3 server that loses and doubles answers. The result is printed last; the exit code is 0 only
when every audit passed.
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
from examples.job_process import JobProcess
from tests.integration.scenario import STOP_TIMEOUT_S, Feeder, Scenario, spread
from tests.integration.unreliable_s3 import UnreliableS3, unreliable_s3

STORES = DIRECTORY, S3 = "directory", "s3"

STARTING_SHARE = 0.3
"""Of all kills: those that may come before the job runs, or while it recovers."""
STARTING_S = (0.5, 3.5)
RUNNING_S = (0.1, 2.5)
"""From the start of the process, or from when the job runs, to the end."""

OVERLAPPING = {"checkpoint.interval": "20ms", "checkpoint.max_concurrent": "3"}
"""Settings of half of the runs: checkpoints that begin before the one before is decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one run came to."""

    kills: int
    attempts: int
    records: int
    losses: int
    duplicates: int
    failure: str


def run_kills(scenario: Scenario, kills: int, chance: random.Random) -> Outcome:
    """Feed, kill so many times, drain, stop, audit. Failures are told in the outcome."""
    witness, process = scenario.witness(), scenario.process()
    feeder = Feeder(scenario.bootstrap, scenario.topic_in, seed=chance.randrange(2**32))
    done, losses, duplicates, records, failure = 0, 0, 0, 0, ""
    feeder.start()
    witness.start()
    try:
        for _ in range(kills):
            _run_for_a_while(scenario, process, chance)
            process.kill()
            done += 1
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
    )


def _run_for_a_while(scenario: Scenario, process: JobProcess, chance: random.Random) -> None:
    """Some way into the start of the job, or into its run."""
    span_s = STARTING_S
    if chance.random() < STARTING_SHARE:
        process.start()
    else:
        span_s = RUNNING_S
        scenario.start(process)
    with suppress(subprocess.TimeoutExpired):
        code = process.wait(chance.uniform(*span_s))
        raise AssertionError(f"the job ended by itself with {code}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Kills a running job at random moments and audits it.")
    parser.add_argument("--count", type=int, default=10, help="kills in all")
    parser.add_argument("--minutes", type=float, help="go on with further rounds of kills for so long")
    parser.add_argument("--seed", type=int, help="of the moments and of the spread")
    parser.add_argument("--store", choices=STORES, default=DIRECTORY, help="where checkpoints are kept")
    parser.add_argument("--workers", type=int, default=1, help="processes of one job; 1 in this version")
    chosen = parser.parse_args(arguments)
    if chosen.workers != 1 or chosen.count < 1:
        parser.error("this version runs a job in 1 worker, and kills it at least once")
    seed = random.SystemRandom().randrange(2**32) if chosen.seed is None else chosen.seed
    bootstrap = dev_broker.up()
    print(f"seed {seed}, Kafka at {bootstrap}", flush=True)
    end = time.monotonic() + 60 * (chosen.minutes or 0)
    outcomes = run_round(bootstrap, chosen.count, random.Random(seed), chosen.store)
    while time.monotonic() < end and not any(outcome.failure for outcome in outcomes):
        seed += 1
        print(f"seed {seed}", flush=True)
        outcomes += run_round(bootstrap, chosen.count, random.Random(seed), chosen.store)
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


def run_round(bootstrap: str, count: int, chance: random.Random, store: str = DIRECTORY) -> list[Outcome]:
    """So many kills, spread evenly; folders of runs that failed are kept and named."""
    plan = spread(count, chance)
    for job, backend, parallelism, kills in plan:
        print(f"  planned: {job:5} {backend:7} parallelism {parallelism}: {kills} kills")
    with ExitStack() as opened:
        s3 = opened.enter_context(unreliable_s3(random.Random(chance.random()))) if store == S3 else None
        outcomes = [_run_one(bootstrap, *one, chance, s3) for one in plan]
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
) -> Outcome:
    folder = Path(tempfile.mkdtemp(prefix="kills-"))
    settings = {**(OVERLAPPING if parallelism > 1 else {}), **(s3.settings(folder) if s3 else {})}
    scenario = Scenario.make(
        bootstrap, folder, job=job, backend=backend, parallelism=parallelism, settings=settings
    )
    outcome = run_kills(scenario, kills, chance)
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
