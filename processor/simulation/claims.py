"""Whether what a daemon says of itself is so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from processor.contracts.job_control import Outcome
from processor.plan.layout import Layout
from processor.storage.decision_log import DecisionLog

if TYPE_CHECKING:
    from processor.simulation.daemon import Daemon
    from processor.simulation.simulation import Simulation


def note_rescaling(simulation: Simulation, daemon: Daemon, parallelism: int, outcome: Outcome) -> None:
    """A daemon has answered to who wants another parallelism. If it has it, its seal says so (R18)."""
    how = "is not" if outcome.refused else "is"
    simulation.injection.met[f"a job that runs {how} rescaled"] += 1
    seal = DecisionLog(simulation.directory().log).read_all().newest_seal()
    assert seal is not None
    assert daemon.control is not None
    if outcome.refused or daemon.control.status().attempt != seal.attempt:
        return
    plan = Layout.at(simulation.case.graph, parallelism).plan
    asked = {step.name: subtasks for step, subtasks in plan.sinks()}
    sealed = {record.sink: record.parallelism for record in seal.sinks}
    if sealed != asked:
        simulation.untrue.append(
            f"{daemon.process.name} says that {asked} sink subtasks run, and {sealed} do"
        )
