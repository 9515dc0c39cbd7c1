"""Whether a job can have what it asks for: of its sinks, and of the checkpoint it starts from."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from processor.contracts.sink import Guarantee
from processor.errors import JobError, Where
from processor.ids import StepName
from processor.plan.graph import Step
from processor.protocol.entries import JobShape
from processor.state.evolution import why_unreadable
from processor.state.schema_text import read_state_schema

_STRENGTH = (Guarantee.NONE, Guarantee.AT_LEAST_ONCE, Guarantee.IDEMPOTENT, Guarantee.EXACTLY_ONCE)
"""Weakest first."""


def check_guarantee(step: Step) -> None:
    """Raises JobError for a sink that gives less than its step asks for."""
    if step.sink is None:
        return
    given = step.sink.guarantee
    if _STRENGTH.index(given) < _STRENGTH.index(step.guarantee):
        raise JobError(
            f"the sink gives {given}, and the job asks for {step.guarantee}.",
            remedy=f"Use another sink, or accept it by name: write(..., guarantee=Guarantee.{given.name}).",
            where=Where(step=step.name),
        )


def check_restore(
    job: JobShape, checkpoint: JobShape, *, dropped: Collection[StepName] = frozenset()
) -> None:
    """Whether state of ``checkpoint`` can be given to ``job``.

    Steps may be added, and steps that neither read nor have state removed, renamed and moved; the parallelism
    may change, and the type of a state to one that reads whatever the old one can have kept
    (``state.evolution``). ``dropped`` names steps whose state and positions may be forgotten: those that the job
    has no more. Of a step that it has, nothing is: the same start, repeated after a crash, would forget what was
    kept since.

    Raises: JobError that lists everything that does not fit, with what the job and the checkpoint have.
    """
    problems: list[str] = []
    if job.max_parallelism != checkpoint.max_parallelism:
        problems.append(
            f"max_parallelism is {job.max_parallelism} in the job and {checkpoint.max_parallelism} in the "
            "checkpoint, and state moves between numbers of key groups only in a savepoint of the canonical format"
        )
    for step in checkpoint.sources:
        if step not in job.sources and step not in dropped:
            problems.append(
                f"step '{step}' reads in the checkpoint and not in the job: its positions would be forgotten, and "
                "under another name its records would be read again"
            )
    for step, states in sorted(checkpoint.stateful.items()):
        if step not in job.stateful:
            if step in dropped:
                continue
            problems.append(
                f"step '{step}' has state in the checkpoint ({_listed(states)}) and none in the job"
            )
            continue
        have = job.stateful[step]
        for state, kind in sorted(states.items()):
            if state not in have:
                problems.append(
                    f"state '{state}' of step '{step}' is {kind} in the checkpoint and not in the job"
                )
            elif have[state] != kind:
                why = why_unreadable(read_state_schema(kind), read_state_schema(have[state]))
                if why:
                    problems.append(
                        f"state '{state}' of step '{step}' is {have[state]} in the job and {kind} in the "
                        f"checkpoint ({why})"
                    )
    if problems:
        raise JobError(
            "the checkpoint does not fit the job: " + "; ".join(problems) + ".",
            remedy="Give the job back what the checkpoint has; say what is called otherwise now by --rename OLD=NEW; "
            "forget what steps held that it no longer has by --allow-dropped-state STEP; or start without any of it "
            "by --fresh.",
        )


def _listed(states: Mapping[str, str]) -> str:
    return ", ".join(f"{name}: {kind}" for name, kind in sorted(states.items()))
