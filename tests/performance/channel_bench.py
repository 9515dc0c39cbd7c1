"""A channel between two worker processes by itself, without a broker: what sending records to another worker costs.

    python -m tests.performance.channel_bench [--records 4000000] [--quick]

One process sends batches on a channel over a Unix socket, another takes them: records and bytes per second, and
microseconds of processor per record on both sides together: encoding, framing, the kernel's copies, decoding.
Beside it, in the same run, the same bytes through a bare Unix socket, written and read in large pieces. Several sizes
of batches, several windows. Writes build/channel_bench.json and prints a table.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec

from processor.channels.addresses import UnixAddress
from processor.channels.exchange import Exchange
from processor.channels.frames import HEADER
from processor.channels.socket_peers import SocketPeers
from processor.channels.sockets import RECEIVE_BYTES
from processor.cli.table import aligned
from processor.errors import AttemptFailed
from processor.ids import Attempt, ChannelId, Incarnation, JobName, WorkerId
from processor.records.batch import Batch
from processor.records.batch_codec import encode_batch
from processor.records.elements import EndOfInput
from processor.records.value_codec import ValueCodec
from processor.runtime.interpreter import YOUNG_OBJECTS_MAX
from processor.runtime.system import SystemChance, SystemClock

ROOT: Final = Path(__file__).resolve().parents[2]
RESULT: Final = ROOT / "build" / "channel_bench.json"
SENDS, TAKES = WorkerId(0), WorkerId(1)
CHANNEL: Final = ChannelId(edge=0, producer=0, consumer=0)
JOB, INCARNATION, ATTEMPT = JobName("bench"), Incarnation("bench"), Attempt(1)
WAIT_MS: Final = 10_000
SEED: Final = 7
MIB: Final = 2**20
BATCHES_MADE: Final = 50
"""Sent again and again; encoded anew each time."""


class Click(msgspec.Struct):
    """A record as the second workload of the large benchmark sends it to a keyed step."""

    user: str
    ts: int
    amount: int
    page: str


KINDS: Final[Mapping[str, Any]] = {"clicks": Click, "texts": str}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    kind: str
    batch_records: int
    window_bytes: int


CASES: Final = (
    *(Case(kind="clicks", batch_records=records, window_bytes=MIB) for records in (10, 100, 1_000, 2_000)),
    *(Case(kind="clicks", batch_records=1_000, window_bytes=size) for size in (2**16, 2**18, 4 * MIB)),
    Case(kind="texts", batch_records=1_000, window_bytes=MIB),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    case: Case
    records: int
    bytes: int
    """That went over the socket."""
    seconds: float
    cpu_seconds: float
    """Of both processes."""
    bare_seconds: float
    """The same bytes through a bare socket."""
    bare_cpu_seconds: float

    @property
    def cpu_us_per_record(self) -> float:
        return self.cpu_seconds / self.records * 1e6


def batches(kind: str, batch_records: int) -> Sequence[Batch[Any]]:
    chance = Random(SEED)
    made = []
    for number in range(BATCHES_MADE):
        users = [f"u{chance.randrange(1_000_000):07d}" for _ in range(batch_records)]
        times = [1_700_000_000_000 + number * batch_records + n for n in range(batch_records)]
        values: list[Any] = [
            Click(
                user=user, ts=time_ms, amount=chance.randrange(1_000), page=f"p{chance.randrange(1_000):03d}"
            )
            for user, time_ms in zip(users, times, strict=True)
        ]
        if kind == "texts":
            values = [click.page for click in values]
        made.append(Batch(values=values, timestamps=times, keys=users))
    return made


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


# --- the other process


def takes(folder: str, kind: str, window_bytes: int) -> tuple[int, float]:
    """Take everything; returns records and seconds of processor."""
    peers = SocketPeers(
        TAKES, JOB, UnixAddress(Path(folder) / "takes.sock"), clock=SystemClock(), chance=SystemChance()
    )
    say("ready")
    peers.connect(INCARNATION, ATTEMPT, {SENDS: "", TAKES: peers.address})
    while (connections := peers.connected()) is None:
        peers.wait(WAIT_MS)
    exchange = Exchange(connections, window_bytes=window_bytes)
    receiver = exchange.receiver(SENDS, CHANNEL, ValueCodec(KINDS[kind], "bench"))
    begun, records = cpu_s(), 0
    while True:
        worked = exchange.turn()
        while receiver.peek() is not None:
            element = receiver.take()
            worked = True
            if isinstance(element, Batch):
                records += len(element)
            elif isinstance(element, EndOfInput):
                used = cpu_s() - begun
                peers.close()
                return records, used
        if not worked:
            peers.wait(WAIT_MS)


def reads(folder: str) -> tuple[int, float]:
    """Read everything from a bare socket; returns bytes and seconds of processor."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(f"{folder}/reads.sock")
        listener.listen()
        say("ready")
        with listener.accept()[0] as connected:
            buffer = bytearray(RECEIVE_BYTES)
            begun, size = cpu_s(), 0
            while received := connected.recv_into(buffer):
                size += received
            return size, cpu_s() - begun


def say(line: str) -> None:
    print(line, flush=True)


@contextmanager
def other(*arguments: str) -> Iterator[Callable[[], tuple[int, float]]]:
    """The other process, once it listens; what is called at the end waits for what it has counted."""
    command = [sys.executable, "-m", "tests.performance.channel_bench", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        said = process.stdout
        assert said is not None
        try:
            assert said.readline().strip() == "ready"
            yield lambda: tuple(json.loads(said.readline()))
        finally:
            process.kill()


# --- this process


def send(folder: str, case: Case, records: int) -> tuple[float, float]:
    """Send so many records; returns seconds, and seconds of processor of both sides."""
    made = batches(case.kind, case.batch_records)
    with other("--takes", folder, case.kind, str(case.window_bytes)) as counted:
        peers = SocketPeers(
            SENDS, JOB, UnixAddress(Path(folder) / "sends.sock"), clock=SystemClock(), chance=SystemChance()
        )
        peers.connect(INCARNATION, ATTEMPT, {SENDS: peers.address, TAKES: f"unix:{folder}/takes.sock"})
        while (connections := peers.connected()) is None:
            peers.wait(WAIT_MS)
        exchange = Exchange(connections, window_bytes=case.window_bytes)
        sender = exchange.sender(TAKES, CHANNEL, ValueCodec(KINDS[case.kind], "bench"))
        begun, used = time.perf_counter(), cpu_s()
        sent = 0
        while sent < records:
            worked = exchange.turn()
            # As a worker does: some batches, then the sockets.
            for _ in range(8):
                if sent >= records or not sender.ready():
                    break
                batch = made[(sent // case.batch_records) % BATCHES_MADE]
                sender.send(batch)
                sent += len(batch)
                worked = True
            if not worked:
                peers.wait(WAIT_MS)
        sender.send(EndOfInput())
        with contextlib.suppress(AttemptFailed):  # the other side ends when it has everything
            while True:
                if not exchange.turn():
                    peers.wait(WAIT_MS)
        used = cpu_s() - used
        taken, used_there = counted()
        seconds = time.perf_counter() - begun
        peers.close()
        assert taken == sent, f"{taken} of {sent} records have come"
        return seconds, used + used_there


def copy(folder: str, size: int) -> tuple[float, float]:
    """Send so many bytes through a bare socket; returns seconds, and seconds of processor of both sides."""
    piece = Random(SEED).randbytes(RECEIVE_BYTES)
    with other("--reads", folder) as counted, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connected:
        connected.connect(f"{folder}/reads.sock")
        begun, used = time.perf_counter(), cpu_s()
        left = size
        while left:
            with memoryview(piece) as view:
                connected.sendall(view[: min(left, len(piece))])
            left -= min(left, len(piece))
        connected.shutdown(socket.SHUT_WR)
        used = cpu_s() - used
        read, used_there = counted()
        assert read == size
        return time.perf_counter() - begun, used + used_there


def measure(case: Case, records: int) -> Figures:
    records = -(-records // case.batch_records) * case.batch_records
    codec = ValueCodec(KINDS[case.kind], "bench")
    made = batches(case.kind, case.batch_records)
    once = sum(HEADER.size + len(encode_batch(batch, codec.encode(batch.values))) for batch in made)
    size = once * records // (case.batch_records * BATCHES_MADE)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        seconds, cpu_seconds = send(folder, case, records)
        bare_seconds, bare_cpu_seconds = copy(folder, size)
    return Figures(
        case=case,
        records=records,
        bytes=size,
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        bare_seconds=bare_seconds,
        bare_cpu_seconds=bare_cpu_seconds,
    )


def table(found: Sequence[Figures]) -> str:
    head = (
        "kind",
        "records a batch",
        "window",
        "B a record",
        "k records/s",
        "MB/s",
        "bare MB/s",
        "us a record",
        "bare us",
    )
    rows = [
        (
            figures.case.kind,
            str(figures.case.batch_records),
            f"{figures.case.window_bytes // 1_024} KiB",
            f"{figures.bytes / figures.records:.0f}",
            f"{figures.records / figures.seconds / 1e3:,.0f}",
            f"{figures.bytes / figures.seconds / 1e6:,.0f}",
            f"{figures.bytes / figures.bare_seconds / 1e6:,.0f}",
            f"{figures.cpu_us_per_record:.2f}",
            f"{figures.bare_cpu_seconds / figures.records * 1e6:.3f}",
        )
        for figures in found
    ]
    return "\n".join(aligned([head, *rows]))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--records", type=int, default=4_000_000, help="for each case; a tenth with batches of 10"
    )
    parser.add_argument("--quick", action="store_true", help="a few records: does it run?")
    parser.add_argument("--result", type=Path, default=RESULT)
    parser.add_argument("--takes", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--reads", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    gc.set_threshold(YOUNG_OBJECTS_MAX, 50, 100)  # as where jobs run
    if chosen.takes:
        say(json.dumps(takes(chosen.takes[0], chosen.takes[1], int(chosen.takes[2]))))
        return 0
    if chosen.reads:
        say(json.dumps(reads(chosen.reads)))
        return 0
    records = 20_000 if chosen.quick else chosen.records
    found = [measure(case, records // 10 if case.batch_records <= 10 else records) for case in CASES]
    chosen.result.parent.mkdir(parents=True, exist_ok=True)
    chosen.result.write_text(json.dumps([asdict(figures) for figures in found], indent=1) + "\n")
    print(table(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
