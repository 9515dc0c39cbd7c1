"""From the graph of a job to its layout: which steps share a thread, and which edges become channels.

A step joins the chain of the step before it when it has one input, over a forward edge, and both run with the
same parallelism: then the record is handed over by a call. Everything else is an edge between chains. The
result depends on nothing but the graph and the parallelism.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from processor.errors import JobError, Where
from processor.ids import EdgeName, StepName
from processor.plan.execution import Chain, ChainInput, ChainOutput, ChannelPlan, ExecutionPlan, InnerEdge
from processor.plan.graph import Edge, EdgeKind, JobGraph, Step
from processor.protocol.entries import JobShape


def plan(graph: JobGraph, parallelism_default: int) -> ExecutionPlan:
    """Lay the job out. ``parallelism_default`` (the setting) holds where neither step nor job chose.

    Raises: JobError for a parallelism outside 1 … max_parallelism, naming the step.
    """
    parallelism = _parallelism(graph, parallelism_default)
    home = _homes(graph, parallelism)
    members: dict[StepName, list[Step]] = defaultdict(list)
    for step in graph.steps.values():
        members[home[step.name]].append(step)
    inner: dict[StepName, list[InnerEdge]] = defaultdict(list)
    inputs: dict[StepName, list[ChainInput]] = defaultdict(list)
    outputs: dict[StepName, list[ChainOutput]] = defaultdict(list)
    channels: list[ChannelPlan] = []
    for edge in graph.edges:
        producer, consumer = home[edge.origin], home[edge.target]
        if producer == consumer:
            inner[producer].append(
                InnerEdge(origin=edge.origin, output=edge.output, target=edge.target, input=edge.input)
            )
            continue
        index = len(channels)
        kind = _kind_between(edge, parallelism[producer] == parallelism[consumer])
        channels.append(
            ChannelPlan(
                producer=producer,
                consumer=consumer,
                kind=kind,
                value_type=edge.value_type,
                name=EdgeName(origin=edge.origin, output=edge.output, target=edge.target, input=edge.input),
                overtakable=edge.kind is EdgeKind.KEYED,
                partition=edge.partition,
            )
        )
        outputs[producer].append(ChainOutput(edge=index, step=edge.origin, output=edge.output))
        inputs[consumer].append(ChainInput(edge=index, input=edge.input))
    chains = {
        name: Chain(
            name=name,
            parallelism=parallelism[name],
            steps=tuple(steps),
            inner=tuple(inner[name]),
            inputs=tuple(inputs[name]),
            outputs=tuple(outputs[name]),
        )
        for name, steps in members.items()
    }
    return ExecutionPlan(
        job=graph.name,
        max_parallelism=graph.max_parallelism,
        chains=chains,
        channels=tuple(channels),
        shape=_shape(graph, chains),
        hook_makers=graph.hooks,
    )


def _parallelism(graph: JobGraph, default: int) -> Mapping[StepName, int]:
    job = graph.parallelism if graph.parallelism is not None else default
    chosen: dict[StepName, int] = {}
    for step in graph.steps.values():
        value = step.parallelism if step.parallelism is not None else job
        if not 1 <= value <= graph.max_parallelism:
            raise JobError(
                f"parallelism {value} is outside of 1 to {graph.max_parallelism}, the job's maximum.",
                remedy="Choose one inside, or give the job a larger max_parallelism before it has any state.",
                where=Where(step=step.name),
            )
        chosen[step.name] = value
    return chosen


def _homes(graph: JobGraph, parallelism: Mapping[StepName, int]) -> Mapping[StepName, StepName]:
    """The chain of every step, by the name of the chain's first step.

    Steps stand after the ones that feed them, so each home is known when it is asked for.
    """
    feeding: dict[StepName, list[Edge]] = defaultdict(list)
    for edge in graph.edges:
        feeding[edge.target].append(edge)
    home: dict[StepName, StepName] = {}
    for name in graph.steps:
        edges = feeding[name]
        joins = (
            len(edges) == 1
            and edges[0].kind is EdgeKind.FORWARD
            and parallelism[edges[0].origin] == parallelism[name]
        )
        home[name] = home[edges[0].origin] if joins else name
    return home


def _kind_between(edge: Edge, same_parallelism: bool) -> EdgeKind:
    """Records with keys that must change subtask go by key group, or their order per key would be lost; unless the
    author has said how they go."""
    moves = edge.keyed and edge.kind is EdgeKind.FORWARD and not same_parallelism
    return EdgeKind.KEYED if moves else edge.kind


def _shape(graph: JobGraph, chains: Mapping[StepName, Chain]) -> JobShape:
    return JobShape(
        max_parallelism=graph.max_parallelism,
        parallelism={name: chain.parallelism for name, chain in chains.items()},
        stateful={step.name: dict(step.states) for step in graph.steps.values() if step.states},
        sources=tuple(sorted(step.name for step in graph.steps.values() if step.source is not None)),
    )
