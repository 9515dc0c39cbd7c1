"""The subtasks of a plan, and which of them are linked over an edge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from processor.ids import SubtaskId
from processor.plan.execution import Chain, ExecutionPlan
from processor.plan.graph import EdgeKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One channel: from a subtask of the producing chain to one of the consuming chain."""

    edge: int
    """Index into ExecutionPlan.channels."""
    producer: SubtaskId
    consumer: SubtaskId


def subtasks_of(chain: Chain) -> tuple[SubtaskId, ...]:
    return tuple(SubtaskId(chain.name, index) for index in range(chain.parallelism))


def subtasks(plan: ExecutionPlan) -> tuple[SubtaskId, ...]:
    """All subtasks, producers before consumers."""
    return tuple(subtask for chain in plan.chains.values() for subtask in subtasks_of(chain))


def links(plan: ExecutionPlan, edge: int) -> tuple[Link, ...]:
    """The channels of one edge, by producer, then by consumer.

    KEYED, BROADCAST, REBALANCE, PARTITIONED: every producer with every consumer. FORWARD with equal parallelism: each
    with its twin. FORWARD towards fewer: neighbours share a consumer, so the order within a producer is kept. FORWARD
    towards more: each producer has several consumers of its own and gives each batch to one of them.
    """
    channel = plan.channels[edge]
    return tuple(
        Link(
            edge=edge,
            producer=SubtaskId(channel.producer, producer),
            consumer=SubtaskId(channel.consumer, consumer),
        )
        for producer, consumer in pairs(
            channel.kind,
            plan.chains[channel.producer].parallelism,
            plan.chains[channel.consumer].parallelism,
        )
    )


def pairs(kind: EdgeKind, producers: int, consumers: int) -> tuple[tuple[int, int], ...]:
    """Which producer index sends to which consumer index, ascending."""
    match kind:
        case EdgeKind.KEYED | EdgeKind.BROADCAST | EdgeKind.REBALANCE | EdgeKind.PARTITIONED:
            return tuple((p, c) for p in range(producers) for c in range(consumers))
        case EdgeKind.FORWARD if producers >= consumers:
            return tuple((p, p * consumers // producers) for p in range(producers))
        case EdgeKind.FORWARD:
            return tuple(sorted((c * producers // consumers, c) for c in range(consumers)))
        case _:
            assert_never(kind)
