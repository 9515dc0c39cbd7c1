"""Checkpoints of a job under back-pressure: aligned, unaligned, and aligned until a time-out.

    python -m tests.performance.pressure_bench [--seconds S] [--workers N]

The job's keys are skewed: nine of ten records go to one subtask, whose work on each takes 20 ms, so that all channels
to it are full from beginning to end. A checkpoint is due every second. Then the job is killed, started again with
light work, and audited at its end. Writes build/pressure-bench.json and prints a table.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from connectors.kafka import dev_broker
from processor.cli.table import aligned
from processor.contracts.checkpoint_view import CheckpointsView
from tests.integration.held_job import FULL_CHANNELS, Held
from tests.integration.scenario import Scenario
from tests.integration.skewed_job import RECORD_S, SLOW_WHILE
from tests.waiting import wait_until

RESULT = Path(__file__).resolve().parents[2] / "build" / "pressure-bench.json"
SECONDS = 60.0
WORKERS = 3
BESIDE_S: Final = 60.0
"""Input beside what the slow step takes in the measured time: what fills the channels, and more."""

SETTINGS: Final = {
    **FULL_CHANNELS,
    "checkpoint.interval": "1s",
    "checkpoint.initial_delay_max": "1s",
    "checkpoint.timeout": "10m",
}
MODES: Final[Mapping[str, Mapping[str, str]]] = {
    "aligned": {},
    "unaligned": {"checkpoint.unaligned": "true", "checkpoint.alignment_timeout": "0s"},
    "aligned for 1 s": {"checkpoint.unaligned": "true", "checkpoint.alignment_timeout": "1s"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of one mode, over the measured time."""

    mode: str
    workers: int
    seconds: float
    complete: int
    median_ms: int | None
    """From the trigger to the last acknowledgement; None when none was complete."""
    longest_ms: int
    """What is under way at the end counts with its age."""
    in_flight_records: int
    """Stored with a checkpoint, the median."""
    in_flight_bytes: int
    records_per_s: float
    """Taken by the slow subtask."""
    exact: bool


def measure(bootstrap: str, mode: str, workers: int, seconds: float) -> Figures:
    """One run. Raises AssertionError when the job ends by itself."""
    folder = Path(tempfile.mkdtemp(prefix="pressure-"))
    os.environ[SLOW_WHILE] = str(folder / "slow")
    scenario = Scenario.make(
        bootstrap,
        folder,
        module="tests.integration.skewed_job",
        job="build",
        parallelism=workers,
        settings={**SETTINGS, **MODES[mode], "runtime.workers": str(workers)},
    )
    held = Held(scenario, int((seconds + BESIDE_S) / RECORD_S) // scenario.partitions_in)
    process = held.piled_up("job")
    try:
        began_s, began_ms, taken = time.monotonic(), wall_ms(), held.taken()
        wait_until(lambda: time.monotonic() >= began_s + seconds, 2 * seconds, "the measured time is over")
        seen, spent_s, taken = (
            scenario.control().checkpoints(None),
            time.monotonic() - began_s,
            held.taken() - taken,
        )
        process.kill()
        held.open()
        scenario.start(process)
        exact = all(report.passed for report in held.finish(process))
    finally:
        process.kill()
    shutil.rmtree(folder, ignore_errors=True)
    return figures(mode, workers, seen, began_ms, spent_s, taken, exact=exact)


def wall_ms() -> int:
    """The clock that the job dates its checkpoints by."""
    return time.clock_gettime_ns(time.CLOCK_REALTIME) // 1_000_000


def figures(
    mode: str, workers: int, seen: CheckpointsView, began_ms: int, spent_s: float, taken: int, *, exact: bool
) -> Figures:
    """What was complete since ``began_ms``, and what is still under way."""
    dated = [*seen.under_way, *seen.history]
    complete = [
        each.record
        for each in dated
        if each.record.complete_ms is not None and each.triggered_at_ms + each.record.complete_ms >= began_ms
    ]
    spans_ms = [record.complete_ms or 0 for record in complete]
    now_ms = began_ms + int(spent_s * 1_000)
    ages_ms = [
        now_ms - each.triggered_at_ms
        for each in dated
        if each.record.over_ms is None and each.record not in complete
    ]
    return Figures(
        mode=mode,
        workers=workers,
        seconds=spent_s,
        complete=len(complete),
        median_ms=statistics.median_low(spans_ms) if spans_ms else None,
        longest_ms=max([*spans_ms, *ages_ms], default=0),
        in_flight_records=statistics.median_low([r.channel_records for r in complete] or [0]),
        in_flight_bytes=statistics.median_low([r.channel_bytes for r in complete] or [0]),
        records_per_s=taken / spent_s,
        exact=exact,
    )


def table(found: Sequence[Figures]) -> str:
    head = (
        "MODE",
        "WORKERS",
        "COMPLETE",
        "MEDIAN MS",
        "LONGEST MS",
        "IN FLIGHT",
        "BYTES",
        "RECORDS/S",
        "AUDIT",
    )
    rows = [
        (
            each.mode,
            str(each.workers),
            f"{each.complete} in {each.seconds:.0f} s",
            "-" if each.median_ms is None else f"{each.median_ms:,}",
            f"{each.longest_ms:,}",
            f"{each.in_flight_records:,}",
            f"{each.in_flight_bytes:,}",
            f"{each.records_per_s:.0f}",
            "passed" if each.exact else "FAILED",
        )
        for each in found
    ]
    return "\n".join(aligned([head, *rows]))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help="measured time of each run")
    parser.add_argument("--workers", type=int, default=WORKERS, help="worker processes, and subtasks a step")
    chosen = parser.parse_args(arguments)
    bootstrap = dev_broker.up()
    found = [measure(bootstrap, mode, chosen.workers, chosen.seconds) for mode in MODES]
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps([asdict(each) for each in found], indent=1) + "\n")
    print(table(found))
    return 0 if all(each.exact for each in found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
