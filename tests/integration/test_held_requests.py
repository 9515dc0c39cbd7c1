"""Requests of a publisher that reach the broker late, twice, or are not answered: the output is exact (R11, R12).

A proxy stands between the job and a real broker. Attempts die while one of their requests is on its way, and it
arrives when their successors have long published on; attempts that live meet their own requests again in the
middle of the next transaction, or wait in vain for their time-outs. In the end everything is audited.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from examples.job_process import JobProcess, reached
from tests.contracts.kafka_proxy import KafkaProxy, proxied_broker
from tests.contracts.kafka_wire import Api
from tests.contracts.proxy_rules import Catch, Fate, Rule
from tests.integration.scenario import REACH_TIMEOUT_S, STOP_TIMEOUT_S, Feeder, Scenario
from tests.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

CHECKPOINTS_ON = 3
"""How far a job goes on before the next thing happens."""

Proxied = tuple[str, KafkaProxy]
FEED_PAUSE_S = 0.1
ONE_TRANSACTION = {"kafka.main.publish_rows_max": "50000"}
"""What waits while a request is held goes out at once."""

HELD = [Api.END_TXN, Api.ADD_PARTITIONS_TO_TXN, Api.INIT_PRODUCER_ID]
ALL = [*HELD, Api.ADD_OFFSETS_TO_TXN, Api.TXN_OFFSET_COMMIT]
FENCED = (47, 90)
"""Error codes of a broker to a producer whose epoch is an old one: INVALID_PRODUCER_EPOCH, PRODUCER_FENCED."""
TAKING_OVER = (0, 51)
"""Done; or CONCURRENT_TRANSACTIONS: done when the transaction that was open is aborted."""
SHORT = {
    "checkpoint.publish_timeout": "4s",
    "kafka.main.publish_timeout": "1s",
    "kafka.main.transaction_timeout": "2s",
    "kafka.main.take_over_timeout": "1s",
    "kafka.main.marker_timeout": "1s",
    "runtime.restart_attempts": "100",
}


def by_name(api: Api) -> str:
    return api.name


class Disturbed:
    """A job that reaches its broker by way of a proxy, is fed all the time, and is audited in the end."""

    def __init__(
        self, bootstrap: str, proxy: KafkaProxy, folder: Path, settings: dict[str, str] | None = None
    ) -> None:
        self.proxy = proxy
        self.scenario = Scenario.make(bootstrap, folder, job="count", parallelism=2)
        by_proxy = {"kafka.main.bootstrap_servers": proxy.bootstrap, **ONE_TRANSACTION, **(settings or {})}
        self._job = self.scenario.with_settings(by_proxy)
        self.feeder = Feeder(bootstrap, self.scenario.topic_in, seed=5, pause_s=FEED_PAUSE_S)
        self.witness = self.scenario.witness()
        self._attempts = 0
        self.process = self._next_process()

    def start(self) -> None:
        self.feeder.start()
        self.witness.start()
        self.process.start()
        self.goes_on()

    def kill_and_succeed(self) -> None:
        """SIGKILL, and a successor that publishes."""
        self.process.kill()
        self.process = self._next_process()
        self.process.start()
        self.goes_on()

    def goes_on(self) -> None:
        """Wait until some further checkpoints are decided and published."""
        scenario = self.scenario
        before = reached(scenario.checkpoints, scenario.job_name).checkpoint

        def published_on() -> bool:
            assert self.process.exit_code() is None, f"it ended by itself:\n{self.process.said()}"
            # Decided only when the one before is published (R13).
            return reached(scenario.checkpoints, scenario.job_name).checkpoint > before + CHECKPOINTS_ON

        wait_until(published_on, REACH_TIMEOUT_S, f"it publishes on:\n{self.process.said()}")

    def catch(
        self, api: Api, fate: Fate, transactional_id: str | None = None, *, nth: int = 1
    ) -> tuple[Catch, str]:
        """The next such request that comes, or a later one, and whose it is."""
        catch = self.proxy.catch(Rule(api=api, fate=fate, nth=nth, transactional_id=transactional_id))
        request = catch.wait_caught(self.process.said())
        assert request.transactional_id is not None
        return catch, request.transactional_id

    def _next_process(self) -> JobProcess:
        self._attempts += 1
        return self._job.process(f"attempt-{self._attempts}")


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    with proxied_broker(tmp_path_factory.mktemp("proxied") / "broker") as (broker, proxy):
        yield broker.bootstrap, proxy


@contextmanager
def disturbed(proxied: Proxied, folder: Path, settings: dict[str, str] | None = None) -> Iterator[Disturbed]:
    """It runs for the time of a with-block; then all comes out: nothing is lost, doubled, torn or left open."""
    job = Disturbed(*proxied, folder, settings)
    try:
        job.start()
        yield job
        job.feeder.stop()
        job.scenario.drain(job.process)
        assert job.process.stop(STOP_TIMEOUT_S) == 0, job.process.said()
    finally:
        job.feeder.stop()
        job.process.kill()
        job.witness.stop()
    job.scenario.check(job.witness)


@pytest.mark.kill
@pytest.mark.parametrize("api", HELD, ids=by_name)
def test_r11_r12_r14_a_request_of_a_dead_attempt_arrives_when_its_successor_has_published(
    api: Api, proxied: Proxied, tmp_path: Path
) -> None:
    with disturbed(proxied, tmp_path) as job:
        for fate in (Fate.LATE, Fate.TWICE):
            catch, _ = job.catch(api, fate)
            job.kill_and_succeed()
            catch.release()
            expected = TAKING_OVER if api is Api.INIT_PRODUCER_ID else FENCED
            assert catch.wait_delivered() in expected
            job.goes_on()
        unanswered, _ = job.catch(api, Fate.UNANSWERED)
        assert unanswered.wait_delivered() == 0, "it was done, and nobody was told"
        job.kill_and_succeed()


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
