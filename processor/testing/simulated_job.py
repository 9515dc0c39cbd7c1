"""``simulate``: the whole daemon of a job in a world where everything goes wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from processor.audit.expectation import Audit
from processor.plugins import installed_plugins
from processor.simulation.case import Case, Input
from processor.simulation.faults import Faults
from processor.simulation.operator import run_and_stop
from processor.simulation.run import Result, run_seed
from processor.simulation.simulation import Simulation
from processor.simulation.verdict import written
from processor.stream.job import Job

TRACE_LINES = 60
"""Of a failing run, that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fed:
    """One record in a part (partition) of what a source step reads, as bytes; texts are encoded as UTF-8."""

    value: bytes | str | None
    key: bytes | str | None = None
    part: int = 0
    time_ms: int | None = None


class SimulationFailed(AssertionError):
    """A simulated run broke a promise; the text says which, and how to run it again."""


def simulate(
    job: Job,
    feed: Mapping[str, Iterable[Fed]],
    *,
    seed: int = 1,
    faults: Faults | None = None,
    parts: int = 2,
    parallelism: int = 1,
    workers: int = 1,
) -> Result:
    """Run the job's daemon on these records, while the seed's faults happen, and check what comes out.

    ``feed`` gives the records of each source step, ``parts`` is the number of partitions of every topic,
    ``faults`` what goes wrong (``Faults.light()`` unless given), ``workers`` in how many worker processes the
    subtasks run: each may die, sleep or lose its connections alone. With a job's own ``audit``, that says what must
    be out; else the output must be the same as that of a run without faults, in any order, which is
    true of jobs whose output does not depend on time or on how inputs meet.

        @given(seed=integers(0, 10_000))
        def test_counts_survive_everything(seed):
            clicks = [Fed(value=json.dumps({"user": user}), part=n % 2) for n, user in enumerate("abcab")]
            simulate(build(), {"clicks": clicks}, seed=seed, faults=Faults.heavy())

    Raises SimulationFailed, with the end of the trace.
    """
    case = _case(job, feed, parts=parts, parallelism=parallelism)
    going_wrong = Faults.light() if faults is None else faults
    result = run_seed(case, seed, going_wrong, keep_trace=True, workers=workers)
    if not result.good:
        raise SimulationFailed(_told(job, seed, result))
    return result


def _case(job: Job, feed: Mapping[str, Iterable[Fed]], *, parts: int, parallelism: int) -> Case:
    graph = job.graph()
    plugins = installed_plugins()
    inputs = [
        Input(
            step=step,
            part=record.part,
            key=_bytes(record.key),
            value=_bytes(record.value),
            time_ms=record.time_ms,
        )
        for step, records in feed.items()
        for record in records
    ]
    case = Case(
        graph=graph,
        plugins={name: (plugins.get(name), plugins.get(name).settings_model()()) for name in plugins.names},
        inputs=inputs,
        script=run_and_stop,
        audits=(graph.audit,) if isinstance(graph.audit, Audit) else (),
        parts=dict.fromkeys(graph.steps, parts),
        parallelism=parallelism,
    )
    return case if case.audits else _like_without_faults(case)


def _like_without_faults(case: Case) -> Case:
    """The same case, which expects what a run without faults has put out."""
    calm = Simulation(case, 0, Faults.none())
    calm.run()
    expected = {
        str(name): Counter(written(calm, name))
        for name, step in case.graph.steps.items()
        if step.sink is not None
    }
    return replace(case, expected=expected)


def _told(job: Job, seed: int, result: Result) -> str:
    lines = [f"job '{job.name}' with seed {seed} broke a promise:", *result.problems]
    if result.trace:
        lines += [f"the last {TRACE_LINES} lines of what happened:", *result.trace[-TRACE_LINES:]]
    return "\n".join(lines)


def _bytes(text: bytes | str | None) -> bytes | None:
    return text.encode() if isinstance(text, str) else text
