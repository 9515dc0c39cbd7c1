"""The server end of a running job's control socket: a thread that passes requests on to a JobControl."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Callable
from typing import Final, assert_never

from processor.contracts.job_control import JobControl, Outcome
from processor.service.control_messages import (
    REQUEST_BYTES_MAX,
    AskCheckpoint,
    AskCheckpoints,
    AskRescale,
    AskSavepoint,
    AskStatus,
    AskStop,
    Reply,
    Request,
    decode_request,
    encode_line,
)
from processor.service.control_place import BoundSocket, ControlPlace, bind, unbind
from processor.telemetry.log import Log

CONNECTIONS_MAX: Final = 16
"""At once. People and scripts ask; a flood of them must not take threads from the job."""

REQUEST_TIMEOUT_S: Final = 5.0
"""From connecting to the end of the request, and for sending the reply."""

CLOSE_TIMEOUT_S: Final = 5.0
"""For telling those who still wait, when the job ends."""

_ENDED: Final = Outcome(refused="the job ended before it could answer")


class ControlSocket:
    """Start it once the attempt has sealed its log: the newest attempt takes the socket from older ones.

    ``close`` answers everybody who still waits, so call it after the last answers were given.
    """

    def __init__(self, control: JobControl, place: ControlPlace, log: Log) -> None:
        self._control = control
        self._place = place
        self._log = log
        self._lock = threading.Lock()
        self._waiting: set[queue.SimpleQueue[Outcome]] = set()
        self._threads: set[threading.Thread] = set()
        self._closing = False
        self._bound: BoundSocket | None = None
        self._accepting: threading.Thread | None = None

    def start(self) -> None:
        """Listen. Raises OSError when no place takes a socket: the job can run without one, if it says so."""
        self._bound = bind(self._place, backlog=CONNECTIONS_MAX)
        self._accepting = threading.Thread(target=self._accept, name="control-socket", daemon=True)
        self._accepting.start()

    def close(self) -> None:
        """Answer those who wait, stop listening, remove the socket. Idempotent."""
        with self._lock:
            self._closing = True
            waiting = list(self._waiting)
            threads = list(self._threads)
        for answers in waiting:
            answers.put(_ENDED)
        deadline = time.monotonic() + CLOSE_TIMEOUT_S
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        bound, self._bound = self._bound, None
        if bound is None:
            return
        _wake(bound)
        unbind(bound)
        if self._accepting is not None:
            self._accepting.join(CLOSE_TIMEOUT_S)

    def _accept(self) -> None:
        bound = self._bound
        while bound is not None:
            try:
                connection, _ = bound.listener.accept()
            except OSError as failed:
                if not self._closing:
                    self._log.warning("the control socket no longer answers", error=failed)
                return
            self._admit(connection)

    def _admit(self, connection: socket.socket) -> None:
        connection.settimeout(REQUEST_TIMEOUT_S)
        with self._lock:
            refused = self._closing or len(self._threads) >= CONNECTIONS_MAX
            if not refused:
                thread = threading.Thread(
                    target=self._serve, args=(connection,), name="control-request", daemon=True
                )
                self._threads.add(thread)
                thread.start()
        if refused:
            _send(connection, Reply(error=f"{CONNECTIONS_MAX} others are asking, or the job is ending"))
            connection.close()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                _send(connection, self._reply_to(connection))
        finally:
            with self._lock:
                self._threads.discard(threading.current_thread())

    def _reply_to(self, connection: socket.socket) -> Reply:
        try:
            request = decode_request(_read_line(connection))
        except (OSError, ValueError) as wrong:
            return Reply(error=str(wrong))
        try:
            return self._answer(request)
        except Exception as failed:
            # The person who asks is told, and the job goes on: a request is never worth a running job.
            self._log.error("a request to the control socket failed", error=failed)
            return Reply(error=f"the job could not answer: {type(failed).__name__}: {failed}")

    def _answer(self, request: Request) -> Reply:
        match request:
            case AskStatus():
                return Reply(status=self._control.status())
            case AskCheckpoints(checkpoint=asked):
                return Reply(checkpoints=self._control.checkpoints(asked))
            case AskCheckpoint(full=full):
                return self._outcome(lambda answer: self._control.checkpoint(answer, full=full))
            case AskSavepoint(directory=directory, native=native):
                return self._outcome(lambda answer: self._control.savepoint(directory, answer, native=native))
            case AskRescale(parallelism=parallelism):
                return self._outcome(lambda answer: self._control.rescale(parallelism, answer))
            case AskStop(savepoint_directory=directory_or_none, drain=drain, native=native):
                return self._outcome(
                    lambda answer: self._control.stop(directory_or_none, answer, drain=drain, native=native)
                )
            case _:
                assert_never(request)

    def _outcome(self, ask: Callable[[Callable[[Outcome], None]], None]) -> Reply:
        """Wait for the answer, however long the job takes: it gives exactly one, or ``close`` does."""
        answers: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        with self._lock:
            if self._closing:
                return Reply(outcome=_ENDED)
            self._waiting.add(answers)
        try:
            ask(answers.put)
            return Reply(outcome=answers.get())
        finally:
            with self._lock:
                self._waiting.discard(answers)


def _wake(bound: BoundSocket) -> None:
    """End a waiting accept(): closing alone would leave it asleep."""
    try:
        bound.listener.shutdown(socket.SHUT_RDWR)
    except OSError:
        # Not every system shuts a listening socket down; every system accepts one more connection.
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knock:
            knock.settimeout(REQUEST_TIMEOUT_S)
            knock.connect(str(bound.path))


def _read_line(connection: socket.socket) -> bytes:
    """One line within the time and length allowed. Raises OSError or ValueError."""
    deadline = time.monotonic() + REQUEST_TIMEOUT_S
    received = bytearray()
    while not received.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0:
            raise ValueError(f"the request did not end within {REQUEST_TIMEOUT_S:.0f} s")
        connection.settimeout(left)
        chunk = connection.recv(4_096)
        if not chunk:
            raise ValueError("the request has no end of line")
        received += chunk
        if len(received) > REQUEST_BYTES_MAX:
            raise ValueError(f"the request is longer than {REQUEST_BYTES_MAX} bytes")
    return bytes(received)


def _send(connection: socket.socket, reply: Reply) -> None:
    # Whoever asked may be gone, which is their business.
    with contextlib.suppress(OSError):
        connection.settimeout(REQUEST_TIMEOUT_S)
        connection.sendall(encode_line(reply))
