"""Worker 1 in a process of its own: sends back everything that worker 0 sends.

    python -m tests.unit.channels.echo_worker ADDRESS [CERTIFICATE KEY AUTHORITY]

Says its address; ends when worker 0 has ended the input and then the connection.
"""

from __future__ import annotations

import sys
from pathlib import Path

from processor.channels.addresses import parse_address
from processor.channels.credentials import Credentials
from processor.channels.exchange import Exchange
from processor.channels.socket_peers import SocketPeers
from processor.channels.tls import Tls
from processor.errors import AttemptFailed
from processor.ids import Attempt, ChannelId, Incarnation, JobName
from processor.records.elements import EndOfInput
from processor.runtime.system import SystemChance, SystemClock
from tests.unit.channels.kit import CODEC, EDGE, HERE, THERE

BACK = ChannelId(edge=1, producer=0, consumer=0)
JOB, INCARNATION, ATTEMPT = JobName("echo"), Incarnation("i"), Attempt(1)
WINDOW_BYTES = 2**16
WAIT_MS = 10_000


def credentials(*files: str) -> Credentials:
    tls = None
    if files:
        certificate, key, authority = map(Path, files)
        tls = Tls(certificate=certificate, key=key, authority=authority)
    return Credentials(secret=b"echo", tls=tls)


def main(address: str, *files: str) -> None:
    peers = SocketPeers(
        THERE,
        JOB,
        parse_address(address),
        clock=SystemClock(),
        chance=SystemChance(),
        credentials=credentials(*files),
    )
    print(peers.address, flush=True)
    peers.connect(INCARNATION, ATTEMPT, {HERE: "", THERE: peers.address})
    while (connections := peers.connected()) is None:
        peers.wait(WAIT_MS)
    exchange = Exchange(connections, window_bytes=WINDOW_BYTES)
    receiver = exchange.receiver(HERE, EDGE, CODEC)
    sender = exchange.sender(HERE, BACK, CODEC)
    ended = False
    try:
        while True:
            worked = exchange.turn()
            while sender.ready() and receiver.peek() is not None:
                element = receiver.take()
                ended = ended or isinstance(element, EndOfInput)
                sender.send(element)
                worked = True
            if not worked:
                peers.wait(WAIT_MS)
    except AttemptFailed:
        if not ended:
            raise
    peers.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
