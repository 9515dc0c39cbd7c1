"""Nodes of a Ray cluster, seen from outside: which has which process of a job, and how one is lost."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from connectors.kafka.dev_server import free_ports
from tests.integration.ray_cluster import host
from tests.processes import family

END_S: Final = 60.0


class RayNodes:
    """Nodes that have room for a job; each is the number of its main process."""

    def __init__(self, address: str, nodes: list[int], environment: Mapping[str, str]) -> None:
        self.address = address
        """Of the cluster's client server."""
        self.environment = environment
        """Of whoever uses the cluster: it asks for a token."""
        self.nodes = nodes

    def with_process(self, command: str) -> list[int]:
        """The nodes on which ``processor`` runs this command, such as "run" or "worker"."""
        return [node for node in self.nodes if command in _commands(node)]

    def kill(self, node: int) -> None:
        """As if its machine had lost its power: nobody there says a word."""
        for process in reversed(family(node)):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.nodes.remove(node)


def _commands(node: int) -> Iterator[str]:
    """Those of ``processor`` in processes of a node."""
    for process in family(node):
        with suppress(FileNotFoundError, ProcessLookupError):
            words = Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace").split("\0")
            if words[1:3] == ["-m", "processor"]:
                yield words[3]


@contextmanager
def ray_nodes(nodes: int, cpus: float) -> Iterator[RayNodes]:
    """So many nodes with so many CPUs each, beside a head without."""
    [port] = free_ports(1)
    folder = tempfile.mkdtemp(prefix="ray-")  # sockets are in it: their paths must be short
    command = [
        sys.executable,
        "-m",
        "tests.integration.ray_cluster",
        str(nodes),
        str(cpus),
        str(port),
        folder,
    ]
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **token}
    ) as cluster:
        assert cluster.stdin is not None
        assert cluster.stdout is not None
        try:
            line = cluster.stdout.readline()
            assert line, "the cluster did not start"
            _, *others = map(int, line.split())
            yield RayNodes(f"ray://{host(0)}:{port}", others, token)
        finally:
            cluster.stdin.close()
            try:
                cluster.wait(END_S)
            finally:
                for process in reversed(family(cluster.pid)):
                    with suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)
                shutil.rmtree(folder, ignore_errors=True)
