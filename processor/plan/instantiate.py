"""From the plan of a chain to operators that run: a fresh set for each subtask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from processor.errors import UserCodeError, Where
from processor.invariant import invariant
from processor.operators.chain import ChainExit, ChainLink, ChainNode, ChainRunner
from processor.operators.operator import Collector
from processor.plan.execution import Chain
from processor.plan.graph import Step


def instantiate(chain: Chain, outputs: Sequence[Collector[Any]]) -> ChainRunner:
    """The operators of one subtask of a chain, connected; ``outputs[i]`` takes what leaves by
    ``chain.outputs[i]``.

    Raises: UserCodeError naming the step whose class or factory raised.
    """
    invariant(len(outputs) == len(chain.outputs), "every output of a chain has a collector")
    place = {step.name: index for index, step in enumerate(chain.steps)}
    return ChainRunner(
        nodes=[_node(step) for step in chain.steps],
        links=[
            ChainLink(
                origin=place[edge.origin], output=edge.output, target=place[edge.target], input=edge.input
            )
            for edge in chain.inner
        ],
        exits=[
            ChainExit(origin=place[output.step], output=output.output, collector=collector)
            for output, collector in zip(chain.outputs, outputs, strict=True)
        ],
    )


def _node(step: Step) -> ChainNode:
    if step.make is None:
        return ChainNode(step=step.name, operator=None)
    try:
        return ChainNode(step=step.name, operator=step.make())
    except Exception as error:
        raise UserCodeError(
            f"making an instance of the step raised {type(error).__name__}: {error}.",
            remedy="Its class or factory must be callable without arguments.",
            where=Where(step=step.name),
        ) from error
