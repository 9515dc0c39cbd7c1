"""Two workers make sure of each other before the first frame, in any pieces, and strangers get nowhere."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.channels.handshake import (
    MAGIC,
    MESSAGE_BYTES_MAX,
    Dialled,
    Dialler,
    Hello,
    refused,
    welcome,
)
from processor.ids import Attempt, Incarnation, JobName, WorkerId

SECRET = b"what only workers know"
HELLO = Hello(
    job=JobName("job"),
    incarnation=Incarnation("i"),
    attempt=Attempt(3),
    worker=WorkerId(0),
    peer=WorkerId(1),
    nonce="0" * 32,
)


def dialled(secret: bytes = SECRET) -> Dialled:
    return Dialled("1" * 32, secret)


def proved() -> tuple[Dialler, Dialled]:
    """Both, as far as that each has proved itself."""
    low, high = Dialler(HELLO, SECRET), dialled()
    challenge = high.receive(low.opening)
    assert high.receive(low.receive(high.opening + challenge)) == b""
    return low, high


def test_each_side_proves_itself_and_the_next_byte_is_a_frames():
    low, high = proved()
    assert high.hello == HELLO
    assert not low.welcome
    assert low.receive(welcome(HELLO.worker) + b"frames") == b""
    assert (low.welcome, low.rest) == (True, b"frames")


def test_r21_a_welcome_for_another_worker_is_none():
    low, _ = proved()
    with pytest.raises(ValueError, match="takes worker 0 for worker 7"):
        low.receive(welcome(WorkerId(7)))


@given(st.lists(st.integers(1, 40)))
def test_it_is_the_same_however_the_bytes_are_cut(cuts):
    low, high = Dialler(HELLO, SECRET), dialled()
    to_high, to_low = bytearray(low.opening), bytearray(high.opening)
    sizes = iter(cuts)
    while (to_high or to_low) and high.hello is None:
        size = next(sizes, 1)
        to_low += high.receive(bytes(to_high[:size]))
        del to_high[:size]
        to_high += low.receive(bytes(to_low[:size]))
        del to_low[:size]
    assert high.hello == HELLO


def test_the_secret_is_never_said():
    low, high = Dialler(HELLO, SECRET), dialled()
    challenge = high.receive(low.opening)
    assert SECRET not in low.opening + high.opening + challenge + low.receive(high.opening + challenge)


def test_who_does_not_know_the_secret_is_found_by_either_side():
    for ours, theirs in ((SECRET, b"a guess"), (b"", SECRET), (SECRET, b"")):
        low, high = Dialler(HELLO, ours), dialled(theirs)
        challenge = high.receive(low.opening)
        with pytest.raises(ValueError, match="does not know the job's secret"):
            low.receive(high.opening + challenge)
    # The one who dials is a stranger, and goes on in spite of that.
    low, high = Dialler(HELLO, b"a guess"), dialled()
    high.receive(low.opening)
    fake = Dialled("1" * 32, b"a guess")
    proof = low.receive(fake.opening + fake.receive(low.opening))
    with pytest.raises(ValueError, match="does not know the job's secret"):
        high.receive(proof)
    assert high.hello is None


def test_what_was_said_once_proves_nothing_another_time():
    low, high = Dialler(HELLO, SECRET), dialled()
    proof = low.receive(high.opening + high.receive(low.opening))
    later = Dialled("2" * 32, SECRET)
    later.receive(low.opening)
    with pytest.raises(ValueError, match="secret"):
        later.receive(proof)


def test_what_one_side_says_does_not_prove_the_other():
    """Who reflects a challenge as its own proof has proved nothing."""
    low, high = Dialler(HELLO, SECRET), dialled()
    challenge = high.receive(low.opening)
    said = msgspec.msgpack.decode(challenge[2:])
    reflected = msgspec.msgpack.encode({"say": "proof", "proof": said["proof"]})
    with pytest.raises(ValueError, match="secret"):
        high.receive(len(reflected).to_bytes(2, "little") + reflected)


def test_a_hello_that_was_changed_on_its_way_is_found():
    low, high = Dialler(HELLO, SECRET), dialled()
    changed = low.opening.replace(b"job\xa3job", b"job\xa3cat")
    assert changed != low.opening
    challenge = high.receive(changed)
    with pytest.raises(ValueError, match="secret"):
        low.receive(high.opening + challenge)


def test_a_refusal_is_told():
    low, _ = proved()
    with pytest.raises(ValueError, match=r"^attempt 4 runs$"):
        low.receive(refused("attempt 4 runs"))
    low, _ = proved()
    with pytest.raises(ValueError, match=r"^x{1000}$"):
        low.receive(refused("x" * 10_000))


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"GET / HTTP/1.1\r\n", "no worker of a job"),
        (MAGIC + b"\x09\0", "version 9, and this release 2"),
        (MAGIC + b"\x02\0" + (MESSAGE_BYTES_MAX + 1).to_bytes(2, "little"), "4096 is the limit"),
        (MAGIC + b"\x02\0" + b"\x01\0" + b"\xc1", "no message"),
        (MAGIC + b"\x02\0" + welcome(HELLO.worker), "says Welcome where nobody does"),
    ],
)
def test_strangers_get_nowhere(said, why):
    with pytest.raises(ValueError, match=why):
        dialled().receive(said)
    with pytest.raises(ValueError, match=why):
        Dialler(HELLO, SECRET).receive(said)


def test_nobody_is_welcome_before_it_has_proved_itself():
    low = Dialler(HELLO, SECRET)
    with pytest.raises(ValueError, match="Welcome where nobody does"):
        low.receive(Dialled.opening + welcome(HELLO.worker))
    high = dialled()
    high.receive(low.opening)
    with pytest.raises(ValueError, match="Hello where nobody does"):
        high.receive(low.opening[10:])
    with pytest.raises(ValueError, match="Hello where nobody does"):
        proved()[1].receive(low.opening[10:])
