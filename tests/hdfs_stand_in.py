"""A stand-in for HDFS's REST interface, in this process: what a NameNode and a DataNode answer, as far as it is asked
for, and answers that get lost. The same suite runs against it and against the real one, which keeps it honest.
"""

from __future__ import annotations

import json
import secrets
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from processor.settings.location import Location, Scheme
from processor.settings.stores import StoreSettings

ROOT = "/webhdfs/v1"
DATA = "data"
"""Parameter of an address that was given by the NameNode and is to be answered by the DataNode."""

POLL_S = 0.02
"""How often it looks whether it is to close."""

Told = tuple[int, Any]


class HdfsStandIn:
    """Files by path; folders are where files are."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        """Operation and path of every request that was served."""
        self.identities: set[tuple[str, str]] = set()
        """Who asked: parameters of requests."""
        self.negotiated: list[tuple[str, str | None]] = []
        """Operation and header of every request; operations that a DataNode does are "data CREATE" and the like."""
        self.negotiates = False
        """Whether a NameNode wants to be told by a header who asks."""
        self.refusal: Told | None = None
        """What every request is answered with, if anything."""
        self.tells_lengths = True
        self._lose: list[tuple[str, bool]] = []
        self._lock = threading.Lock()
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:
                return None

            def do_GET(self) -> None:
                stand_in._serve(self)

            do_PUT = do_DELETE = do_GET  # noqa: N815

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(POLL_S,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def location(self) -> Location:
        """A folder that nobody else uses."""
        return Location(scheme=Scheme.HDFS, bucket="localhost", path=f"user/{secrets.token_hex(6)}")

    def settings(self, **more: Any) -> StoreSettings:
        """For this server; impatient."""
        hdfs = {"endpoints": self.endpoint, "user": "tester", **more.pop("hdfs", {})}
        return StoreSettings.model_validate({"hdfs": hdfs, "retries_max": 2, **more})

    def lose(self, operation: str, *, served: bool = True) -> None:
        """The next request of this operation breaks off: after it was served, or before."""
        self._lose.append((operation, served))

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        where = urlsplit(handler.path)
        asked = dict(parse_qsl(where.query))
        path, operation = unquote(where.path.removeprefix(ROOT)), asked.get("op", "")
        body = _body(handler)
        with self._lock:
            self.identities.update(
                (name, asked[name]) for name in ("user.name", "delegation") if name in asked
            )
            sent_on = operation in ("CREATE", "OPEN") and DATA not in asked
            told_by = handler.headers.get("Authorization")
            self.negotiated.append((f"data {operation}" if DATA in asked else operation, told_by))
            lost = None if sent_on else next((one for one in self._lose if one[0] == operation), None)
            if lost is not None:
                self._lose.remove(lost)
            answer: Told = (0, b"")
            if lost is None or lost[1]:
                stranger = self.negotiates and DATA not in asked and told_by is None
                refusal = (401, b"") if stranger else self.refusal
                answer = refusal or self._answer(operation, path, asked, body, sent_on)
                self.asked.append(f"{operation} {path}")
        if lost is not None:
            handler.connection.shutdown(socket.SHUT_RDWR)
            handler.close_connection = True
            return
        status, told = answer
        content = told if isinstance(told, bytes) else json.dumps(told).encode()
        handler.send_response(status)
        if status == 307:
            handler.send_header("Location", f"{self.endpoint}{handler.path}&{DATA}=true")
            content = b""
        if self.tells_lengths:
            handler.send_header("Content-Length", str(len(content)))
        else:  # as gateways do: the end of the connection is the end of the content
            handler.send_header("Connection", "close")
            handler.close_connection = True
        handler.end_headers()
        handler.wfile.write(content)

    def _answer(self, operation: str, path: str, asked: dict[str, str], body: bytes, sent_on: bool) -> Told:
        if sent_on:
            return (307, b"") if operation == "CREATE" or path in self.files else _missing(path)
        answers: dict[str, Callable[[str, dict[str, str], bytes], Told]] = {
            "CREATE": self._create,
            "OPEN": self._open,
            "RENAME": self._rename,
            "DELETE": self._delete,
            "GETFILESTATUS": self._status,
            "LISTSTATUS": self._list,
        }
        return answers[operation](path, asked, body)

    def _create(self, path: str, asked: dict[str, str], body: bytes) -> Told:
        if path in self.files and asked["overwrite"] != "true":
            return _refused("FileAlreadyExistsException", f"{path} already exists")
        self.files[path] = body
        return 201, b""

    def _open(self, path: str, asked: dict[str, str], body: bytes) -> Told:
        start = int(asked.get("offset", 0))
        return 200, self.files[path][start : start + int(asked.get("length", 2**62))]

    def _rename(self, path: str, asked: dict[str, str], body: bytes) -> Told:
        target, onto = asked["destination"], asked.get("renameoptions") == "OVERWRITE"
        if path not in self.files or (target in self.files and not onto):
            return _missing(path) if onto else (200, {"boolean": False})
        self.files[target] = self.files.pop(path)
        return (200, b"") if onto else (200, {"boolean": True})

    def _delete(self, path: str, asked: dict[str, str], body: bytes) -> Told:
        if self._below(path):
            return _refused("PathIsNotEmptyDirectoryException", f"{path} is non empty")
        return 200, {"boolean": self.files.pop(path, None) is not None}

    def _status(self, path: str, asked: dict[str, str], body: bytes) -> Told:
        if path not in self.files:
            return _missing(path)
        return 200, {"FileStatus": {"length": len(self.files[path]), "type": "FILE"}}

    def _list(self, path: str, asked: dict[str, str], body: bytes) -> Told:
        below = self._below(path)
        if not below:
            return _missing(path)
        first = sorted({name.partition("/")[0] for name in below})
        statuses = [{"pathSuffix": n, "type": "FILE" if n in below else "DIRECTORY"} for n in first]
        return 200, {"FileStatuses": {"FileStatus": statuses}}

    def _below(self, path: str) -> set[str]:
        return {name.removeprefix(f"{path}/") for name in self.files if name.startswith(f"{path}/")}


def _refused(kind: str, message: str, status: int = 403) -> Told:
    return status, {"RemoteException": {"exception": kind, "message": message}}


def _missing(path: str) -> Told:
    return _refused("FileNotFoundException", f"File does not exist: {path}", 404)


def _body(handler: BaseHTTPRequestHandler) -> bytes:
    if handler.headers.get("Transfer-Encoding") != "chunked":
        return handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
    parts = []
    while length := int(handler.rfile.readline(), 16):
        parts.append(handler.rfile.read(length))
        handler.rfile.readline()
    handler.rfile.readline()
    return b"".join(parts)
