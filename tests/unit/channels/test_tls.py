"""A connection within TLS: everything comes, in order, and only between certificates of one authority."""

from __future__ import annotations

import socket
from pathlib import Path
from random import Random

import pytest

from processor.channels.credentials import SECRET_CHARS_MIN, Credentials, credentials_of
from processor.channels.sockets import SocketConnection
from processor.channels.tls import Tls, TlsConnection
from processor.errors import AttemptFailed, SettingsError
from processor.settings.cluster import ClusterSettings
from tests.unit.channels.certificates import Authority


@pytest.fixture
def raw():
    """Two ends of a connection; what is sent on the second goes nowhere but to the first."""
    one, other = socket.socketpair()
    ends = SocketConnection(one, "worker 1"), SocketConnection(other, "worker 0")
    yield ends
    for end in ends:
        end.close()


def meet(near: TlsConnection, far: TlsConnection) -> tuple[bytes, bytes]:
    """What each has received once nothing moves any more."""
    found = bytearray(), bytearray()
    quiet = 0
    while quiet < 3:
        before = len(found[0]) + len(found[1])
        for end, heard in zip((near, far), found, strict=True):
            end.flush()
            heard += end.receive()
        quiet = quiet + 1 if len(found[0]) + len(found[1]) == before else 0
    return bytes(found[0]), bytes(found[1])


def test_everything_comes_in_order_both_ways_and_nothing_of_it_can_be_read(raw, tmp_path):
    authority = Authority(tmp_path)
    near = authority.tls("zero").dialling(raw[0])
    far = authority.tls("one").dialled(raw[1])
    chance = Random(3)
    parts = [chance.randbytes(chance.choice((1, 100, 20_000, 300_000))) for _ in range(60)]
    near.send([b"sent before anybody has agreed on anything"])
    waits_to_write = [near.writes]  # it still has to say its first word
    near.flush()
    first = bytes(raw[1].receive())
    assert b"anybody" not in first
    raw[1].unread(first)
    near.send(parts)
    far.send([b"an answer", *parts[:3]])
    back, forth = meet(near, far)
    assert forth == b"sent before anybody has agreed on anything" + b"".join(parts)
    assert back == b"an answer" + b"".join(parts[:3])
    assert near.flush() == 0
    assert [*waits_to_write, near.writes] == [True, False]
    near.unread(b"again")
    assert near.receive() == b"again"
    near.close()
    with pytest.raises(AttemptFailed, match="worker 0 has ended its connection"):
        far.receive()


def test_bytes_that_were_changed_on_their_way_are_found(raw, tmp_path):
    authority = Authority(tmp_path)
    near, far = authority.tls("zero").dialling(raw[0]), authority.tls("one").dialled(raw[1])
    meet(near, far)
    near.send([b"a record of some length"])
    near.flush()
    changed = bytearray(raw[1].receive())
    changed[-1] ^= 1
    raw[1].unread(bytes(changed))
    for _ in range(2):
        with pytest.raises(AttemptFailed, match="TLS with worker 0 has failed"):
            far.receive()
    far.send([b"more"])
    assert far.flush() == 0


def fails(near: TlsConnection, far: TlsConnection) -> str:
    with pytest.raises(AttemptFailed, match=r"TLS with worker . has failed") as found:
        meet(near, far)
    return str(found.value)


def test_who_is_dialled_with_a_strange_certificate_is_refused(raw, tmp_path):
    ours, theirs = Authority(tmp_path, "ours"), Authority(tmp_path, "theirs")
    assert "CERTIFICATE_VERIFY_FAILED" in fails(
        ours.tls("a").dialling(raw[0]), theirs.tls("b").dialled(raw[1])
    )


def test_a_dialler_with_a_strange_certificate_is_refused(raw, tmp_path):
    ours, theirs = Authority(tmp_path, "ours"), Authority(tmp_path, "theirs")
    stranger = theirs.tls("stranger", trusts=ours)
    assert "CERTIFICATE_VERIFY_FAILED" in fails(stranger.dialling(raw[0]), ours.tls("a").dialled(raw[1]))


def test_a_certificate_that_has_expired_is_refused(raw, tmp_path):
    ours = Authority(tmp_path, "ours")
    assert "CERTIFICATE_VERIFY_FAILED" in fails(
        ours.tls("old", expired=True).dialling(raw[0]), ours.tls("a").dialled(raw[1])
    )


def test_who_does_not_speak_tls_is_refused(raw, tmp_path):
    far = Authority(tmp_path).tls("a").dialled(raw[1])
    raw[0].send([b"GET / HTTP/1.1\r\n\r\n"])
    raw[0].flush()
    with pytest.raises(AttemptFailed, match="TLS with worker 0 has failed"):
        far.receive()


def test_files_that_cannot_be_used_are_named(tmp_path):
    authority = Authority(tmp_path)
    certificate, key = authority.sign("a")
    other_key = authority.sign("b")[1]
    empty = tmp_path / "empty.pem"
    empty.touch()
    for files in (
        (certificate, other_key, authority.file),
        (tmp_path / "none.pem", key, authority.file),
        (certificate, key, empty),
        (empty, key, authority.file),
    ):
        with pytest.raises(SettingsError, match=r"runtime.cluster.certificate_file, key_file and ca_file"):
            Tls(certificate=files[0], key=files[1], authority=files[2])


def cluster(**files: Path) -> ClusterSettings:
    return ClusterSettings(**files)


def test_credentials_are_what_the_settings_name(tmp_path):
    assert credentials_of(cluster()) == Credentials(secret=b"", tls=None)
    assert not credentials_of(cluster()).any
    secret = tmp_path / "secret"
    secret.write_text("s" * SECRET_CHARS_MIN + "\n")
    assert credentials_of(cluster(secret_file=secret)).secret == b"s" * SECRET_CHARS_MIN
    authority = Authority(tmp_path)
    certificate, key = authority.sign("a")
    found = credentials_of(cluster(certificate_file=certificate, key_file=key, ca_file=authority.file))
    assert found.tls is not None
    assert found.any


def test_a_secret_that_can_be_guessed_is_refused_without_being_told(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("hunter2")
    with pytest.raises(SettingsError, match="has 7 characters, fewer than 32") as found:
        credentials_of(cluster(secret_file=secret))
    assert "hunter2" not in str(found.value)


@pytest.mark.parametrize(
    "given", [("certificate_file",), ("key_file", "ca_file"), ("certificate_file", "key_file")]
)
def test_files_of_tls_go_together(given, tmp_path):
    with pytest.raises(ValueError, match="set all or none"):
        cluster(**dict.fromkeys(given, tmp_path))
