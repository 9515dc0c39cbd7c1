"""A Ray cluster of several nodes on this machine, until standard input ends.

    python -m tests.integration.ray_cluster NODES CPUS PORT FOLDER

Each node has an address of its own, and ``CPUS``; the head has no room for a job and, at ``PORT``, the client server.
When all are there, the numbers of the nodes' main processes are printed, the head's first.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ray.cluster_utils import Cluster

STORE_BYTES: Final = 80 * 2**20
"""Of each node's object store, which nothing of a job is in; about the least that Ray takes."""

FIRST_HOST: Final = 2
"""127.0.0.1 would not do: Ray takes it for the machine's own address on a network."""


def host(number: int) -> str:
    return f"127.0.0.{FIRST_HOST + number}"


def main(arguments: Sequence[str]) -> int:
    nodes, cpus, port, folder = arguments
    # Ray writes the cluster's address into a folder that all clusters of the machine share, and does not make.
    os.environ["RAY_TMPDIR"] = folder
    (Path(folder) / "ray").mkdir()
    common: dict[str, Any] = {"object_store_memory": STORE_BYTES, "include_dashboard": False}
    head = {"node_ip_address": host(0), "num_cpus": 0, "temp_dir": folder}
    cluster = Cluster(
        initialize_head=True, head_node_args={**common, **head, "ray_client_server_port": int(port)}
    )
    try:
        made = [cluster.head_node]
        for number in range(1, int(nodes) + 1):
            made.append(cluster.add_node(node_ip_address=host(number), num_cpus=float(cpus), **common))
        print(*(_main_process(node) for node in made), flush=True)
        sys.stdin.read()
    finally:
        cluster.shutdown()
    return 0


def _main_process(node: Any) -> int:
    [raylet] = node.all_processes["raylet"]
    process: int = raylet.process.pid
    return process


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
