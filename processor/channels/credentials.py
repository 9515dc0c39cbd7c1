"""How a worker proves to others that it is one: a secret, certificates, or both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from processor.channels.sockets import SocketConnection
from processor.channels.tls import Tls, TlsConnection
from processor.errors import SettingsError
from processor.settings.cluster import ClusterSettings
from processor.settings.secret import read_secret_file

SECRET_CHARS_MIN: Final = 32
"""Who listens can try secrets against what was said: none that can be guessed may do."""

PeerConnection = SocketConnection | TlsConnection


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Without any, whoever reaches a worker is taken for one."""

    secret: bytes = b""
    tls: Tls | None = None

    @property
    def any(self) -> bool:
        return bool(self.secret) or self.tls is not None

    def dialling(self, connection: SocketConnection) -> PeerConnection:
        return connection if self.tls is None else self.tls.dialling(connection)

    def dialled(self, connection: SocketConnection) -> PeerConnection:
        return connection if self.tls is None else self.tls.dialled(connection)


NO_CREDENTIALS: Final = Credentials()
"""For sockets that only the user's own processes can reach."""


def credentials_of(settings: ClusterSettings) -> Credentials:
    """Raises SettingsError for files that cannot be used."""
    secret = ""
    if settings.secret_file is not None:
        secret = read_secret_file(settings.secret_file, "runtime.cluster.secret_file")
        if len(secret) < SECRET_CHARS_MIN:
            raise SettingsError(
                f"runtime.cluster.secret_file: the secret in {settings.secret_file} has {len(secret)} characters, "
                f"fewer than {SECRET_CHARS_MIN}: it could be guessed.",
                remedy="Make one with: openssl rand -hex 32",
            )
    tls = None
    if settings.certificate_file and settings.key_file and settings.ca_file:
        tls = Tls(certificate=settings.certificate_file, key=settings.key_file, authority=settings.ca_file)
    return Credentials(secret=secret.encode(), tls=tls)
