"""What a seed stands for: the job, and the faults with which it is run."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from processor.simulation.case import Case
from processor.simulation.faults import Faults
from processor.simulation.injection import NO_LIMIT, Limit
from processor.simulation.operator import run_and_rescale, run_and_stop
from processor.simulation.run import Result, run_seed
from tests.simulation.jobs import JOBS

LEVELS = ("heavy", "light", "none")

KIND_IS_ON = 0.65
"""Of each kind of fault, in a run: without some of them, others get further."""

TIMES = (0.3, 1.0, 1.0, 2.5)
"""How often, beside what the level says."""


OVER_ROCKSDB = 0.25
"""Of all runs. It takes longer, and what is to be seen of most faults is to be seen over memory."""


WORKERS = (1, 1, 1, 2, 3)
"""Processes that share the job."""

OF_WORKERS = "streams_break"
"""What can only go wrong between processes."""

OF_LEADERS = "leaders_lost"
LEADERS_LOST = 0.35
"""Of all runs: whoever waits for a partition to be led again gets no further meanwhile."""


def job_of(seed: int) -> str:
    return Random(f"{seed}/job").choice(list(JOBS))


RESCALED = 0.3
"""Of the runs in which nothing else is done to the job from outside: it is rescaled while it runs."""


def case_of(seed: int, job: str) -> Case:
    case = JOBS[job](Random(f"{seed}/case"))
    chance = Random(f"{seed}/rescaled")
    if case.script is not run_and_stop or chance.random() >= RESCALED:
        return case
    parallelisms = chance.sample((1, 2, 3, 4), chance.choice((1, 2, 3)))
    before_ms = [chance.randrange(100, 5_000) for _ in parallelisms]
    return replace(case, script=run_and_rescale(before_ms=before_ms, parallelisms=parallelisms))


def faults_of(seed: int, level: str) -> Faults:
    """A choice among the faults of the level, and how often they come."""
    match level:
        case "heavy":
            all_of_them = Faults.heavy()
        case "light":
            all_of_them = Faults.light()
        case "none":
            return Faults.none()
        case _:
            raise ValueError(f"there is no level {level!r}: choose one of {', '.join(LEVELS)}")
    chance = Random(f"{seed}/faults")
    # Draws of their own: what seeds stood for before there were these, they stand for still.
    own = (OF_WORKERS, OF_LEADERS)
    off = [kind for kind in all_of_them.kinds() if kind not in own and chance.random() > KIND_IS_ON]
    if Random(f"{seed}/faults of workers").random() > KIND_IS_ON:
        off.append(OF_WORKERS)
    if Random(f"{seed}/faults of leaders").random() > LEADERS_LOST:
        off.append(OF_LEADERS)
    return all_of_them.without(*off).times(chance.choice(TIMES))


def runs_over_rocksdb(seed: int) -> bool:
    return Random(f"{seed}/rocksdb").random() < OVER_ROCKSDB


def workers_of(seed: int) -> int:
    return Random(f"{seed}/workers").choice(WORKERS)


def run(
    seed: int,
    *,
    job: str | None = None,
    level: str = "heavy",
    limit: Limit = NO_LIMIT,
    keep_trace: bool = False,
    workers: int | None = None,
) -> Result:
    """One seed, audited. ``workers``: instead of those that it stands for."""
    case = case_of(seed, job or job_of(seed))
    return run_seed(
        case,
        seed,
        faults_of(seed, level),
        limit=limit,
        keep_trace=keep_trace,
        over_rocksdb=runs_over_rocksdb(seed),
        workers=workers_of(seed) if workers is None else workers,
    )


def command(seed: int, *, job: str, level: str, limit: Limit = NO_LIMIT, workers: int | None = None) -> str:
    """What runs the seed again, with its trace."""
    words = ["python -m tests.simulation.seeds", f"--first {seed} --seeds 1 --job {job} --level {level}"]
    if workers is not None:
        words.append(f"--workers {workers}")
    if limit.first is not None:
        words.append(f"--faults-first {limit.first}")
    if limit.without:
        words.append(f"--faults-without {','.join(map(str, sorted(limit.without)))}")
    return " ".join([*words, "--trace"])
