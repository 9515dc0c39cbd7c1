"""A connection within a connection, encrypted and authenticated by TLS on both sides."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from processor.channels.sockets import SocketConnection
from processor.contracts.connection import Bytes
from processor.errors import AttemptFailed, SettingsError

RECORD_BYTES: Final = 16 * 2**10
"""TLS has no more in one piece."""

PLAIN_BYTES: Final = 64 * 2**10
"""Small parts are put together to as much before they are encrypted."""


class Tls:
    """The certificates of one worker. Either side shows one that the job's authority has signed, whatever the name in
    it: workers come and go, and their hosts are not known beforehand."""

    def __init__(self, *, certificate: Path, key: Path, authority: Path) -> None:
        """Raises SettingsError for files that cannot be used."""
        self._dials = _context(ssl.PROTOCOL_TLS_CLIENT, certificate, key, authority)
        self._is_dialled = _context(ssl.PROTOCOL_TLS_SERVER, certificate, key, authority)

    def dialling(self, beneath: SocketConnection) -> TlsConnection:
        return TlsConnection(beneath, self._dials, server=False)

    def dialled(self, beneath: SocketConnection) -> TlsConnection:
        return TlsConnection(beneath, self._is_dialled, server=True)


def _context(protocol: int, certificate: Path, key: Path, authority: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    try:
        context.load_cert_chain(certificate, key)
        context.load_verify_locations(authority)
    except OSError as error:
        raise SettingsError(
            f"TLS between workers cannot use {certificate}, {key} and {authority}: {error.strerror or error}.",
            remedy="Look at runtime.cluster.certificate_file, key_file and ca_file: all are PEM files, and the key "
            "is that of the certificate.",
        ) from error
    return context


class TlsConnection:
    """See ``processor.contracts.connection.Connection``."""

    def __init__(self, beneath: SocketConnection, context: ssl.SSLContext, *, server: bool) -> None:
        self._beneath = beneath
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=server)
        self._begun = False
        """The handshake of TLS is on its way: before, the socket may still be connecting."""
        self._agreed = False
        """It is over."""
        self._plain = bytearray()
        """What waits for that."""
        self._unread = b""
        self._broken: ssl.SSLError | None = None

    @property
    def peer(self) -> str:
        return self._beneath.peer

    @peer.setter
    def peer(self, named: str) -> None:
        self._beneath.peer = named

    def fileno(self) -> int:
        return self._beneath.fileno()

    @property
    def reads(self) -> bool:
        return self._beneath.reads

    def ready(self) -> None:
        self._beneath.ready()

    @property
    def own_host(self) -> str:
        return self._beneath.own_host

    @property
    def writes(self) -> bool:
        return self._beneath.writes or not self._begun

    def send(self, parts: Sequence[Bytes]) -> None:
        for part in parts:
            self._plain += part
            if len(self._plain) >= PLAIN_BYTES:
                self._encrypt()

    def flush(self) -> int:
        self._encrypt()
        return self._beneath.flush() + len(self._plain)

    def receive(self) -> Bytes:
        if self._unread:
            unread, self._unread = self._unread, b""
            return unread
        while not (plain := self._decrypt()):
            if self._broken is not None:
                raise AttemptFailed(
                    f"TLS with {self.peer} has failed: {self._broken.reason or self._broken}.",
                    remedy="Look whether the certificates of both are signed by the authority that both trust, and "
                    "have not expired.",
                ) from self._broken
            arrived = self._beneath.receive()
            if not arrived:
                return b""
            self._incoming.write(arrived)
        return plain

    def unread(self, data: bytes) -> None:
        """Give back what was received last and is for somebody else: it is received again."""
        self._unread = data

    def close(self) -> None:
        self._plain.clear()
        self._beneath.close()

    def _decrypt(self) -> bytes:
        """All that has arrived and is whole."""
        pieces: list[bytes] = []
        try:
            if self._agree():
                while piece := self._tls.read(RECORD_BYTES):
                    pieces.append(piece)
        except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):
            pass  # after the end of TLS comes that of what is beneath, which tells
        except ssl.SSLError as error:
            self._broken = error
        self._pass_on()
        return b"".join(pieces)

    def _encrypt(self) -> None:
        try:
            if self._agree():
                with memoryview(self._plain) as plain:
                    written = 0
                    while written < len(plain):
                        written += self._tls.write(plain[written:])
                self._plain.clear()
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            self._broken = error
        if self._broken is not None:
            self._plain.clear()
        self._pass_on()

    def _agree(self) -> bool:
        """Whether the handshake of TLS is over. Raises SSLWantReadError while it waits for the other side."""
        if self._broken is not None:
            return False
        if not self._agreed:
            self._begun = True
            self._tls.do_handshake()
            self._agreed = True
        return True

    def _pass_on(self) -> None:
        if self._outgoing.pending:
            self._beneath.send([self._outgoing.read()])
            self._beneath.flush()
