"""Kerberos tells an HTTP server who asks (SPNEGO): by the system's own library, through the package gssapi, which
only who wants that needs to install.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Final

from processor.errors import ExternalRefusal, SettingsError, Unavailable

_SPNEGO: Final = "1.3.6.1.5.5.2"
_NO_KDC: Final = -1765328228
"""KRB5_KDC_UNREACH, of the library's minor codes."""
_EXPIRED: Final = -1765328352
"""KRB5KRB_AP_ERR_TKT_EXPIRED: whoever renews tickets is late."""


class Negotiator:
    """Makes the header of a request. Safe to use from several threads.

    Tickets are kept by the library, and fetched again before they end: of a keytab by itself, and else when
    somebody has renewed what lies in the machine's ticket cache.
    """

    def __init__(self, *, principal: str | None, keytab: Path | None) -> None:
        """Of the ticket cache, or of a ``keytab``; ``principal``: whom to be, if there are several.

        Raises SettingsError without the package.
        """
        try:
            import gssapi
        except ImportError as missing:
            raise SettingsError(
                "stores.hdfs.kerberos is set, and gssapi is not installed.",
                remedy="Install it ('pip install gssapi', or the extra 'kerberos'), or set delegation_token instead.",
            ) from missing
        self._gssapi: Any = gssapi
        self._principal = principal
        self._store = None
        if keytab is not None:
            self._store = {
                "client_keytab": f"FILE:{keytab}",
                "ccache": f"MEMORY:processor of {principal or ''} in {keytab}",
            }

    def authorization(self, host: str) -> str:
        """For one request to the HTTP server of a host: it is not to be used twice.

        Raises Unavailable, ExternalRefusal.
        """
        gssapi = self._gssapi
        try:
            whom = None
            if self._principal is not None:
                whom = gssapi.Name(self._principal, gssapi.NameType.kerberos_principal)
            # Acquired for each: that is when the library looks whether its tickets are about to end.
            mine = gssapi.Credentials(usage="initiate", name=whom, store=self._store)
            context = gssapi.SecurityContext(
                name=gssapi.Name(f"HTTP@{host}", gssapi.NameType.hostbased_service),
                creds=mine,
                mech=gssapi.OID.from_int_seq(_SPNEGO),
                usage="initiate",
            )
            token: bytes = context.step()
        except gssapi.exceptions.GSSError as error:
            problem = f"Kerberos gives no ticket for HTTP on '{host}': {_said(error)}."
            if isinstance(error, gssapi.exceptions.ExpiredCredentialsError) or error.min_code in _for_now():
                raise Unavailable(problem, remedy="Look after the KDC, and renew the tickets.") from error
            raise ExternalRefusal(
                problem,
                remedy="Check stores.hdfs.keytab and stores.hdfs.principal, or get a ticket with kinit; the host has "
                "to be the one in stores.hdfs.endpoints by which Kerberos knows it.",
            ) from error
        return f"Negotiate {base64.b64encode(token).decode()}"


def _for_now() -> frozenset[int]:
    """The library's codes are signed, and come as they are in memory."""
    codes = (_NO_KDC, _EXPIRED)
    return frozenset((*codes, *(code + 2**32 for code in codes)))


def _said(error: Any) -> str:
    """The library's own words; they name principals and places, and nothing that is secret."""
    told = " ".join(str(error).split()).rstrip(".")
    return "".join(char for char in told if char.isprintable())[:200]
