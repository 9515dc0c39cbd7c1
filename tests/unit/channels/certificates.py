"""Certificates of an authority of the test's own."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from processor.channels.tls import Tls

LONG_AGO = datetime(2_000, 1, 1, tzinfo=UTC)
NO_LONGER = datetime(2_001, 1, 1, tzinfo=UTC)
FOR_EVER = datetime(9_999, 1, 1, tzinfo=UTC)


class Authority:
    """Signs certificates, and writes them below a folder."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(_pem(self._signed(self._name, self._key, of_authority=True)))

    def sign(self, name: str, *, expired: bool = False) -> tuple[Path, Path]:
        """Files of a certificate and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate, private = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        certificate.write_bytes(_pem(self._signed(subject, key, of_authority=False, expired=expired)))
        private.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return certificate, private

    def tls(self, name: str, *, trusts: Authority | None = None, expired: bool = False) -> Tls:
        certificate, key = self.sign(name, expired=expired)
        return Tls(certificate=certificate, key=key, authority=(trusts or self).file)

    def _signed(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        *,
        of_authority: bool,
        expired: bool = False,
    ) -> x509.Certificate:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(LONG_AGO)
            .not_valid_after(NO_LONGER if expired else FOR_EVER)
            .add_extension(x509.BasicConstraints(ca=of_authority, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
