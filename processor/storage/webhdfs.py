"""Requests to HDFS by its REST interface (WebHDFS, which HttpFS speaks too): asked of one NameNode after another,
sent on to a DataNode, repeated, and told apart by what they mean.

Addresses carry tokens and answers whole stack traces, so of either only what is ours is passed on.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from processor.errors import ExternalRefusal, ProcessorError, Unavailable

ANSWER_BYTES_MAX: Final = 64 * 2**20
"""Of what a NameNode says: about 200,000 names of a listing."""

BACKOFF_FIRST_S: Final = 0.1
BACKOFF_MAX_S: Final = 5.0
REASON_CHARS_MAX: Final = 200

_ROOT: Final = "/webhdfs/v1"
_FOR_NOW: Final = frozenset({"StandbyException", "RetriableException", "SafeModeException"})
_NO_RIGHTS: Final = frozenset({"AccessControlException", "SecurityException", "AuthenticationException"})
_NOT_EMPTY: Final = "PathIsNotEmptyDirectoryException"
_WRONG: Final = frozenset(
    {"IllegalArgumentException", "InvalidPathException", "UnsupportedOperationException"}
)

Body = bytes | Iterator[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Where HDFS answers, as whom it is asked, and how long that may take."""

    endpoints: Sequence[str]
    """Addresses of NameNodes or gateways, without a path; asked in turn until one answers."""
    identity: Mapping[str, str]
    """Parameters that say who asks: ``user.name`` or ``delegation``."""
    connect_timeout_s: float
    request_timeout_s: float
    retries_max: int
    retry_timeout_s: float
    authorization: Callable[[str], str] | None = None
    """A header for one request to an endpoint's host, that says who asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back. ``exception`` is the kind of error that HDFS names, empty when all is well."""

    status: int
    body: bytes
    bytes: int
    """Of the whole content, of which ``body`` may be the beginning."""
    location: str
    exception: str
    message: str

    def json(self) -> Any:
        """Raises ValueError."""
        return json.loads(self.body)


class _NoTicket(Exception):
    """It cannot be said just now who asks."""


class WebHdfs:
    """One file system. Safe to use from several threads: every request has a connection of its own."""

    def __init__(
        self,
        access: Access,
        *,
        pause: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._access = access
        self._pause = pause
        self._now = now
        self._first = 0
        """The endpoint that answered last."""
        self._tls = ssl.create_default_context()

    def ask(
        self,
        act: str,
        method: str,
        operation: str,
        path: str,
        *,
        body: Body | None = None,
        answer_bytes_max: int = ANSWER_BYTES_MAX,
        missing: bool = False,
        **parameters: str,
    ) -> Answer | None:
        """The answer to one request, repeated while it stays out, unless its ``body`` can be sent only once.

        ``act`` is the verb for errors. With ``missing`` None says that the file or folder is not there. Raises
        Unavailable, ExternalRefusal.
        """
        parameters = {"op": operation, **parameters, **self._access.identity}
        target = f"{_ROOT}{quote(path)}?{urlencode(parameters)}"
        once = body is not None and not isinstance(body, bytes)
        reason, at = "", self._first
        deadline_s = self._now() + self._access.retry_timeout_s
        for tried in range(self._access.retries_max + 1):
            endpoint = self._access.endpoints[at % len(self._access.endpoints)]
            try:
                answer = self._once(endpoint, method, target, body, answer_bytes_max)
            except _NoTicket as error:
                reason = str(error)
            except (OSError, http.client.HTTPException) as error:
                reason = "no answer in time" if isinstance(error, TimeoutError) else "it cannot be reached"
            else:
                if not answer.exception:
                    self._first = at
                    return answer
                if missing and answer.exception == "FileNotFoundException":
                    return None
                meant = _meaning(act, path, answer)
                if not isinstance(meant, Unavailable):
                    raise meant
                reason = _reason(answer)
            at += 1
            if once or self._now() >= deadline_s:
                break
            if tried < self._access.retries_max:
                self._pause(min(BACKOFF_FIRST_S * 2**tried, BACKOFF_MAX_S))
        raise Unavailable(
            f"cannot {act} '{path}' in HDFS: {reason}.",
            remedy="Look after HDFS and the way to it; retries are set in section stores.",
        )

    def _once(
        self, endpoint: str, method: str, target: str, body: Body | None, answer_bytes_max: int
    ) -> Answer:
        """Ask the NameNode, and the DataNode that it names. Content is only sent to where the NameNode says."""
        answer = self._exchange(endpoint, method, target, None, ANSWER_BYTES_MAX)
        if not answer.location:
            return answer
        where = urlsplit(answer.location)
        if where.scheme not in ("http", "https") or (
            endpoint.startswith("https:") and where.scheme == "http"
        ):
            raise http.client.HTTPException("sent on to where nothing may be sent")
        elsewhere = f"{where.scheme}://{where.netloc}"
        return self._exchange(elsewhere, method, f"{where.path}?{where.query}", body, answer_bytes_max)

    def _exchange(
        self, endpoint: str, method: str, target: str, body: Body | None, answer_bytes_max: int
    ) -> Answer:
        with closing(self._connection(endpoint)) as connection:
            connection.connect()
            assert connection.sock is not None
            connection.sock.settimeout(self._access.request_timeout_s)
            headers = {"Content-Type": "application/octet-stream", **self._authorization(endpoint)}
            connection.request(method, target, body=body, headers=headers)
            response = connection.getresponse()
            # One more than is wanted: a gateway may not say how long the content is.
            content = response.read(answer_bytes_max + 1)
            length = response.getheader("Content-Length")
            location = response.getheader("Location") if 300 <= response.status < 400 else None
            whole = int(length) if length is not None and length.isdecimal() else len(content)
            if len(content) < min(whole, answer_bytes_max):
                raise http.client.IncompleteRead(content)
            exception, message = _remote(response.status, content)
            return Answer(
                status=response.status,
                body=content[:answer_bytes_max],
                bytes=whole,
                location=location or "",
                exception=exception,
                message=message,
            )

    def _authorization(self, endpoint: str) -> Mapping[str, str]:
        """Only for those that settings name, which a gateway sends on to again: a NameNode gives what a DataNode
        wants to know along with its address."""
        if self._access.authorization is None or endpoint not in self._access.endpoints:
            return {}
        host = urlsplit(endpoint).hostname
        assert host is not None
        try:
            return {"Authorization": self._access.authorization(host)}
        except Unavailable as error:
            raise _NoTicket(error.message.rstrip(".")) from error

    def _connection(self, endpoint: str) -> http.client.HTTPConnection:
        where = urlsplit(endpoint)
        assert where.hostname is not None
        if where.scheme == "https":
            return http.client.HTTPSConnection(
                where.hostname, where.port, timeout=self._access.connect_timeout_s, context=self._tls
            )
        return http.client.HTTPConnection(where.hostname, where.port, timeout=self._access.connect_timeout_s)


def _remote(status: int, content: bytes) -> tuple[str, str]:
    """Kind and text of the error an answer tells of; two empty texts when it is none."""
    if status < 400:
        return "", ""
    try:
        told = json.loads(content)["RemoteException"]
        return str(told["exception"]), str(told.get("message") or "")
    except (ValueError, TypeError, KeyError):
        return f"status {status}", ""


def _meaning(act: str, path: str, answer: Answer) -> ProcessorError:
    failed = f"cannot {act} '{path}' in HDFS: {_reason(answer)}."
    kind, status = answer.exception, answer.status
    if kind in _FOR_NOW or status >= 500:
        return Unavailable(failed)
    if kind in _NO_RIGHTS or status == 401:
        return ExternalRefusal(
            failed,
            remedy="Check stores.hdfs: user, delegation_token or kerberos; and the rights below the location.",
        )
    if kind == _NOT_EMPTY:
        return ExternalRefusal(failed)
    if kind in _WRONG or kind.startswith("status "):
        return ExternalRefusal(
            failed,
            remedy="Check stores.hdfs.endpoints: an HTTP server of HDFS with WebHDFS has to answer there.",
        )
    return Unavailable(failed)


def _reason(answer: Answer) -> str:
    """The first line of what HDFS says; a stack trace follows there."""
    first = answer.message.strip().splitlines()[:1]
    told = "".join(char for char in (first[0] if first else "") if char.isprintable())
    return f"{answer.exception}: {told.rstrip('.')}"[:REASON_CHARS_MAX] if told else answer.exception
