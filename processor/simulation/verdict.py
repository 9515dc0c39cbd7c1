"""Looks at what a run has left: every invariant, and every end that was loud."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from processor.audit.expectation import Audit
from processor.audit.report import AuditReport
from processor.audit.verify import Evidence, verify
from processor.ids import StepName
from processor.plan.graph import Step
from processor.simulation.case import Row
from processor.simulation.simulation import Simulation
from processor.storage.decision_log import DecisionLog

EXAMPLES_MAX: Final = 3


def audits(simulation: Simulation) -> list[AuditReport]:
    """One report for each audit of the case."""
    return [_audit(simulation, audit) for audit in simulation.case.audits]


def problems(simulation: Simulation) -> list[str]:
    """What is wrong; empty when everything holds."""
    found = [
        f"loud without a reason: {end.process} ended by {type(end.error).__name__}: {end.error}"
        for end in simulation.loud()
    ]
    if found:
        return found  # the run was broken off there
    found += simulation.unreadable
    found += simulation.untrue
    codes = [unit.exit_code for unit in simulation.chaos.units]
    if 0 not in codes:
        found.append(f"no process ended well: exit codes {codes}")
    for step, expected in simulation.case.expected.items():
        found_rows = Counter(written(simulation, step))
        if found_rows != expected:
            lost, more = expected - found_rows, found_rows - expected
            found.append(
                f"step '{step}' wrote {found_rows.total()} records, {expected.total()} without faults: "
                f"{lost.total()} are missing, such as {list(lost)[:EXAMPLES_MAX]}, {more.total()} too many, "
                f"such as {list(more)[:EXAMPLES_MAX]}"
            )
    for report in audits(simulation):
        if not report.passed:
            found.append(report.text())
    return found


def written(simulation: Simulation, step: str) -> Iterator[Row]:
    """Key and value of everything that can be read of a sink step's output."""
    sink = simulation.case.graph.steps[StepName(step)].sink
    view = DecisionLog(simulation.directory().log).read_all()
    seal = view.newest_seal()
    targets = [record.targets for record in (seal.sinks if seal else ()) if record.sink == step]
    reader = simulation.system_of(sink).reader(sink)
    splits = [split for target in targets for topic in sorted(target) for split in reader.splits(topic)]
    for chunk in reader.read(reader.committed_ends(splits)):
        yield from zip(chunk.keys, chunk.values, strict=True)


def _audit(simulation: Simulation, audit: Audit) -> AuditReport:
    directory = simulation.directory()
    log = DecisionLog(directory.log)
    view = log.read_all()
    seal = view.newest_seal()
    source, sink = (
        _step(simulation, kind, name) for kind, name in (("source", audit.source), ("sink", audit.sink))
    )
    targets = [record.targets for record in (seal.sinks if seal else ()) if record.sink == sink.name]
    inputs = simulation.system_of(source.source).reader(source.source)
    outputs = simulation.system_of(sink.sink).reader(sink.sink)
    try:
        return verify(
            Evidence(
                job=simulation.job,
                audit=audit,
                log=view,
                published=log.published(),
                files=directory.files,
                inputs=inputs,
                outputs=outputs,
                targets=tuple(sorted({topic for target in targets for topic in target})),
                retained=simulation.settings.checkpoint.retained,
                hang_limit_s=0.0,
            )
        )
    finally:
        inputs.close()
        outputs.close()


def _step(simulation: Simulation, kind: str, name: str | None) -> Step:
    """The step that an audit names; without a name, the first of its kind."""
    return next(
        step
        for step in simulation.case.graph.steps.values()
        if getattr(step, kind) is not None and name in (None, step.name)
    )
