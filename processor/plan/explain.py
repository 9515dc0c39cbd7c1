"""A drawing of a job's layout for people: chains, their subtasks, the edges between them, and their state."""

from __future__ import annotations

from collections.abc import Iterator

from processor.contracts.policy import Skip
from processor.contracts.sink import Guarantee
from processor.ids import StepName
from processor.operators.types import show
from processor.plan.execution import Chain, ChannelPlan, ExecutionPlan
from processor.plan.graph import MAIN_OUTPUT, EdgeKind, Step
from processor.state.expiry import Expiry

_LINE_LENGTH_MAX = 100
"""A longer list of a step's properties continues below it."""


def explain(plan: ExecutionPlan) -> str:
    """One paragraph a chain, in the order in which records pass them; steps of one chain share a thread."""
    subtasks = sum(chain.parallelism for chain in plan.chains.values())
    head = (
        f"job '{plan.job}': {_number(len(plan.chains), 'chain')}, {_number(subtasks, 'subtask')}, "
        f"{plan.max_parallelism} key groups"
    )
    paragraphs = ["\n".join(_chain(plan, chain)) for chain in plan.chains.values()]
    return "\n\n".join([head, *paragraphs])


def _chain(plan: ExecutionPlan, chain: Chain) -> Iterator[str]:
    yield f"chain '{chain.name}', {_number(chain.parallelism, 'subtask')}"
    for entry in chain.inputs:
        channel = plan.channels[entry.edge]
        names = chain.steps[0].inputs
        name = f"[{names[entry.input]}] " if names else ""
        yield f"  ◀━ {name}{_arrival(channel)}"
    yield from _step(plan, chain, chain.steps[0], lead="  ", below="  ")


def _step(plan: ExecutionPlan, chain: Chain, step: Step, *, lead: str, below: str) -> Iterator[str]:
    """A step and, indented, all that reads its outputs: other steps, then the edges that leave the chain."""
    steps = {known.name: known for known in chain.steps}
    title = f"{step.kind} '{step.name}'"
    properties = list(_properties(step))
    if properties and len(lead) + len(title) + len(" · ".join(properties)) <= _LINE_LENGTH_MAX:
        title = " · ".join([title, *properties])
        properties = []
    yield lead + title
    readers: list[tuple[str, StepName | None, str]] = [
        (edge.output, edge.target, "") for edge in chain.inner if edge.origin == step.name
    ]
    readers += [
        (output.output, None, _departure(plan.channels[output.edge]))
        for output in chain.outputs
        if output.step == step.name
    ]
    for line in properties:
        yield f"{below}{'│' if readers else ' '}    {line}"
    for index, (tag, target, text) in enumerate(readers):
        last = index == len(readers) - 1
        branch = "└─ " if last else "├─ "
        side = "" if tag == MAIN_OUTPUT else f"[{tag}] "
        if target is None:
            yield f"{below}{branch}{side}{text}"
        else:
            yield from _step(
                plan,
                chain,
                steps[target],
                lead=f"{below}{branch}{side}",
                below=below + ("   " if last else "│  "),
            )


def _properties(step: Step) -> Iterator[str]:
    if step.source is not None:
        yield _ends(step.source)
    if step.sink is not None:
        yield _ends(step.sink)
    if step.sink is not None and step.guarantee is not Guarantee.EXACTLY_ONCE:
        yield f"{step.guarantee} accepted"
    if step.event_time is not None:
        idle = step.event_time.idle_after_ms
        yield f"event time, disorder {_duration(step.event_time.disorder_ms)}" + (
            "" if idle is None else f", idle after {_duration(idle)}"
        )
    for name, kind in step.states.items():
        yield f"state {name}: {kind}{_lasting(step.expiries.get(name))}"
    if isinstance(step.policy, Skip):
        yield "skips records that fail"


def _lasting(expiry: Expiry | None) -> str:
    if expiry is None:
        return ""
    return f", {_duration(expiry.after_ms)} after it was written{' or read' if expiry.reads_renew else ''}"


_HOW = {
    EdgeKind.FORWARD: "forward",
    EdgeKind.KEYED: "by key",
    EdgeKind.BROADCAST: "to all",
    EdgeKind.REBALANCE: "in turn",
    EdgeKind.PARTITIONED: "by the job's own number",
}


def _departure(channel: ChannelPlan) -> str:
    return f"━▶ chain '{channel.consumer}'{_manner(channel)}"


def _arrival(channel: ChannelPlan) -> str:
    return f"chain '{channel.producer}'{_manner(channel)}"


def _manner(channel: ChannelPlan) -> str:
    return f", {_HOW[channel.kind]}" + ("" if channel.value_type is None else f", {show(channel.value_type)}")


def _ends(end: object) -> str:
    """A source or sink in its own words, if it has any."""
    own = type(end).__repr__ is not object.__repr__
    return repr(end) if own else type(end).__name__


def _duration(milliseconds: int) -> str:
    for size, unit in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")):
        if milliseconds >= size and milliseconds % size == 0:
            return f"{milliseconds // size} {unit}"
    return f"{milliseconds} ms"


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")
