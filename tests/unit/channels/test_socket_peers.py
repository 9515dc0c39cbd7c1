"""Workers find each other for one attempt: every pair once, and nobody of another attempt or job."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from processor.channels.addresses import TcpAddress, UnixAddress, parse_address
from processor.channels.credentials import NO_CREDENTIALS, Credentials
from processor.channels.doorway import PROOF_TIMEOUT_MS, VISITS_MAX
from processor.channels.exchange import Exchange
from processor.channels.handshake import Dialled
from processor.channels.socket_peers import CONNECT_TIMEOUT_MS, SocketPeers
from processor.errors import AttemptFailed, SettingsError
from processor.ids import Attempt, Incarnation, JobName, WorkerId
from processor.records.elements import Watermark
from processor.runtime.system import SystemChance
from tests.unit.channels.kit import CODEC, EDGE, addresses_in
from tests.unit.operators.kit import SetClock
from tests.waiting import wait_until

JOB, INCARNATION = JobName("job"), Incarnation("i")
PATIENCE_S = 20.0


class Workers:
    """Some workers, all in this thread."""

    def __init__(self, place: str, credentials: Credentials, number: int) -> None:
        self.clock = SetClock()
        self._place = place
        self._credentials = credentials
        self.made: list[SocketPeers] = []
        self.all = [
            self.make(WorkerId(n), at=address) for n, address in enumerate(addresses_in(place, number))
        ]

    def make(
        self,
        worker: WorkerId,
        *,
        job: JobName = JOB,
        secret: bytes | None = None,
        at: str = "",
    ) -> SocketPeers:
        """``at``: without it, somewhere else than all the others."""
        elsewhere = f"{self._place}/{len(self.made)}.sock" if self._place.startswith("unix:") else self._place
        credentials = self._credentials if secret is None else replace(self._credentials, secret=secret)
        made = SocketPeers(
            worker,
            job,
            parse_address(at or elsewhere),
            clock=self.clock,
            chance=SystemChance(),
            credentials=credentials,
        )
        self.made.append(made)
        return made

    @property
    def addresses(self) -> dict[WorkerId, str]:
        return {WorkerId(n): peers.address for n, peers in enumerate(self.all)}

    def connect(self, peers: SocketPeers, attempt: int, incarnation: Incarnation = INCARNATION) -> None:
        peers.connect(incarnation, Attempt(attempt), self.addresses)

    def turn(self, peers: SocketPeers):
        peers.wait(0)
        return peers.connected()

    def meet(self, *some: SocketPeers) -> list:
        """Turns of all until each of some is connected."""

        def connected() -> list:
            self.clock.now_ms += 100
            found = {id(peers): self.turn(peers) for peers in self.all}
            met = [found[id(peers)] for peers in some or self.all]
            return met if all(one is not None for one in met) else []

        return wait_until(connected, PATIENCE_S, "they are connected")

    def fails(self, peers: SocketPeers, what: str) -> None:
        """Turns of all until that worker cannot be connected."""

        def failed() -> str:
            self.clock.now_ms += 100
            for other in self.all:
                if other is not peers:
                    self.turn(other)
            try:
                self.turn(peers)
            except AttemptFailed as error:
                return str(error)
            return ""

        assert what in wait_until(failed, PATIENCE_S, f"it fails with: {what}")


@pytest.fixture
def workers(place, credentials):
    made: list[Workers] = []

    def make(number: int) -> Workers:
        made.append(Workers(place, credentials, number))
        return made[-1]

    yield make
    for some in made:
        for peers in some.made:
            peers.close()


def test_every_pair_is_connected_once_and_frames_go_both_ways(workers):
    four = workers(4)
    for peers in four.all:
        assert peers.connected() is None
        four.connect(peers, 1)
    connections = four.meet()
    assert [sorted(found) for found in connections] == [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]
    exchanges = [Exchange(found, window_bytes=2**20) for found in connections]
    receivers = []
    for one, exchange in enumerate(exchanges):
        for other in connections[one]:
            exchange.sender(other, EDGE, CODEC).send(Watermark(10 * one + other))
            receivers.append((10 * other + one, exchange.receiver(other, EDGE, CODEC)))
    wait_until(
        lambda: (
            [exchange.turn() for exchange in exchanges]
            and all(receiver.peek() is not None for _, receiver in receivers)
        ),
        PATIENCE_S,
        "everything has arrived",
    )
    assert all(receiver.take() == Watermark(number) for number, receiver in receivers)


def test_a_worker_alone_is_connected_at_once(workers):
    (alone,) = workers(1).all
    alone.connect(INCARNATION, Attempt(1), {WorkerId(0): alone.address})
    assert alone.connected() == {}


def test_d5_r21_who_comes_with_a_newer_attempt_waits_until_it_is_deployed_here(workers):
    two = workers(2)
    low, high = two.all
    for peers in two.all:
        two.connect(peers, 1)
    (old,) = two.meet(high)
    two.connect(low, 2)
    for _ in range(20):
        two.clock.now_ms += 100
        assert two.turn(low) is None
        high.wait(0)
    with pytest.raises(
        AttemptFailed, match="worker 0"
    ):  # it is in attempt 1 still, and that has lost worker 0
        wait_until(lambda: old[0].receive() and None, PATIENCE_S, "the connection of attempt 1 ends")
    two.connect(high, 2)
    two.meet()


def test_d5_r21_who_comes_with_an_older_attempt_is_turned_away(workers):
    two = workers(2)
    low, high = two.all
    two.connect(high, 5)
    two.connect(low, 4)
    two.fails(low, "worker 1 is in attempt 5 already")
    two.connect(low, 5)
    two.meet()


def test_a_worker_of_another_job_incarnation_or_place_is_turned_away(workers):
    two = workers(2)
    low, high = two.all
    two.connect(high, 1)
    other = two.make(WorkerId(0), job=JobName("other"))
    two.connect(other, 1)
    two.fails(other, "this is worker 1 of job 'job'")
    two.connect(low, 1, Incarnation("another"))
    two.fails(low, "worker 1 runs incarnation i")
    low.connect(INCARNATION, Attempt(1), {WorkerId(0): "", WorkerId(2): high.address})
    two.fails(low, "this is worker 1 of job 'job'")


def test_who_does_not_know_the_secret_is_never_connected(workers):
    two = workers(2)
    low, high = two.all
    two.connect(high, 1)
    stranger = two.make(WorkerId(0), secret=b"a guess")
    two.connect(stranger, 1)
    two.fails(stranger, "it does not know the job's secret")
    assert two.turn(high) is None
    two.connect(low, 1)
    two.meet()


def test_a_worker_that_was_never_expected_is_turned_away(workers):
    three = workers(3)
    one, _, last = three.all
    last.connect(INCARNATION, Attempt(1), {WorkerId(1): "", WorkerId(2): last.address})
    one.connect(INCARNATION, Attempt(1), {WorkerId(0): "", WorkerId(2): last.address})
    three.fails(one, "worker 2 expects no worker 0 in attempt 1")


def test_a_second_connection_of_the_same_worker_is_turned_away(workers):
    two = workers(2)
    for peers in two.all:
        two.connect(peers, 1)
    two.meet()
    again = two.make(WorkerId(0))
    two.connect(again, 1)
    two.fails(again, "worker 1 is connected with worker 0 already")


def test_a_worker_that_is_not_there_yet_is_tried_again(workers):
    two = workers(2)
    low, high = two.all
    addresses = two.addresses
    high.close()
    low.connect(INCARNATION, Attempt(1), addresses)
    for _ in range(5):
        two.clock.now_ms += 1_000
        assert low.connected() is None
    two.all[1] = two.make(WorkerId(1), at=addresses[WorkerId(1)])
    two.connect(two.all[1], 1)
    two.meet()


def test_a_worker_that_never_comes_fails_the_attempt_by_name(workers):
    two = workers(3)
    low, middle, high = two.all
    high.close()
    two.connect(low, 1)
    two.connect(middle, 1)
    for peers in (low, middle):
        peers.connected()
    two.clock.now_ms += CONNECT_TIMEOUT_MS
    with pytest.raises(AttemptFailed, match=r"worker 0 and .*worker 2 \(.*(No such file|refused)"):
        low.connected()
    with pytest.raises(AttemptFailed, match=r"worker 1 and .*worker 0 \(it has not dialled\)|worker 2"):
        middle.connected()


def test_an_address_that_is_none_fails_the_attempt_by_name(workers):
    (alone,) = workers(1).all
    with pytest.raises(AttemptFailed, match="worker 1 cannot be reached: 'nowhere' is no address"):
        alone.connect(INCARNATION, Attempt(1), {WorkerId(1): "nowhere"})


def knock(address: str) -> socket.socket:
    place = parse_address(address)
    if isinstance(place, UnixAddress):
        caller = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        caller.connect(str(place.path))
        return caller
    return socket.create_connection((place.host, place.port))


def ended(caller: socket.socket) -> bool:
    """Whether the other side has ended the connection."""
    caller.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while caller.recv(4_096):
            pass
        return True
    return False


def heard(caller: socket.socket, peers: SocketPeers) -> bytes:
    """Everything that a stranger is told until the end."""
    caller.setblocking(False)
    found = bytearray()

    def ended() -> bool:
        peers.wait(0)
        try:
            piece = caller.recv(4_096)
        except BlockingIOError:
            return False
        except ConnectionError:
            return True
        found.extend(piece)
        return not piece

    wait_until(ended, PATIENCE_S, "the stranger is turned away")
    return bytes(found)


def test_strangers_are_told_nothing_and_disturb_nobody(workers, kind):
    told = b"" if kind == "tls" else Dialled.opening
    two = workers(2)
    high = two.all[1]
    with knock(high.address) as talks, knock(high.address) as keeps_still, knock(high.address) as leaves:
        talks.send(b"GET / HTTP/1.1\r\n\r\n")
        leaves.close()
        assert heard(talks, high).startswith(told)
        for peers in two.all:
            two.connect(peers, 1)
        two.meet()
        two.clock.now_ms += PROOF_TIMEOUT_MS
        assert heard(keeps_still, high) == told


def test_strangers_are_not_more_than_a_named_number(workers):
    (alone,) = workers(1).all
    callers = []
    for _ in range(VISITS_MAX + 1):
        callers.append(knock(alone.address))
        alone.wait(0)
    assert heard(callers[-1], alone) == b""
    assert not ended(callers[0])
    for caller in callers:
        caller.close()


def test_another_thread_ends_a_wait(workers):
    (alone,) = workers(1).all
    alone.wake()
    alone.wait(int(PATIENCE_S * 1_000))


@pytest.mark.parametrize("kind", ["unix"], indirect=True)
def test_a_socket_lies_where_nobody_else_can_enter_and_goes_with_its_worker(workers):
    (alone,) = workers(1).all
    path = Path(alone.address.removeprefix("unix:"))
    assert stat.S_ISSOCK(os.stat(path).st_mode)
    alone.close()
    assert not path.exists()
    os.chmod(path.parent, 0o755)
    with pytest.raises(SettingsError, match="mode 0700"):
        SocketPeers(WorkerId(0), JOB, UnixAddress(path), clock=SetClock(), chance=SystemChance())
    os.chmod(path.parent, 0o700)
    path.touch()
    with pytest.raises(SettingsError, match="nothing can listen on unix:"):
        SocketPeers(WorkerId(0), JOB, UnixAddress(path), clock=SetClock(), chance=SystemChance())


def test_nobody_listens_on_a_network_without_credentials():
    with pytest.raises(SettingsError, match=r"tcp:127.0.0.1:0 by anybody.*runtime.cluster.secret_file"):
        SocketPeers(
            WorkerId(0),
            JOB,
            TcpAddress("127.0.0.1", 0),
            clock=SetClock(),
            chance=SystemChance(),
            credentials=NO_CREDENTIALS,
        )


@pytest.mark.parametrize("kind", ["tls"], indirect=True)
def test_with_certificates_alone_no_secret_is_needed(workers):
    two = workers(0)
    two.all = [two.make(WorkerId(n), secret=b"") for n in range(2)]
    for peers in two.all:
        two.connect(peers, 1)
    two.meet()
