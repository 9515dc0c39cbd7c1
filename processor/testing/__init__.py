"""For authors' tests: run a job on a few records, and try it out in a world where everything goes wrong.

``run_job`` runs a job's steps on values that the test feeds, in simulated time; ``simulate`` runs the whole
daemon, with the connectors' simulated twins, while processes die and brokers are away, and checks that
everything came out exactly once. Neither needs a broker, a disk or a thread. Install the extra ``simulation``.
"""

from __future__ import annotations

from processor.simulation.faults import Faults
from processor.testing.running_job import RunningJob, Written, run_job
from processor.testing.simulated_job import Fed, SimulationFailed, simulate

__all__ = ["Faults", "Fed", "RunningJob", "SimulationFailed", "Written", "run_job", "simulate"]
