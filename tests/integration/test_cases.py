"""Faults that users of other stream processors reported, with whole jobs on a real broker.

Named by the number of the case. More of each, at the level where it can be seen best, is in the tests of the
parts: ``pytest -k case_16`` finds them all.
"""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from connectors.formats import Avro
from connectors.kafka.dev_broker import BrokerProcess
from examples.job_process import JobProcess
from processor.errors import BadRecord, LogConflict, PositionLost, UserCodeError
from tests.contracts.kafka_rig import values
from tests.integration import kills
from tests.integration.case_jobs import ORDER_SCHEMA
from tests.integration.kills import run_kills
from tests.integration.raw_log import transaction_spans
from tests.integration.scenario import STOP_TIMEOUT_S, Scenario
from tests.kill_budget import budgeted
from tests.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

TIMEOUT_S = 60.0
KILLS_OF_A_COPY = budgeted(2, 10)
NEVER = {"checkpoint.interval": "1h", "checkpoint.initial_delay_max": "1h"}
"""No checkpoint comes by itself while a test runs."""
NOTHING_OUT = "taken-over-marker-not-read:1"
"""After the opening: of the first checkpoint with output, which is decided."""


def small(kafka: str, folder: Path, job: str, **more: Any) -> Scenario:
    """A job of case_jobs with one partition in and out."""
    return Scenario.make(
        kafka,
        folder,
        job=job,
        module="tests.integration.case_jobs",
        **{"partitions_in": 1, "partitions_out": 1, **more},
    )


def as_json(values: Iterable[Any]) -> list[bytes | None]:
    return [json.dumps(value).encode() for value in values]


def numbers_out(scenario: Scenario) -> list[int]:
    return [json.loads(value) for value in values(scenario.records_out())]


def read_in(scenario: Scenario, records: int) -> None:
    """Wait until the running job has read so many."""
    wait_until(lambda: scenario.status()["records_in"] >= records, TIMEOUT_S, f"{records} records are read")


def ended_with(scenario: Scenario, name: str) -> tuple[int, str]:
    process = scenario.process(name)
    process.start()
    try:
        return process.wait(TIMEOUT_S), process.said()
    finally:
        process.kill()


# --- kills


@pytest.mark.kill
def test_case_01_a_crash_between_the_decision_and_the_publish(kafka: str, tmp_path: Path) -> None:
    scenario = small(kafka, tmp_path, "numbers")
    scenario.put(as_json(range(1, 101)))
    scenario.killed_at(f"recovery-opening:1,{NOTHING_OUT}")
    assert "unknown" not in scenario.command("outbox", "list").out
    assert numbers_out(scenario) == []
    with scenario.running() as process:
        scenario.drain(process)
    assert numbers_out(scenario) == list(range(1, 101))


@pytest.mark.kill
def test_case_02_a_counter_is_exact_after_a_kill_in_the_middle(kafka: str, tmp_path: Path) -> None:
    records = 300_000
    settings = {"kafka.main.publish_rows_max": "50000"}
    scenario = Scenario.make(
        kafka, tmp_path, backend="rocksdb", settings=settings, partitions_in=1, partitions_out=1
    )
    scenario.put([b'{"p":0,"s":%d,"k":1}' % n for n in range(records)])
    process = scenario.process()
    process.start()
    wait_until(
        lambda: scenario.reached().records_in > records // 3,
        TIMEOUT_S,
        "it is in the middle",
    )
    process.kill()
    assert scenario.reached().records_in < records, "it was not in the middle"
    process.start()
    reports = scenario.finish(process)
    assert int(reports[0].figure("1", "found")) == records
    assert max(json.loads(value)["n"] for value in values(scenario.records_out())) == records


@pytest.mark.kill(KILLS_OF_A_COPY)
def test_case_03_kills_at_random_moments(kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kills, "STARTING_S", (0.4, 1.6))
    monkeypatch.setattr(kills, "RUNNING_S", (0.1, 1.0))
    seed = random.SystemRandom().randrange(2**32)
    scenario = Scenario.make(kafka, tmp_path, job="copy")
    outcome = run_kills(scenario, KILLS_OF_A_COPY, random.Random(seed))
    assert outcome.failure == "", f"seed {seed}"
    assert (outcome.kills, outcome.losses, outcome.duplicates) == (KILLS_OF_A_COPY, 0, 0), f"seed {seed}"


@pytest.mark.kill
def test_case_04_output_of_records_timers_and_the_side_leaves_together(kafka: str, tmp_path: Path) -> None:
    scenario = small(kafka, tmp_path, "three_ways", more_topics=("side",))
    side = scenario.more_topics["side"]
    scenario.put(as_json({"n": n, "at_ms": n} for n in range(1, 51)))
    unhurried = scenario.with_settings(NEVER)
    with unhurried.running("before") as process:
        read_in(unhurried, 50)
        process.kill()
    assert values(scenario.records_out()) == []
    assert values(scenario.records_out(side)) == []
    with scenario.running("after") as process:
        scenario.drain(process)
    told = [value.decode() for value in values(scenario.records_out())]
    assert [each for each in told if each.startswith("record")] == [f"record {n}" for n in range(1, 51)]
    assert [each for each in told if each.startswith("timer")] == [f"timer {n}" for n in range(1, 51)]
    assert values(scenario.records_out(side)) == [b"side %d" % n for n in range(1, 51)]


@pytest.mark.kill(3)
def test_case_31_a_crash_before_the_first_checkpoint(kafka: str, tmp_path: Path) -> None:
    scenario = Scenario.make(kafka, tmp_path, job="copy")
    scenario.feed(30)
    scenario.killed_at("recovery-sealed:1")
    scenario.killed_at("recovery-opening:1")
    with scenario.with_settings(NEVER).running("no-checkpoint") as process:
        read_in(scenario, 6 * 30)
        process.kill()
    process = scenario.process()
    process.start()
    scenario.finish(process)


@pytest.mark.kill
def test_case_31_latest_is_resolved_once_also_when_the_first_attempts_die(kafka: str, tmp_path: Path) -> None:
    scenario = small(kafka, tmp_path, "latest")
    scenario.put(as_json(range(10)))
    with scenario.with_settings(NEVER).running("first") as process:
        process.kill()
    scenario.put(as_json(range(10, 20)))
    with scenario.running("second") as process:
        scenario.drain(process)
    assert numbers_out(scenario) == list(range(10, 20))


# --- transactions


def minimal(broker: str, folder: Path, reference: str, topics: Mapping[str, str]) -> JobProcess:
    """A job with no setting but those that have no default."""
    settings = {
        "checkpoint.directory": str(folder),
        "kafka.main.bootstrap_servers": broker,
        **{f"kafka.main.topic_map.{name}": topic for name, topic in topics.items()},
    }
    options = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    return JobProcess(["-m", "processor", "run", reference, *options], folder.with_suffix(".log"))


def test_case_06_two_jobs_with_default_settings_and_two_of_one_name(
    private_kafka: BrokerProcess, tmp_path: Path
) -> None:
    broker = private_kafka.bootstrap
    jobs = [Scenario.make(broker, tmp_path / job, job=job) for job in ("copy", "count")]
    # Where the scenario looks is where the defaults lead.
    jobs = [job.with_settings({"kafka.main.marker_topic": "__processor_markers"}) for job in jobs]
    processes = [
        minimal(broker, job.checkpoints, job.reference, {"in": job.topic_in, "out": job.topic_out})
        for job in jobs
    ]
    try:
        for job, process in zip(jobs, processes, strict=True):
            job.feed(20)
            process.start()
        for job, process in zip(jobs, processes, strict=True):
            job.drain(process)
        topics = {"in": jobs[0].topic_in, "out": jobs[0].topic_out}
        clash = minimal(broker, tmp_path / "clash", jobs[0].reference, topics)
        clash.start()
        assert clash.wait(TIMEOUT_S) == LogConflict.exit_code, clash.said()
        assert "kills-copy.write.0 has published" in clash.said(), clash.said()
        for job, process in zip(jobs, processes, strict=True):
            job.feed(20, first=20)
            job.finish(process)
    finally:
        for process in processes:
            process.kill()


def test_case_07_empty_checkpoints_around_a_few_records(kafka: str, tmp_path: Path) -> None:
    scenario = small(kafka, tmp_path, "numbers")

    def checkpoints_on(further: int) -> None:
        so_far = scenario.reached().checkpoint
        wait_until(
            lambda: scenario.reached().checkpoint >= so_far + further,
            TIMEOUT_S,
            f"{further} checkpoints more",
        )

    with scenario.running() as process:
        checkpoints_on(3)
        scenario.put(as_json(range(5)))
        scenario.drain(process)
        checkpoints_on(2)
        assert scenario.counters().get("write", {}) == {}, "something failed"
    assert numbers_out(scenario) == list(range(5))
    spans = transaction_spans(kafka, scenario.topic_out, 0)
    assert sum(span.records for span in spans) == 5
    assert all(span.records > 0 for span in spans)


@pytest.mark.kill
def test_case_10_a_job_that_never_comes_back_is_settled_by_hand(kafka: str, tmp_path: Path) -> None:
    settings = {"kafka.main.transaction_timeout": "1500ms", "kafka.main.publish_timeout": "1s"}
    scenario = small(kafka, tmp_path, "numbers", settings=settings)
    scenario.put(as_json(range(50)))
    scenario.killed_at("recovery-opening:1,all-sent-not-committed:1")
    listed = scenario.command("outbox", "list")
    assert listed.code == 0, listed
    sink, subtask, _, rows, published, *_ = listed.out.splitlines()[1].split()
    assert (sink, subtask, published) == ("write", "0", "0")
    assert 0 < int(rows) <= 50
    wait_until(lambda: not scenario.open_transactions(), TIMEOUT_S, "the open transaction ends by itself")
    assert scenario.command("outbox", "publish").code == 0
    assert numbers_out(scenario) == list(range(int(rows)))


def test_case_13_a_transaction_timeout_far_below_the_interval_is_fine(kafka: str, tmp_path: Path) -> None:
    settings = {
        **NEVER,
        "kafka.main.transaction_timeout": "10s",
        "kafka.main.publish_timeout": "5s",
    }
    scenario = small(kafka, tmp_path, "numbers", settings=settings)
    scenario.put(as_json(range(50)))
    with scenario.running():
        read_in(scenario, 50)
    assert numbers_out(scenario) == list(range(50))


# --- sources


def test_case_16_trailing_records_that_are_skipped_are_done_with(kafka: str, tmp_path: Path) -> None:
    scenario = small(kafka, tmp_path, "numbers")
    scenario.put([*as_json(range(5)), b"no", b"number", b"at all"])
    with scenario.running("first") as process:
        scenario.drain(process)
        assert scenario.counters()["read"]["records_skipped"] == 3
        wait_until(lambda: lag(scenario) == 0, TIMEOUT_S, "lag tools see that nothing is left")
    with scenario.running("second") as process:
        scenario.put(as_json([5]))
        scenario.drain(process)
        assert scenario.counters().get("read", {}) == {}, "they were read again"
    assert numbers_out(scenario) == list(range(6))


def lag(scenario: Scenario) -> int | None:
    """As lag tools have it: the end less what the group has committed; None before it has."""
    consumer = Consumer({"bootstrap.servers": scenario.bootstrap, "group.id": f"{scenario.job_name}.read"})
    try:
        at = TopicPartition(scenario.topic_in, 0)
        committed = consumer.committed([at], TIMEOUT_S)[0].offset
        end = consumer.get_watermark_offsets(at, TIMEOUT_S)[1]
    finally:
        consumer.close()
    return None if committed < 0 else end - committed


def test_case_17_a_bounded_job_ends_behind_control_and_deleted_records(kafka: str, tmp_path: Path) -> None:
    scenario = small(kafka, tmp_path, "bounded", partitions_in=2)
    producer = Producer({"bootstrap.servers": kafka, "transactional.id": scenario.topic_in})
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    for number in range(10):
        for partition in range(2):
            producer.produce(scenario.topic_in, b"%d" % number, partition=partition)
    producer.commit_transaction(TIMEOUT_S)
    delete_before(scenario, partition=1, offset=10)  # nothing but the control record is left
    code, said = ended_with(scenario, "job")
    assert code == 0, said
    assert "finished: all input is read" in said
    assert numbers_out(scenario) == list(range(10))


def delete_before(scenario: Scenario, *, partition: int, offset: int) -> None:
    admin = AdminClient({"bootstrap.servers": scenario.bootstrap})
    at = TopicPartition(scenario.topic_in, partition, offset)
    for done in admin.delete_records([at]).values():
        done.result(TIMEOUT_S)


def test_case_20_a_position_that_is_not_kept_any_more(kafka: str, tmp_path: Path) -> None:
    scenario = small(kafka, tmp_path, "numbers")
    scenario.put(as_json(range(50)))
    with scenario.running("first") as process:
        scenario.drain(process)
    scenario.put(as_json(range(50, 100)))
    delete_before(scenario, partition=0, offset=75)
    code, said = ended_with(scenario, "fails")
    assert code == PositionLost.exit_code, said
    assert f"at {scenario.topic_in}/0 offset 50" in said, said
    assert "keeps offsets 75 to 100" in said, said
    forgiving = scenario.with_job("forgiving_numbers")
    with forgiving.running("forgiving") as process:
        forgiving.drain(process)
        assert forgiving.counters()["read"]["records_lost"] == 25
    assert numbers_out(scenario) == [*range(50), *range(75, 100)]


def test_case_33_a_partition_added_at_run_time_is_read_from_its_first_record(
    kafka: str, tmp_path: Path
) -> None:
    settings = {"runtime.discovery_interval": "200ms"}
    scenario = small(kafka, tmp_path, "latest", partitions_in=2, settings=settings)
    scenario.put(as_json([-1]))
    with scenario.running() as process:
        admin = AdminClient({"bootstrap.servers": kafka})
        topic = scenario.topic_in
        admin.create_partitions([NewPartitions(topic, 3)])[topic].result(TIMEOUT_S)
        scenario.put(as_json(range(5)), partition=2)
        scenario.partitions_in = 3
        scenario.drain(process)
    assert numbers_out(scenario) == list(range(5))


# --- records


def test_case_27_state_read_after_it_was_cleared_or_set(kafka: str, tmp_path: Path) -> None:
    scenario = small(kafka, tmp_path, "remember", backend="rocksdb")
    scenario.put(as_json([{"n": 10}, {"n": 20}]))
    with scenario.running() as process:
        scenario.drain(process)
    seen = [json.loads(value) for value in values(scenario.records_out())]
    assert seen == [[None, 10, None, 11], [11, 20, None, 21]]


def test_case_49_case_52_tombstones_keys_and_headers_stay_byte_for_byte(kafka: str, tmp_path: Path) -> None:
    scenario = small(kafka, tmp_path, "tombstones")
    headers = [("a", b"1"), ("a", b"2"), ("b", None)]
    for value in (b"before", None, b"after", b"null", b""):
        scenario.put([value], key=b"k", headers=headers)
    with scenario.running() as process:
        scenario.drain(process)
    records = scenario.records_out()
    assert values(records) == [b"before", None, b"after", b"null", b""]
    assert all(record.key() == b"k" for record in records)
    assert all(record.headers() == headers for record in records)


def test_case_50_a_decoder_does_not_see_a_tombstone(kafka: str, tmp_path: Path) -> None:
    scenario = small(kafka, tmp_path, "avro")
    order = Avro(ORDER_SCHEMA).encode({"id": 7})
    scenario.put([order, None, order], key=b"k")
    with scenario.running() as process:
        scenario.drain(process)
    assert values(scenario.records_out()) == [order, None, order]


def test_case_51_falsy_keys_are_keys_and_none_goes_by_policy(kafka: str, tmp_path: Path) -> None:
    scenario = small(kafka, tmp_path, "falsy_keys", parallelism=2)
    kinds = ["zero", "empty text", "empty bytes", "none"] * 2
    scenario.put(as_json({"kind": kind} for kind in kinds))
    with scenario.running() as process:
        scenario.drain(process)
        assert scenario.counters()["key"]["records_skipped"] == 2
    told = sorted(value.decode() for value in values(scenario.records_out()))
    assert told == sorted(["0 1", "0 2", "'' 1", "'' 2", "b'' 1", "b'' 2"])


def test_case_55_d2_a_record_that_always_raises_stops_the_job_before_it(kafka: str, tmp_path: Path) -> None:
    settings = {"runtime.restart.attempts": "3"}
    scenario = small(kafka, tmp_path, "refuses_five", settings=settings)
    scenario.put(as_json(range(1, 9)))
    code, said = ended_with(scenario, "job")
    assert code == UserCodeError.exit_code, said
    assert said.count("the attempt failed") == 3, said
    assert said.count("no restart will mend that") == 2, said
    assert f"step 'check', at {scenario.topic_in}/0 offset 4" in said, said
    assert "five is too much" in said, said
    assert scenario.reached().records_in <= 4
    assert numbers_out(scenario) == [1, 2, 3, 4][: len(numbers_out(scenario))]


# --- ends


def test_case_60_sigterm_takes_and_publishes_a_last_checkpoint(kafka: str, tmp_path: Path) -> None:
    scenario = small(kafka, tmp_path, "numbers", settings={**NEVER, "runtime.grace_period": "20s"})
    scenario.put(as_json(range(50)))
    process = scenario.process()
    process.start()
    try:
        wait_until(lambda: "running from" in process.said(), TIMEOUT_S, "it runs")
        read_in(scenario, 50)
        scenario.put(as_json(range(50, 100)))
        process.signal(signal.SIGTERM)
        assert process.wait(20) == 0, process.said()
    finally:
        process.kill()
    half = numbers_out(scenario)
    assert half == list(range(len(half)))
    assert len(half) >= 50
    with scenario.with_settings({"checkpoint.interval": "200ms"}).running("second") as process:
        scenario.drain(process)
    assert numbers_out(scenario) == list(range(100))
    assert STOP_TIMEOUT_S > 20  # the grace period was kept, not the test's patience


@pytest.mark.kill
def test_case_60_a_broker_gone_for_a_while(private_kafka: BrokerProcess, tmp_path: Path) -> None:
    settings = {
        "kafka.main.request_timeout": "2s",
        "kafka.main.take_over_timeout": "2s",
        "kafka.main.publish_timeout": "2s",
        "kafka.main.transaction_timeout": "5s",
        "checkpoint.publish_timeout": "4s",
        "runtime.restart.attempts": "100",
    }
    scenario = small(private_kafka.bootstrap, tmp_path / "job", "numbers", settings=settings)
    scenario.put(as_json(range(50)))
    with scenario.running() as process:
        scenario.drain(process)
        private_kafka.kill()
        before = int(scenario.status()["last_checkpoint"])

        def lives_on() -> bool:
            """Checkpoints without output need no broker; an attempt that does need it restarts."""
            now = scenario.status()
            return now["restarts"] > 0 or int(now["last_checkpoint"] or 0) >= before + 10

        wait_until(lives_on, TIMEOUT_S, "it lives on without its broker")
        private_kafka.restart()
        scenario.put(as_json(range(50, 100)))
        scenario.drain(process)
    assert numbers_out(scenario) == list(range(100))


def test_case_54_a_record_that_cannot_be_decoded_stops_the_job_by_name(kafka: str, tmp_path: Path) -> None:
    settings = {"runtime.restart.strategy": "none"}
    scenario = small(kafka, tmp_path, "strict_numbers", settings=settings)
    scenario.put([*as_json(range(3)), b"no number", *as_json(range(3, 6))])
    code, said = ended_with(scenario, "job")
    assert code == BadRecord.exit_code, said
    assert f"step 'read', at {scenario.topic_in}/0 offset 3" in said, said
    assert "Skip()" in said, said
