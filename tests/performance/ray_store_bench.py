"""Batches from one process to another: through a channel, and through Ray, in the same run.

    python -m tests.performance.ray_store_bench [--records 1000000] [--quick]

The same batches, encoded and decoded by the same code. Through Ray each is an object of its store, or an argument of
an actor's call; as many are under way as the channel's window allows.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import ray

from processor.cli.table import aligned
from processor.records.batch_codec import decode_batch, encode_batch
from processor.records.value_codec import ValueCodec
from tests.performance.channel_bench import BATCHES_MADE, KINDS, MIB, Case, batches, send

KIND: Final = "clicks"
BATCH_RECORDS: Final = (10, 100, 1_000)
STORE_BYTES: Final = 200 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    name: str
    seconds: float
    records: int


class Taker:
    """An actor that takes batches."""

    def __init__(self) -> None:
        self._codec = ValueCodec(KINDS[KIND], "bench")

    def take(self, body: bytes) -> int:
        """How many records were in it."""
        return len(decode_batch(body, self._codec.decode))


def through_ray(batch_records: int, records: int, give: Callable[[bytes], Any], name: str) -> Way:
    """``give``: how a body is passed on."""
    taker: Any = ray.remote(Taker).remote()
    made = batches(KIND, batch_records)
    codec = ValueCodec(KINDS[KIND], "bench")
    bodies = [encode_batch(batch, codec.encode(batch.values)) for batch in made]
    window = max(1, MIB // max(map(len, bodies)))
    ray.get(taker.take.remote(give(bodies[0])))  # it is there
    begun = time.perf_counter()
    sent = taken = 0
    under_way: list[Any] = []
    while taken < records:
        while sent < records and len(under_way) < window:
            batch = made[(sent // batch_records) % BATCHES_MADE]
            under_way.append(taker.take.remote(give(encode_batch(batch, codec.encode(batch.values)))))
            sent += len(batch)
        done, under_way = ray.wait(under_way, num_returns=1)
        taken += sum(ray.get(done))
    return Way(name=name, seconds=time.perf_counter() - begun, records=taken)


def through_a_channel(batch_records: int, records: int) -> Way:
    case = Case(kind=KIND, batch_records=batch_records, window_bytes=MIB)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        seconds, _ = send(folder, case, records)
    return Way(name="channel", seconds=seconds, records=records)


def measure(batch_records: int, records: int) -> Sequence[Way]:
    records = -(-records // batch_records) * batch_records
    return (
        through_a_channel(batch_records, records),
        through_ray(batch_records, records, ray.put, "Ray's store"),
        through_ray(batch_records, records, lambda body: body, "Ray's calls"),
    )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=1_000_000, help="with the largest batches")
    parser.add_argument("--quick", action="store_true", help="a few records: does it run?")
    chosen = parser.parse_args(arguments)
    most = 20_000 if chosen.quick else chosen.records
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")  # nobody else reaches it
    ray.init(
        num_cpus=2,
        object_store_memory=STORE_BYTES,
        include_dashboard=False,
        _node_ip_address="127.0.0.1",
        configure_logging=False,
        log_to_driver=False,
    )
    rows = [("records a batch", "way", "k records/s", "us a batch")]
    for batch_records in BATCH_RECORDS:
        for way in measure(batch_records, most * batch_records // BATCH_RECORDS[-1]):
            us = way.seconds / way.records * batch_records * 1e6
            rows.append(
                (str(batch_records), way.name, f"{way.records / way.seconds / 1e3:,.0f}", f"{us:,.0f}")
            )
    ray.shutdown()
    print("\n".join(aligned(rows)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
