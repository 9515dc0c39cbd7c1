"""An S3 server in this process, whose answers can be lost, and whose conditions can be ignored."""

from __future__ import annotations

import json
import logging
import secrets
import socket
import threading
import urllib.request
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

from processor.settings.location import Location, Scheme
from processor.settings.stores import StoreSettings
from processor.storage.objects import Objects

Environ = dict[str, Any]
StartResponse = Callable[..., Any]


class Serve(Protocol):
    """Serves the request once; silently if its answer goes nowhere."""

    def __call__(self, *, silent: bool = False) -> list[bytes]: ...


Fault = Callable[[Environ, Serve, StartResponse], list[bytes]]
"""Told of one request and how to serve it; what it returns is the answer."""

ACCESS_KEY = "AKIDFORTESTS"
SECRET_KEY = "this-is-nobodys-business"
_UNCHECKED = (
    f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/20300101/us-east-1/s3/aws4_request, "
    "SignedHeaders=host, Signature=0"
)


class S3Server:
    """One request after another, as if it were: of S3's promises, moto alone does not keep that one."""

    def __init__(self) -> None:
        logging.getLogger("werkzeug").setLevel(logging.CRITICAL)  # it tells of answers that were lost
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._lock = threading.Lock()
        self._faults: list[tuple[Callable[[Environ], bool], Fault]] = []
        self._choose: Callable[[Environ], Fault | None] = _nothing
        self._server = make_server("127.0.0.1", 0, self._serve, threaded=True)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self.seen: list[tuple[str, str]] = []
        """Method and path of every request."""
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def bucket(self) -> str:
        """The name of a new bucket."""
        name = f"bucket-{secrets.token_hex(6)}"
        self.request("PUT", name)
        return name

    def location(self, bucket: str, prefix: str = "some/prefix") -> Location:
        return Location(scheme=Scheme.S3, bucket=bucket, path=prefix)

    def settings(self, **more: object) -> StoreSettings:
        """For this server; impatient."""
        return StoreSettings.model_validate(
            {
                "s3": self.section(),
                "retries_max": 2,
                **more,
            }
        )

    def section(self) -> dict[str, str]:
        """What settings say of S3."""
        return {
            "endpoint": self.endpoint,
            "region": "us-east-1",
            "access_key_id": ACCESS_KEY,
            "secret_access_key": SECRET_KEY,
        }

    def bucket_of(self, objects: Objects) -> str:
        return objects.where.removeprefix("s3://").partition("/")[0]

    def puts(self, name: str) -> list[str]:
        """Every request to write something whose path ends with ``name``."""
        return [path for method, path in self.seen if method == "PUT" and path.endswith(name)]

    def request(self, method: str, path: str, content: bytes = b"") -> bytes:
        """Behind the back of who is tested."""
        request = urllib.request.Request(f"{self.endpoint}/{path}", data=content or None, method=method)
        request.add_header("Content-Type", "application/octet-stream")
        request.add_header("Authorization", _UNCHECKED)
        with urllib.request.urlopen(request, timeout=30) as answer:
            found: bytes = answer.read()
        return found

    def uploads(self, bucket: str) -> int:
        """Of several parts, begun and neither finished nor given up."""
        return self.request("GET", f"{bucket}?uploads").count(b"<UploadId>")

    def once(self, method: str, name: str, fault: Fault) -> None:
        """``fault`` stands in the way of the next request of that method whose path ends with ``name``."""
        self._faults.append(
            (
                lambda environ: environ["REQUEST_METHOD"] == method and environ["PATH_INFO"].endswith(name),
                fault,
            )
        )

    def always(self, choose: Callable[[Environ], Fault | None]) -> None:
        """``choose`` says of every other request what stands in its way, until ``behave``."""
        self._choose = choose

    def behave(self) -> None:
        self._faults.clear()
        self._choose = _nothing
        self.seen.clear()

    def _serve(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        # Read before the lock: a slow client holds nobody up.
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))

        def serve(*, silent: bool = False) -> list[bytes]:
            environ["wsgi.input"] = _Body(body)
            return list(self._moto(environ, _silent if silent else start_response))

        with self._lock:
            self.seen.append((environ["REQUEST_METHOD"], environ["PATH_INFO"]))
            for at, (wanted, fault) in enumerate(self._faults):
                if wanted(environ):
                    del self._faults[at]
                    return fault(environ, serve, start_response)
            chosen = self._choose(environ)
            return serve() if chosen is None else chosen(environ, serve, start_response)


def _nothing(_environ: Environ) -> None:
    """Stands in the way of a request."""


def _silent(_status: str, _headers: list[Any], _error: object = None) -> None:
    """Where an answer goes that nobody gets."""


class _Body:
    def __init__(self, content: bytes) -> None:
        self._rest = content

    def read(self, length: int = -1) -> bytes:
        taken = self._rest if length < 0 else self._rest[:length]
        self._rest = self._rest[len(taken) :]
        return taken

    def readline(self, length: int = -1) -> bytes:
        return self.read(length)


def lose_the_answer(environ: Environ, serve: Serve, start: StartResponse) -> list[bytes]:
    """The request is served, and the connection breaks before the answer."""
    serve(silent=True)
    return lose_the_request(environ, serve, start)


def lose_the_request(environ: Environ, serve: Serve, start: StartResponse) -> list[bytes]:
    """The connection breaks, and nothing is served."""
    connection: socket.socket = environ["werkzeug.socket"]
    connection.shutdown(socket.SHUT_RDWR)
    return []


def serve_twice(environ: Environ, serve: Serve, start: StartResponse) -> list[bytes]:
    """The request arrives twice; the second answer comes back."""
    serve(silent=True)
    return serve()


def ignore_conditions(environ: Environ, serve: Serve, start: StartResponse) -> list[bytes]:
    """As stores do that do not know conditional puts."""
    environ.pop("HTTP_IF_NONE_MATCH", None)
    return serve()


def settings_text(settings: StoreSettings) -> str:
    """For another process: with the secret, as one line."""
    content = settings.model_dump(mode="json")
    content["s3"]["secret_access_key"] = SECRET_KEY
    return json.dumps({name: value for name, value in content.items() if name in ("s3", "retries_max")})
