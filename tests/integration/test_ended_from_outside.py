"""Somebody ends a transaction in the publisher's own name, without a new epoch, after its marker and before its rows.

Only a client that speaks Kafka's protocol by itself can do that. What the publisher adds afterwards is a new
transaction to the broker, and commits: rows without a marker. Nothing can be done about it but to notice, and that
is what is shown: the job stops loudly, names what is unclear, and has lost nothing (R11).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from processor.cli.reporting import FELL_SHORT_EXIT_CODE
from tests.contracts.kafka_disturbance import outside
from tests.contracts.kafka_wire import Api
from tests.contracts.proxy_rules import Fate
from tests.integration.disturbed import Disturbed, Proxied
from tests.integration.scenario import STOP_TIMEOUT_S
from tests.waiting import wait_until

ABORTED = "CompleteAbort"
END_TIMEOUT_S = 30.0

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def test_r11_a_transaction_ended_between_its_marker_and_its_rows_stops_the_job_loudly(
    proxied: Proxied, tmp_path: Path
) -> None:
    job = Disturbed(*proxied, tmp_path)
    try:
        job.start()
        rows, identity = job.catch(Api.ADD_PARTITIONS_TO_TXN, Fate.LATE)
        with outside(job.scenario.bootstrap) as outsider:
            assert outsider.end(identity, commit=False) == 0
            wait_until(
                lambda: outsider.state(identity).state.value == ABORTED, END_TIMEOUT_S, "it is aborted"
            )
        rows.release()
        assert rows.wait_delivered() == 0, "the broker takes it for the beginning of another transaction"
        code = job.process.wait(STOP_TIMEOUT_S)
    finally:
        job.feeder.stop()
        job.process.kill()
        job.witness.stop()
    said = job.process.said()
    print(code, said)
    assert code not in (0, FELL_SHORT_EXIT_CODE), said
    assert f"'{identity}' has committed rows" in said
    assert "somebody else ended the transaction in the middle" in said
    [report, *_] = job.scenario.audit()
    print(report.text())
    assert report.figure("1", "losses") == 0, report.text()
