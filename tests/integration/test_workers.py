"""A job in several worker processes, on the real broker: killed, stopped, rescaled, and exact (part D)."""

from __future__ import annotations

import os
import random
import re
import signal
from pathlib import Path

import pytest

from examples.job_process import JobProcess
from processor.runtime.supervisor import EXIT_GRACE_PASSED
from tests.integration.broken_connections import Break, break_connection, unix_accepted, workers_named
from tests.integration.kills import run_kills
from tests.integration.scenario import DRAIN_TIMEOUT_S, REACH_TIMEOUT_S, STOP_TIMEOUT_S, Feeder, Scenario
from tests.integration.worker_kills import ACTS, SETTINGS, worker_processes
from tests.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

LARGE_STATE = 200_000
LARGE_CHUNKS = {"kafka.main.publish_rows_max": "50000"}
HAND_OVER_MAX = "60s"
RESCALED = (1, 4, 2)
FIRST_PARALLELISM = 2
FEED_PAUSE_S = 0.2


def workers(kafka: str, folder: Path, number: int, **made: object) -> Scenario:
    settings = {"runtime.workers": str(number)}
    return Scenario.make(kafka, folder, settings=settings, **made)  # type: ignore[arg-type]


def with_workers(scenario: Scenario, number: int) -> Scenario:
    """The same job in so many, with as many subtasks."""
    return scenario.with_settings({"runtime.workers": str(number), "runtime.parallelism": str(number)})


def none_is_left(processes: list[int]) -> None:
    wait_until(
        lambda: not [process for process in processes if Path(f"/proc/{process}").exists()],
        REACH_TIMEOUT_S,
        f"none of {processes} outlives the job",
    )


def audited(scenario: Scenario) -> None:
    for report in scenario.audit():
        assert report.passed, report.text()


@pytest.mark.kill(len(ACTS))
def test_d01_d02_each_process_of_a_job_killed_or_stopped_in_turn(kafka: str, tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(2**32)
    scenario = workers(kafka, tmp_path, 3, backend="rocksdb", parallelism=3).with_settings(SETTINGS)
    outcome = run_kills(scenario, len(ACTS), random.Random(seed), tuple(ACTS))
    assert outcome.failure == "", f"seed {seed}"
    assert (outcome.losses, outcome.duplicates) == (0, 0)
    assert outcome.recoveries, "a worker was killed, and the job went on without being started again"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_d01_a_signal_to_all_processes_stops_the_job_as_one(
    kafka: str, tmp_path: Path, number: signal.Signals
) -> None:
    """As a terminal or a service manager sends it."""
    scenario = workers(kafka, tmp_path, 2, parallelism=2)
    scenario.feed(500)
    process = scenario.process()
    try:
        scenario.start(process)
        scenario.drain(process)
        started = worker_processes(process)
        assert len(started) == 2
        for each in (*started, process.pid):
            os.kill(each, number)
        assert process.wait(STOP_TIMEOUT_S) == 0, process.said()
    finally:
        process.kill()
    none_is_left(started)
    audited(scenario)


def test_d01_a_second_signal_ends_all_at_once(kafka: str, tmp_path: Path) -> None:
    scenario = workers(kafka, tmp_path, 2, parallelism=2)
    process = scenario.process()
    try:
        scenario.start(process)
        started = worker_processes(process)
        os.kill(started[0], signal.SIGSTOP)  # the last checkpoint waits for it
        process.signal(signal.SIGTERM)
        wait_until(lambda: "stopping: taking" in process.said(), REACH_TIMEOUT_S, "it stops")
        process.signal(signal.SIGTERM)
        assert process.wait(STOP_TIMEOUT_S) in (128 + signal.SIGTERM, EXIT_GRACE_PASSED), process.said()
    finally:
        process.kill()
    none_is_left(started)


def worker_option(worker: int, name: str) -> int:
    """What a worker process was started with."""
    words = Path(f"/proc/{worker}/cmdline").read_text().split("\0")
    return int(words[words.index(name) + 1])


def rescale(scenario: Scenario, parallelism: int) -> None:
    said = scenario.command("rescale", "--parallelism", str(parallelism), about=scenario.job_name)
    assert said.code == 0, said
    assert re.fullmatch(r"rescaled: checkpoint \d+\n", said.out), said


@pytest.mark.parametrize(("number", "times"), [(1, 1), (3, 5)])
def test_case_05_d05_a_running_job_is_rescaled_under_load_and_exact(
    kafka: str, tmp_path: Path, number: int, times: int
) -> None:
    scenario = workers(kafka, tmp_path, number, parallelism=FIRST_PARALLELISM)
    feeder = Feeder(scenario.bootstrap, scenario.topic_in, seed=1)
    process = scenario.process()
    feeder.start()
    try:
        scenario.start(process)
        for parallelism in RESCALED * times:
            rescale(scenario, parallelism)
        assert scenario.status()["restarts"] == 0
        feeder.stop()
        scenario.drain(process)
        assert process.stop(STOP_TIMEOUT_S) == 0, process.said()
    finally:
        feeder.stop()
        process.kill()
    audited(scenario)


def test_case_19_more_and_more_workers_restore_a_large_state(kafka: str, tmp_path: Path) -> None:
    scenario = workers(kafka, tmp_path, 1, backend="rocksdb").with_settings(LARGE_CHUNKS)
    scenario.put([b'{"p":0,"s":%d,"k":%d}' % (n, n) for n in range(LARGE_STATE)])
    for number in (1, 2, 4):
        several = with_workers(scenario, number)
        process = several.process(f"workers-{number}")
        try:
            several.start(process, f"workers-{number}")
            several.drain(process)
            assert several.status()["restarts"] == 0
            assert process.stop(STOP_TIMEOUT_S) == 0, process.said()
        finally:
            process.kill()
    again = LARGE_STATE // 100
    scenario.put([b'{"p":0,"s":%d,"k":%d}' % (LARGE_STATE + n, n) for n in range(again)])
    last = with_workers(scenario, 4)
    process = last.process("last")
    last.start(process, "last")
    reports = last.finish(process)
    assert int(reports[0].figure("1", "found")) == LARGE_STATE + again


def test_d05_more_workers_than_partitions_and_than_subtasks_do_no_harm(kafka: str, tmp_path: Path) -> None:
    scenario = workers(kafka, tmp_path, 3, parallelism=2, partitions_in=1)
    scenario.put([b'{"p":0,"s":%d,"k":%d}' % (n, n % 50) for n in range(1_000)])
    with scenario.running() as process:
        assert len(worker_processes(process)) == 3
        scenario.drain(process)
        assert scenario.status()["restarts"] == 0
    audited(scenario)


def test_case_24_a_hand_over_of_state_on_disk_is_one_and_has_a_bound(kafka: str, tmp_path: Path) -> None:
    """Publishing is slow: transactions of few rows."""
    scenario = workers(kafka, tmp_path, 2, backend="rocksdb").with_settings(
        {"kafka.main.publish_rows_max": "20"}
    )
    scenario.feed(500)
    with scenario.running() as process:
        scenario.drain(process)
        before = scenario.reached().attempts
        scenario.feed(200, first=500)
        said = scenario.command(
            "rescale", "--parallelism", "2", "--timeout", HAND_OVER_MAX, about=scenario.job_name
        )
        assert said.code == 0, said
        scenario.drain(process)
        assert scenario.reached().attempts == before + 1
        assert scenario.status()["restarts"] == 0
    audited(scenario)


def test_d01_r21_broken_connections_on_one_machine_lose_and_double_nothing(
    kafka: str, tmp_path: Path
) -> None:
    """Sockets of another kind than those between machines; a worker that has lost its coordinator ends by itself."""
    scenario = workers(kafka, tmp_path, 3, parallelism=3).with_settings({"runtime.restart.attempts": "100"})
    feeder = Feeder(scenario.bootstrap, scenario.topic_in, seed=1, pause_s=FEED_PAUSE_S)
    feeder.start()
    try:
        with scenario.running() as process:
            scenario.goes_on(process)
            started = worker_processes(process)
            dialled = max(started, key=lambda worker: len(unix_accepted(worker)))
            number, control_fd = worker_option(dialled, "--worker"), worker_option(dialled, "--control-fd")
            of_others = unix_accepted(dialled)
            assert len(of_others) == 2, "of three workers the last is dialled by both others"
            failure = scenario.failure_of(lambda: break_connection(dialled, of_others[0], Break.ENDED))
            assert len(workers_named(failure)) == 2, failure
            assert number in workers_named(failure), failure
            scenario.goes_on(process)
            assert set(worker_processes(process)) == set(started)

            failure = scenario.failure_of(lambda: break_connection(dialled, control_fd, Break.ENDED))
            assert number in workers_named(failure), failure
            scenario.goes_on(process)
            assert set(started) - set(worker_processes(process)) == {dialled}
            assert scenario.status()["restarts"] == 2
            feeder.stop()
            scenario.drain(process)
    finally:
        feeder.halt()
    audited(scenario)


@pytest.mark.kill
def test_case_31_d01_a_worker_that_dies_before_the_first_checkpoint(kafka: str, tmp_path: Path) -> None:
    scenario = workers(kafka, tmp_path, 2, job="copy", parallelism=2).with_settings(
        {"checkpoint.interval": "10m", "checkpoint.initial_delay_max": "10m"}
    )
    scenario.feed(200)
    process = scenario.process()
    try:
        scenario.start(process)
        wait_until(lambda: scenario.status()["records_in"] > 0, REACH_TIMEOUT_S, "it has read")
        os.kill(worker_processes(process)[0], signal.SIGKILL)
        wait_until(lambda: scenario.reached().attempts == 2, REACH_TIMEOUT_S, "another attempt begins")
        wait_until(lambda: scenario.status()["state"] == "running", REACH_TIMEOUT_S, "it runs")
        assert process.stop(STOP_TIMEOUT_S) == 0, process.said()
    finally:
        process.kill()
    last = scenario.process("last")
    scenario.start(last, "last")
    reports = scenario.finish(last)
    assert int(reports[0].figure("1", "found")) == 200 * scenario.partitions_in


def test_d02_what_the_jobs_code_raises_in_a_worker_ends_the_job_with_its_own_exit_code(
    kafka: str, tmp_path: Path
) -> None:
    scenario = workers(kafka, tmp_path, 2, job="raises", parallelism=2).with_settings(
        {"runtime.restart.strategy": "none"}
    )
    scenario.feed(10)
    process: JobProcess = scenario.process()
    process.start()
    try:
        assert process.wait(DRAIN_TIMEOUT_S) == 65, process.said()
    finally:
        process.kill()
    where = re.search(r"where: (.*)", process.said())
    assert where, process.said()
    assert re.fullmatch(r"step 'refuses',.* worker [01]", where[1])
    assert "ValueError: three" in process.said()
    assert ", in refuse_three" in process.said(), "the author sees the line of their own"
