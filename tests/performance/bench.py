"""Records per second, processor seconds and memory, beside a plain client loop against the same broker.

    python -m tests.performance.bench [--records N] [--rounds R] [--zipf] [--workload W1|W2] [--workers N]

In every round each engine handles the same input once, one after another; every output is audited. Time goes
from the moment an engine begins to read to the moment its last result can be read committed; an engine's
start is not in it. Writes build/bench.json and prints a table with the ratio to the plain loop of the same run.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from connectors.kafka import dev_broker
from connectors.kafka.audit_reader import KafkaTopicReader
from connectors.kafka.settings import ClusterSettings, KafkaSettings
from processor.audit.comparison import comparison
from processor.audit.finding import Outcome
from processor.audit.prefix_fold import PrefixFold
from processor.cli.table import aligned
from tests.performance.measured import Bench, Measured, run_ours, run_raw
from tests.performance.workloads import PARTITIONS, W1, W2, Distribution, Workload, fill
from tests.topics import create_topic, delete_topics

RECORDS = 3_000_000
ROUNDS = 3
SEED = 7
RESULT = Path(__file__).resolve().parents[2] / "build" / "bench.json"
RECORDS_PER_S_LEAST = 5_000
"""Slower than this, a run is given up."""

EXACTLY_ONCE = "exactly-once"


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One competitor in one workload."""

    workload: Workload
    name: str
    guarantee: str
    run: Callable[[Bench], Measured]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One run, as it is written down."""

    workload: str
    engine: str
    guarantee: str
    records_per_s: float
    cpu_s_per_million: float
    peak_rss_mib: float
    audit: str

    def as_dict(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__}


def engines(workers: int = 1) -> tuple[Engine, ...]:
    """In the order in which a round goes through them. With more than one worker those in memory run that way too:
    W1 without anything between the workers, W2 with every record handed to the worker that has its key."""

    def ours(backend: str, workers: int = 1) -> Callable[[Bench], Measured]:
        settings = {
            "state.backend": backend,
            "checkpoint.interval": "1s",
            "runtime.workers": str(workers),
        }
        return lambda bench: run_ours(bench, settings)

    several = tuple(
        Engine(
            workload=workload,
            name=f"{name}-{workers}-workers",
            guarantee=EXACTLY_ONCE,
            run=ours("memory", workers),
        )
        for workload, name in ((W1, "ours"), (W2, "ours-memory"))
        if workers > 1
    )
    # The loop's transactions are exactly-once for what passes through; its counts would not survive it.
    return (
        Engine(workload=W1, name="raw", guarantee=EXACTLY_ONCE, run=run_raw),
        Engine(workload=W1, name="ours", guarantee=EXACTLY_ONCE, run=ours("memory")),
        Engine(workload=W2, name="raw", guarantee="none: counts are not kept", run=run_raw),
        Engine(workload=W2, name="ours-memory", guarantee=EXACTLY_ONCE, run=ours("memory")),
        Engine(workload=W2, name="ours-rocksdb", guarantee=EXACTLY_ONCE, run=ours("rocksdb")),
        *several,
    )


def run_once(engine: Engine, bootstrap: str, source: str, reader: KafkaTopicReader, records: int) -> Figures:
    """One engine, a topic of its own for the results, its audit."""
    target = create_topic(bootstrap, f"bench-{engine.name}", partitions=PARTITIONS)
    bench = Bench(
        workload=engine.workload,
        bootstrap=bootstrap,
        source=source,
        target=target,
        reader=reader,
        records=records,
        deadline_s=60 + records / RECORDS_PER_S_LEAST,
    )
    measured = engine.run(bench)
    passed = _audited(engine.workload, reader, source, target)
    delete_topics(bootstrap, [target])
    return Figures(
        workload=engine.workload.name,
        engine=engine.name,
        guarantee=engine.guarantee,
        records_per_s=round(records / measured.seconds),
        cpu_s_per_million=round(measured.cpu_s / records * 1e6, 2),
        peak_rss_mib=round(measured.peak_rss_mib),
        audit="passed" if passed else "failed",
    )


def _audited(workload: Workload, reader: KafkaTopicReader, source: str, target: str) -> bool:
    fold = PrefixFold(comparison(workload.audit), running=False)
    splits = reader.splits(source)
    fold.read_input(reader, {}, reader.committed_ends(splits))
    fold.read_output(reader, reader.splits(target))
    finding = fold.finding()
    if finding.outcome is not Outcome.PASSED:
        print(f"  {finding.figures} {' '.join(finding.notes)}")
    return finding.outcome is Outcome.PASSED


def medians(runs: Sequence[Figures]) -> list[Figures]:
    """One of each workload and engine, in the order of the first round."""
    grouped: dict[tuple[str, str], list[Figures]] = {}
    for run in runs:
        grouped.setdefault((run.workload, run.engine), []).append(run)
    return [
        Figures(
            workload=workload,
            engine=engine,
            guarantee=group[0].guarantee,
            records_per_s=statistics.median(run.records_per_s for run in group),
            cpu_s_per_million=statistics.median(run.cpu_s_per_million for run in group),
            peak_rss_mib=max(run.peak_rss_mib for run in group),
            audit="passed" if all(run.audit == "passed" for run in group) else "failed",
        )
        for (workload, engine), group in grouped.items()
    ]


def table(results: Sequence[Figures], runs: Sequence[Figures]) -> str:
    rows = [
        ("WORKLOAD", "ENGINE", "RECORDS/S", "MIN-MAX", "OF RAW", "CPU-S/M", "OF RAW", "PEAK MIB", "AUDIT")
    ]
    for result in results:
        raw = next(r for r in results if r.workload == result.workload and r.engine == "raw")
        speeds = [
            run.records_per_s
            for run in runs
            if (run.workload, run.engine) == (result.workload, result.engine)
        ]
        rows.append(
            (
                result.workload,
                result.engine,
                f"{result.records_per_s:,.0f}",
                f"{min(speeds):,.0f}-{max(speeds):,.0f}",
                f"{result.records_per_s / raw.records_per_s:.2f}",
                f"{result.cpu_s_per_million:.2f}",
                f"{result.cpu_s_per_million / max(0.01, raw.cpu_s_per_million):.2f}",
                f"{result.peak_rss_mib:.0f}",
                result.audit,
            )
        )
    return "\n".join(aligned(rows))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measures the product beside a plain client loop.")
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--zipf", action="store_true", help="few keys get most records")
    parser.add_argument("--workload", choices=["W1", "W2"], help="this one only")
    parser.add_argument("--workers", type=int, default=1, help="beside one worker also so many")
    chosen = parser.parse_args(arguments)
    bootstrap = dev_broker.up()
    section = KafkaSettings(main=ClusterSettings(bootstrap_servers=bootstrap))
    reader = KafkaTopicReader(section.open("main"))
    distribution = Distribution.ZIPF if chosen.zipf else Distribution.UNIFORM
    competing = [e for e in engines(chosen.workers) if chosen.workload in (None, e.workload.name)]
    sources: dict[str, str] = {}
    for workload in dict.fromkeys(engine.workload.name for engine in competing):
        which = next(engine.workload for engine in competing if engine.workload.name == workload)
        sources[workload] = create_topic(bootstrap, f"bench-{workload}", partitions=PARTITIONS)
        print(
            f"filling {workload} with {chosen.records:,} records, {distribution}, seed {SEED} ...", flush=True
        )
        fill(bootstrap, sources[workload], which, chosen.records, SEED, distribution)
    runs: list[Figures] = []
    for number in range(1, chosen.rounds + 1):
        for engine in competing:
            run = run_once(engine, bootstrap, sources[engine.workload.name], reader, chosen.records)
            runs.append(run)
            print(
                f"round {number}: {run.workload} {run.engine}: {run.records_per_s:,.0f} records/s, "
                f"{run.cpu_s_per_million} CPU-s per million, {run.peak_rss_mib:.0f} MiB, audit {run.audit}",
                flush=True,
            )
    delete_topics(bootstrap, list(sources.values()))
    reader.close()
    results = medians(runs)
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps([result.as_dict() for result in results], indent=2) + "\n")
    print(f"\nwritten to {RESULT}; medians of {chosen.rounds} rounds of {chosen.records:,} records:\n")
    print(table(results, runs))
    return 0 if all(result.audit == "passed" for result in results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
