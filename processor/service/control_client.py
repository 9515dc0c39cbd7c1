"""The client end of the control socket: one request to a running job, with a time-out and a clear error."""

from __future__ import annotations

import contextlib
import socket
import time
from typing import Final

from processor.contracts.checkpoint_view import CheckpointsView
from processor.contracts.job_control import JobStatus, Outcome
from processor.errors import ExternalRefusal, Unavailable
from processor.ids import CheckpointId, JobName
from processor.service.control_messages import (
    REPLY_BYTES_MAX,
    AskCheckpoint,
    AskCheckpoints,
    AskRescale,
    AskSavepoint,
    AskStatus,
    AskStop,
    Reply,
    Request,
    decode_reply,
    encode_line,
)
from processor.service.control_place import ControlPlace
from processor.settings.units import duration_text

CONNECT_TIMEOUT_MS: Final = 5_000
STATUS_TIMEOUT_MS: Final = 5_000


class NotRunning(Unavailable):
    """Nobody listens for the job on this machine."""


class ControlClient:
    """Asks the job of one place. Every call raises NotRunning when no job runs there, Unavailable when it does not
    answer in time, and ExternalRefusal when the socket belongs to somebody else or does not know the request."""

    def __init__(self, place: ControlPlace, job: JobName) -> None:
        self._place = place
        self._job = job

    def status(self, timeout_ms: int = STATUS_TIMEOUT_MS) -> JobStatus:
        reply = self._ask(AskStatus(), timeout_ms)
        if reply.status is None:
            raise self._strange("a status")
        return reply.status

    def checkpoints(self, asked: CheckpointId | None, timeout_ms: int = STATUS_TIMEOUT_MS) -> CheckpointsView:
        """What became of its checkpoints, with every subtask's part of ``asked``."""
        reply = self._ask(AskCheckpoints(checkpoint=asked), timeout_ms)
        if reply.checkpoints is None:
            raise self._strange("a view of checkpoints")
        return reply.checkpoints

    def checkpoint(self, timeout_ms: int, *, full: bool = False) -> Outcome:
        """Has a checkpoint taken; with ``full`` one that lists no file of an earlier one."""
        return self._outcome(AskCheckpoint(full=full), timeout_ms)

    def savepoint(self, directory: str, timeout_ms: int, *, native: bool = False) -> Outcome:
        """``directory`` is absolute: the job may run in another directory than the one who asks."""
        return self._outcome(AskSavepoint(directory=directory, native=native), timeout_ms)

    def stop(
        self,
        savepoint_directory: str | None,
        timeout_ms: int,
        *,
        drain: bool = False,
        native: bool = False,
    ) -> Outcome:
        """Ends the job after a last checkpoint, or a savepoint where a directory is given; with ``drain`` for
        good."""
        asked = AskStop(savepoint_directory=savepoint_directory, drain=drain, native=native)
        return self._outcome(asked, timeout_ms)

    def rescale(self, parallelism: int, timeout_ms: int) -> Outcome:
        """Has the job go on at another parallelism; answered when it runs."""
        return self._outcome(AskRescale(parallelism=parallelism), timeout_ms)

    def _outcome(self, request: Request, timeout_ms: int) -> Outcome:
        reply = self._ask(request, timeout_ms)
        if reply.outcome is None:
            raise self._strange("an outcome")
        return reply.outcome

    def _ask(self, request: Request, timeout_ms: int) -> Reply:
        with self._connected() as connection:
            line = self._exchange(connection, request, timeout_ms)
        try:
            reply = decode_reply(line)
        except ValueError as wrong:
            raise self._strange("a reply of this version") from wrong
        if reply.error is not None:
            raise ExternalRefusal(
                f"job '{self._job}' did not take the request: {reply.error}.",
                remedy="Use the same version for the job and this command, and try again.",
            )
        return reply

    def _connected(self) -> socket.socket:
        path = self._place.find()
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(CONNECT_TIMEOUT_MS / 1_000)
        try:
            connection.connect(str(path))
        except PermissionError as refused:
            connection.close()
            raise ExternalRefusal(
                f"the control socket of job '{self._job}' ({path}) belongs to another user.",
                remedy="Ask as the user who runs the job.",
            ) from refused
        except TimeoutError as busy:
            connection.close()
            raise Unavailable(
                f"job '{self._job}' does not take requests within {duration_text(CONNECT_TIMEOUT_MS)}.",
                remedy="It is stopped or overloaded; its log may say more.",
            ) from busy
        except OSError as absent:
            connection.close()
            raise NotRunning(
                f"job '{self._job}' is not running on this machine: nobody answers at {path}.",
                remedy="Check the job's name and checkpoint.directory, or start it with 'processor run'.",
            ) from absent
        return connection

    def _exchange(self, connection: socket.socket, request: Request, timeout_ms: int) -> bytes:
        deadline = time.monotonic() + timeout_ms / 1_000
        received = bytearray()
        try:
            # Who is turned away may be answered before the request is sent.
            with contextlib.suppress(BrokenPipeError):
                connection.sendall(encode_line(request))
            while not received.endswith(b"\n"):
                connection.settimeout(max(0.001, deadline - time.monotonic()))
                chunk = connection.recv(65_536)
                if not chunk:
                    raise Unavailable(
                        f"job '{self._job}' ended before it answered.",
                        remedy="Its log says why; what was decided is kept.",
                    )
                received += chunk
                if len(received) > REPLY_BYTES_MAX:
                    raise self._strange(f"at most {REPLY_BYTES_MAX} bytes")
        except TimeoutError as late:
            raise Unavailable(
                f"job '{self._job}' did not answer within {duration_text(timeout_ms)}.",
                remedy="What was asked for may still happen: see 'processor status'.",
            ) from late
        except OSError as broken:
            raise Unavailable(
                f"the connection to job '{self._job}' broke: {broken.strerror or broken}.",
                remedy="What was asked for may still happen: see 'processor status'.",
            ) from broken
        return bytes(received)

    def _strange(self, expected: str) -> ExternalRefusal:
        return ExternalRefusal(
            f"job '{self._job}' answered with something else than {expected}.",
            remedy="Use the same version for the job and this command.",
        )
