"""Requests of a publisher that reach the broker late, twice, or are not answered: the output is exact (R11, R12).

A proxy stands between the job and a real broker. Attempts die while one of their requests is on its way, and it
arrives when their successors have long published on; attempts that live meet their own requests again in the
middle of the next transaction, or wait in vain for their time-outs. In the end everything is audited.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from connectors.kafka.dev_jars import DEFAULT_VERSION
from tests.contracts.kafka_wire import Api
from tests.contracts.proxy_rules import Fate
from tests.integration.disturbed import Proxied, disturbed
from tests.kill_budget import budgeted

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

HELD = [Api.END_TXN, Api.ADD_PARTITIONS_TO_TXN, Api.INIT_PRODUCER_ID]
ALL = [*HELD, Api.ADD_OFFSETS_TO_TXN, Api.PRODUCE]
if int(DEFAULT_VERSION.partition(".")[0]) >= 4:  # others forget a marker for it: see test_kafka_late_requests
    ALL.append(Api.TXN_OFFSET_COMMIT)
AT_DEATH = budgeted(
    [
        (Api.END_TXN, Fate.LATE),
        (Api.ADD_PARTITIONS_TO_TXN, Fate.TWICE),
        (Api.INIT_PRODUCER_ID, Fate.UNANSWERED),
    ],
    list(product(HELD, (Fate.LATE, Fate.TWICE, Fate.UNANSWERED))),
)
"""What befalls the request of an attempt that dies then."""
FENCED = (47, 90, 51)
"""Error codes of a broker to a producer whose epoch is an old one: INVALID_PRODUCER_EPOCH, PRODUCER_FENCED. Or
CONCURRENT_TRANSACTIONS, while a transaction of its successor is being decided: before anything else, and as little is
done for it."""
TAKING_OVER = (0, 51)
"""Done; or CONCURRENT_TRANSACTIONS: done when the transaction that was open is aborted."""
SHORT = {
    "checkpoint.publish_timeout": "4s",
    "kafka.main.publish_timeout": "1s",
    "kafka.main.transaction_timeout": "2s",
    "kafka.main.take_over_timeout": "1s",
    "kafka.main.marker_timeout": "1s",
    "runtime.restart.attempts": "100",
}


def by_name(api: Api) -> str:
    return api.name


@pytest.mark.kill
@pytest.mark.parametrize(("api", "fate"), AT_DEATH, ids=lambda part: part.name)
def test_r11_r12_r14_a_request_of_a_dead_attempt_arrives_when_its_successor_has_published(
    api: Api, fate: Fate, proxied: Proxied, tmp_path: Path
) -> None:
    with disturbed(proxied, tmp_path) as job:
        catch, _ = job.catch(api, fate)
        if fate is Fate.UNANSWERED:
            assert catch.wait_delivered() == 0, "it was done, and nobody was told"
        job.kill_and_succeed()
        if fate is not Fate.UNANSWERED:
            catch.release()
            assert catch.wait_delivered() in (TAKING_OVER if api is Api.INIT_PRODUCER_ID else FENCED)
            job.goes_on()


@pytest.mark.parametrize("api", ALL, ids=by_name)
def test_r11_r12_a_request_comes_again_where_its_transaction_or_the_next_one_stands(
    api: Api, proxied: Proxied, tmp_path: Path
) -> None:
    """When all of the same transaction is sent and not committed; between it and the next; when all of the next
    is sent and not committed. What is to be overtaken is held meanwhile."""
    with disturbed(proxied, tmp_path) as job:
        for until, nth in ((Api.END_TXN, 1), (Api.INIT_PRODUCER_ID, 1), (Api.END_TXN, 2)):
            twice, identity = job.catch(api, Fate.TWICE)
            overtaken, _ = job.catch(until, Fate.LATE, identity, nth=nth)
            twice.release()
            code = twice.wait_delivered()
            if nth == 2:
                assert code in (TAKING_OVER if api is Api.INIT_PRODUCER_ID else FENCED)
            overtaken.release()
            overtaken.wait_delivered()
            job.goes_on()


@pytest.mark.parametrize("api", ALL, ids=by_name)
def test_r11_a_connection_is_cut_before_and_after_a_request(
    api: Api, proxied: Proxied, tmp_path: Path
) -> None:
    with disturbed(proxied, tmp_path) as job:
        for fate in (Fate.CUT_BEFORE, Fate.CUT_AFTER):
            job.catch(api, fate)
            job.goes_on()


@pytest.mark.parametrize("api", ALL, ids=by_name)
def test_r11_r25_a_request_outlasts_every_time_out_of_its_sender(
    api: Api, proxied: Proxied, tmp_path: Path
) -> None:
    with disturbed(proxied, tmp_path, SHORT) as job:
        late, identity = job.catch(api, Fate.LATE)
        job.catch(Api.INIT_PRODUCER_ID, Fate.TWICE, identity)  # it was given up, and taken over again
        job.goes_on()
        late.release()
        assert late.wait_delivered() in (TAKING_OVER if api is Api.INIT_PRODUCER_ID else FENCED)
        job.goes_on()
        job.catch(api, Fate.UNANSWERED)
        job.goes_on()
