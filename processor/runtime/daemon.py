"""A job's daemon: the coordinator, with its workers in this process or in their own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from processor.contracts.job_control import JobControl
from processor.fault_points import FaultHook, no_faults
from processor.plan.graph import JobGraph
from processor.plan.layout import Layout
from processor.protocol.checkpoint_statistics import CheckpointStatistics
from processor.protocol.job_status import JobState
from processor.runtime.attempt import AttemptParts
from processor.runtime.control import Control
from processor.runtime.interpreter import tuned
from processor.runtime.launch import Launch
from processor.runtime.pool_choice import PoolParts, workers_of
from processor.runtime.signals import StopSignals
from processor.runtime.start_options import StartOptions
from processor.runtime.stores import make_backend, open_store
from processor.runtime.supervisor import Supervisor
from processor.runtime.system import SystemChance, SystemClock
from processor.runtime.threads import ThreadedExecutor
from processor.service.control_place import control_place, control_root
from processor.service.control_socket import ControlSocket
from processor.settings.model import Settings
from processor.storage.decision_log import two_writer_test
from processor.storage.job_store import open_job_store
from processor.storage.places import places_of
from processor.telemetry.log import Log
from processor.telemetry.metrics import Metrics


def run_job(
    graph: JobGraph,
    settings: Settings,
    options: StartOptions,
    log: Log,
    *,
    faults: FaultHook = no_faults,
    controlled_by: Callable[[JobControl], None] = lambda control: None,
    launch: Launch | None = None,
) -> int:
    """Run a job until it ends, is stopped, or can't go on; returns the exit code. ``controlled_by`` is told by whom
    the job can be asked for things while it runs. ``launch``: how a worker process finds the same job and settings;
    needed where ``runtime.workers`` is more than one.

    Raises ProcessorError for what is wrong before anything runs, and for what ended the job.
    """
    layout = Layout.at(graph, settings.runtime.default_parallelism)
    plan = layout.plan
    chance, clock, metrics = SystemChance(), SystemClock(), Metrics()
    store = open_store(plan.job, settings, chance.token, faults)
    # Another handle on the same log: does its store keep a second writer out (R5)?
    other = open_job_store(places_of(settings), plan.job, token=chance.token)
    two_writer_test(store.log, other.log, chance.token)
    state = JobState()
    statistics = CheckpointStatistics()
    control = Control(plan.job, state, metrics, clock, statistics)
    controlled_by(control)
    tuned()
    with ExitStack() as closing:
        of_workers = PoolParts(
            plan=plan,
            settings=settings,
            launch=launch,
            clock=clock,
            chance=chance,
            log=log,
        )
        parts = AttemptParts(
            layout=layout,
            settings=settings,
            store=store,
            backend=make_backend(settings),
            clock=clock,
            chance=chance,
            metrics=metrics,
            statistics=statistics,
            executor=ThreadedExecutor,
            faults=faults,
            say=log,
            workers=closing.enter_context(workers_of(of_workers)),
        )
        supervisor = Supervisor(parts, state, control)
        socket = ControlSocket(control, control_place(control_root(settings), plan.job), log)
        closing.callback(socket.close)
        signals = closing.enter_context(StopSignals(supervisor.wake))
        return supervisor.run(options, signals, socket)
