"""From values to rows: columns, keys as bytes, and what is caught before the outbox (R30)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.formats import Raw
from connectors.kafka.row_encoder import Columns, KafkaRowEncoder, key_bytes
from connectors.kafka.topic_limits import TopicLimits, largest_row_bytes, row_bytes
from processor.contracts.policy import Fail, Policy, Skip
from processor.contracts.sink import SinkContext
from processor.errors import BadRecord, JobError
from processor.ids import JobName, SplitId, StepName
from processor.records.batch import NO_TIMESTAMP, Batch
from tests.unit.operators.kit import SetClock

KAFKA_4 = {"max.message.bytes": "1000", "message.timestamp.after.max.ms": "3600000"}


class Encoding:
    def __init__(
        self,
        *,
        policy: Policy | None = None,
        config: dict[str, str] | None = None,
        value: Callable[[Any], bytes] = lambda value: str(value).encode(),
        **columns: Any,
    ) -> None:
        self.counted: Counter[str] = Counter()
        context = SinkContext(
            job=JobName("job"),
            step=StepName("out"),
            settings={},
            policy=policy or Fail(),
            clock=SetClock(1_000_000),
            count=self.count,
        )
        limits = TopicLimits.of(config or KAFKA_4, partitions=2)
        self.encoder: KafkaRowEncoder[Any] = KafkaRowEncoder(
            context, Columns(value=value, **columns), topic="out", limits=limits
        )

    def count(self, name: str, by: int) -> None:
        self.counted[name] += by

    def __call__(self, values: list[Any], **columns: Any) -> Any:
        columns.setdefault("timestamps", [1_000_000] * len(values))
        blocks = self.encoder.encode(
            Batch(values=values, split=SplitId("in/0"), offsets=list(range(len(values))), **columns)
        )
        return blocks[0] if blocks else None


def test_without_arguments_the_streams_columns_are_kept() -> None:
    block = Encoding()(["a", "b"], keys=["k", 7], headers=[(("h", None),), ()], timestamps=[5, NO_TIMESTAMP])
    assert (block.topic, list(block.values), list(block.keys)) == ("out", [b"a", b"b"], [b"k", b"7"])
    assert (list(block.headers), list(block.timestamps)) == ([(("h", None),), ()], [5, NO_TIMESTAMP])
    assert block.partitions is None


def test_arguments_take_the_place_of_the_streams_columns() -> None:
    encoding = Encoding(
        key=lambda value: value * 2,
        headers=lambda value: [("h", value.encode())],
        timestamp=lambda value: datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC),
        partition=lambda value: None if value == "a" else 1,
    )
    block = encoding(["a", "b"], keys=["k", "k"], headers=[(("old", None),), ()])
    assert list(block.keys) == [b"aa", b"bb"]
    assert list(block.headers) == [(("h", b"a"),), (("h", b"b"),)]
    assert list(block.timestamps) == [1_500, 1_500]
    assert list(block.partitions) == [None, 1]


def test_case_49_none_is_a_tombstone_and_the_encoder_does_not_see_it() -> None:
    def refuse_none(value: object) -> bytes:
        assert value is not None
        return b"v"

    assert list(Encoding(value=refuse_none)(["a", None], keys=["k", "l"]).values) == [b"v", None]


@pytest.mark.parametrize(
    ("values", "rows"),
    [([b"a", b""], [b"a", b""]), ([b"a", None, b""], [b"a", None, b""]), ([None], [None])],
)
def test_case_49_raw_bytes_and_tombstones_go_out_as_they_came(values: list[Any], rows: list[Any]) -> None:
    assert list(Encoding(value=Raw().encode)(values).values) == rows


def test_case_56_what_is_not_bytes_is_no_raw_value() -> None:
    with pytest.raises(BadRecord, match="offset 1"):
        Encoding(value=Raw().encode)([b"a", "b", None])


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (None, None),
        ("", b""),
        ("ключ", "ключ".encode()),
        (b"\x00\xff", b"\x00\xff"),
        (0, b"0"),
        (-12, b"-12"),
        (True, b"true"),
        (False, b"false"),
        (UUID(int=1), b"00000000-0000-0000-0000-000000000001"),
        (
            datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=timezone(timedelta(hours=1))),
            b"2024-01-02T02:04:05.000006+00:00",
        ),
        (("a", 1, UUID(int=2), b"b", True), b'["a",1,"00000000-0000-0000-0000-000000000002","b",true]'),
        ((), b"[]"),
    ],
)
def test_keys_are_written_as_other_programs_read_them(key: Any, expected: bytes | None) -> None:
    assert key_bytes(key) == expected


@pytest.mark.parametrize("key", [1.5, ["a"], datetime(2024, 1, 1)])
def test_what_cannot_be_a_key_is_refused(key: Any) -> None:
    with pytest.raises(JobError, match=r"a key of type|without a time zone"):
        key_bytes(key)


@pytest.mark.parametrize("key", ["", b"", 0, False])
def test_case_51_falsy_keys_are_real_keys(key: Any) -> None:
    block = Encoding(config={**KAFKA_4, "cleanup.policy": "compact"})(["v"], keys=[key])
    assert block.keys[0] is not None


def test_case_51_a_null_key_into_a_compacted_topic_goes_by_policy() -> None:
    config = {**KAFKA_4, "cleanup.policy": "compact"}
    with pytest.raises(
        BadRecord, match=r"step 'out', at in/0 offset 1: .*no key, and the topic is compacted"
    ):
        Encoding(config=config)(["a", "b"], keys=["k", None])
    skipping = Encoding(config=config, policy=Skip())
    assert list(skipping(["a", "b", "c"], keys=["k", None, "l"]).values) == [b"a", b"c"]
    assert skipping(["a"]) is None
    assert skipping.counted == {"records_skipped": 2}
    assert list(Encoding()(["a"], keys=[None]).keys) == [None], "other topics take it"


def test_case_56_a_value_that_cannot_be_encoded_is_named() -> None:
    def picky(value: str) -> bytes:
        if value == "bad":
            raise ValueError("no such thing")
        return value.encode()

    with pytest.raises(BadRecord, match=r"offset 2: .*cannot be encoded: ValueError: no such thing") as bad:
        Encoding(value=picky)(["a", "b", "bad", "c"])
    assert isinstance(bad.value.__cause__, ValueError)
    skipping = Encoding(value=picky, policy=Skip())
    block = skipping(["bad", "a", "bad", "c"], keys=["1", "2", "3", "4"], timestamps=[1, 2, 3, 4])
    assert (list(block.values), list(block.keys), list(block.timestamps)) == (
        [b"a", b"c"],
        [b"2", b"4"],
        [2, 4],
    )
    assert skipping.counted == {"records_skipped": 2}


def test_a_key_function_that_raises_is_named_too() -> None:
    with pytest.raises(BadRecord, match=r"offset 1: .*ZeroDivisionError"):
        Encoding(key=lambda value: 1 // value)([1, 0])


@pytest.mark.parametrize(
    "columns",
    [
        {"headers": lambda value: [("h", "text")]},
        {"headers": lambda value: [(b"h", b"v")]},
        {"timestamp": lambda value: 1.5},
        {"timestamp": lambda value: datetime(2024, 1, 1)},
        {"partition": lambda value: "1"},
        {"key": lambda value: 2.5},
    ],
)
def test_columns_of_the_wrong_type_are_named(columns: dict[str, Any]) -> None:
    with pytest.raises(BadRecord, match="step 'out', at in/0 offset 0"):
        Encoding(**columns)(["a"])


def test_r30_size_counts_key_value_and_headers() -> None:
    encoding = Encoding()
    assert encoding(["x" * 800]) is not None
    for columns in (
        {"keys": ["k" * 200]},
        {"headers": [(("h" * 200, None),)]},
        {"headers": [(("h", b"v" * 200),)]},
    ):
        with pytest.raises(BadRecord, match=r"max.message.bytes of 1000"):
            encoding(["x" * 800], **columns)


def test_r30_rows_that_fit_one_by_one_pass_though_their_bound_does_not() -> None:
    block = Encoding()(["x" * 700, "y"], keys=["k", "k" * 700])
    assert len(block) == 2


def test_r30_timestamps_are_checked_row_by_row() -> None:
    now, hour = 1_000_000, 3_600_000
    config = {**KAFKA_4, "message.timestamp.before.max.ms": "500000"}
    skipping = Encoding(config=config, policy=Skip())
    times = [now, now - 600_000, now + 2 * hour, NO_TIMESTAMP, -5]
    assert list(skipping(["a", "old", "new", "none", "negative"], timestamps=times).values) == [b"a", b"none"]
    assert skipping.counted == {"records_skipped": 3}


def test_r30_the_old_name_of_the_timestamp_window_is_known() -> None:
    limits = TopicLimits.of({"message.timestamp.difference.max.ms": "100000"})
    assert (limits.timestamp_before_max_ms, limits.timestamp_after_max_ms) == (100_000, 100_000)


def test_r30_an_unknown_partition_is_named() -> None:
    with pytest.raises(BadRecord, match="partition 2 does not exist: the topic has 2"):
        Encoding(partition=lambda value: 2)(["a"])
    with pytest.raises(BadRecord, match="partition -1"):
        Encoding(partition=lambda value: -1)(["a"])


texts = st.binary(max_size=300)
header_lists = st.lists(st.tuples(st.text(max_size=20), st.none() | texts), max_size=3).map(tuple)


@given(st.lists(st.tuples(st.none() | texts, st.none() | texts, header_lists), min_size=1, max_size=8))
def test_r30_the_bound_of_a_block_is_above_every_row(rows: list[Any]) -> None:
    values, keys, headers = zip(*rows, strict=True)
    bound = largest_row_bytes(values, keys, headers)
    assert all(row_bytes(*row) <= bound for row in rows)
