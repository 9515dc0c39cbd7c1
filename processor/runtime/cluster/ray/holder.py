"""What an actor does: it holds one process of the job on a node, and is nothing else."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress


class Holder:
    """Made an actor by ``nodes``, and called by the driver alone, one call at a time; all values are plain (R29). The
    process ends with the actor's own."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def free_address(self) -> str:
        """Where a process of this node can listen for others: its address, and a port that is free now."""
        import ray

        host = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        with socket.create_server((host, 0), family=_family(host)) as server:
            port = server.getsockname()[1]
        return f"tcp:[{host}]:{port}" if ":" in host else f"tcp:{host}:{port}"

    def start(self, words: Sequence[str], environment: Mapping[str, str], secret: str) -> int:
        """Start ``processor`` with these words in the directory that Ray has laid out; returns the process's number.
        ``secret``: of the run; the process finds it in a file without a name. Empty: none."""
        with tempfile.TemporaryFile() as file:
            passed: tuple[int, ...] = ()
            if secret:
                file.write(secret.encode())
                file.flush()
                file.seek(0)
                passed = (file.fileno(),)
                words = [*words, "--set", f"runtime.cluster.secret_file=/dev/fd/{file.fileno()}"]
            self._process = subprocess.Popen(
                [sys.executable, "-m", "processor", *words, "--parent", str(os.getpid())],
                stdin=subprocess.DEVNULL,
                pass_fds=passed,
                env={**os.environ, **environment},
            )
        return self._process.pid

    def poll(self) -> int | None:
        """The exit code of the process, negative for a signal that ended it; None while it runs."""
        return None if self._process is None else self._process.poll()

    def stop(self) -> None:
        """SIGTERM to the process, if it runs."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
