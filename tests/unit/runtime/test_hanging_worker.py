"""A worker that hangs when its coordinator is gone ends its process: nobody else can."""

from __future__ import annotations

import secrets
import subprocess
import sys
from pathlib import Path

from processor.channels.credentials import Credentials
from processor.ids import Attempt, WorkerId
from processor.protocol.worker_messages import Release
from processor.runtime.cluster.joining_pool import JoiningPool
from processor.runtime.cluster.network_address import network_address
from processor.runtime.system import SystemChance, SystemClock
from processor.runtime.worker_process import EXIT_HANGS
from processor.telemetry.log import get_log
from tests.unit.runtime.hanging_worker import worker_job
from tests.waiting import wait_until

WORKER = WorkerId(0)
WAIT_S = 60.0


def test_d01_a_worker_that_hangs_ends_itself_once_its_coordinator_is_gone(tmp_path: Path) -> None:
    secret = secrets.token_hex()
    job = worker_job(str(tmp_path))
    pool = JoiningPool(
        network_address("tcp:127.0.0.1:0", "test"),
        1,
        job=job.graph.name,
        fingerprint=job.fingerprint,
        credentials=Credentials(secret=secret.encode()),
        clock=SystemClock(),
        chance=SystemChance(),
        log=get_log("test"),
    )
    pool.start_missing()
    module = "tests.unit.runtime.hanging_worker"
    process = subprocess.Popen(
        [sys.executable, "-m", module, pool.address, str(tmp_path), secret],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:

        def there() -> bool:
            assert process.poll() is None
            while pool.take() is not None:
                pass
            return WORKER in pool.joined()

        wait_until(there, WAIT_S, "it has joined")
        pool.send(WORKER, Release(attempt=Attempt(1)))
        pool.close()  # what was sent is written before
        _, said = process.communicate(timeout=WAIT_S)
    finally:
        process.kill()
        process.wait()
        pool.close()
    assert process.returncode == EXIT_HANGS, said
    assert "did not leave an attempt whose coordinator is gone" in said
