"""A job with skewed keys whose hot key is slow work: all channels to one subtask are full until the gate opens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from examples.job_process import JobProcess
from processor.audit.report import AuditReport
from processor.contracts.job_control import JobStatus, Outcome
from processor.protocol.entries import CheckpointEntry
from tests.integration.scenario import Scenario
from tests.waiting import wait_until

TIMEOUT_S: Final = 120.0
TIMEOUT_MS: Final = 120_000

FULL_CHANNELS: Final[Mapping[str, str]] = {
    "runtime.batch_records_max": "10",
    "runtime.channel_batches_max": "64",
    "runtime.channel_bytes_max": "64KiB",
    "runtime.elements_per_turn": "1",
    "runtime.heartbeat_interval": "100ms",
    "log.progress_interval": "1s",
    "checkpoint.interval": "1h",
    "checkpoint.initial_delay_max": "1h",
}
"""Small steps and small channels, soon full. Checkpoints are taken when one is asked for."""

HOT_SHARE_LEAST: Final = 0.8
"""Of all records: nine of ten go to the subtask that is slow, give or take chance."""

IN_FRONT: Final = 600
"""Records that are read and that the slow step has not taken: all of them are in front of barriers that begin now."""


class Held:
    """A job whose keys are skewed, and whose hot key is slow work until the gate opens. All its input is there."""

    def __init__(self, scenario: Scenario, records: int) -> None:
        """``records``: of each partition of the input."""
        self.scenario = scenario
        self.records = records
        self.gate = scenario.folder / "slow"
        self.gate.touch()
        scenario.feed(records)

    def status(self) -> JobStatus:
        return self.scenario.control().status()

    def piled_up(self, name: str) -> JobProcess:
        """A daemon, which runs, and has records piled up in front of the slow step."""
        taken = self.taken()
        process = self.scenario.process(name)
        self.scenario.start(process, name)
        wait_until(
            lambda: self.status().records_in * HOT_SHARE_LEAST - (self.taken() - taken) >= IN_FRONT,
            TIMEOUT_S,
            "records pile up in front of the slow step",
        )
        return process

    def taken(self) -> int:
        """Records that the slow step has taken, all in all."""
        return self.gate.stat().st_size

    def gauge(self, step: str, name: str) -> float:
        return self.status().gauges.get(step, {}).get(name, 0)

    def take_checkpoint(self) -> Outcome:
        return self.scenario.control().checkpoint(TIMEOUT_MS)

    def entry_of(self, outcome: Outcome) -> CheckpointEntry:
        assert not outcome.refused
        return next(
            entry
            for entry in reversed(self.scenario.log().read_all().entries)
            if isinstance(entry, CheckpointEntry) and entry.checkpoint == outcome.checkpoint
        )

    def open(self) -> None:
        self.gate.unlink()

    def finish(self, process: JobProcess) -> list[AuditReport]:
        """Everything comes out, the job is stopped, and its audits passed."""
        ends = self.scenario.input_ends()

        def all_read() -> bool:
            self.take_checkpoint()
            positions = self.scenario.reached().positions
            return all(positions.get(split, 0) >= end for split, end in ends.items())

        wait_until(all_read, TIMEOUT_S, "all input is read")
        reports = self.scenario.finish(process)
        assert int(reports[0].figure("1", "found")) == self.records * self.scenario.partitions_in
        return reports
