"""A job that reaches its broker by way of a proxy, is fed all the time, and is audited in the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from examples.job_process import JobProcess
from tests.contracts.kafka_proxy import KafkaProxy
from tests.contracts.kafka_wire import Api
from tests.contracts.proxy_rules import Catch, Fate, Rule
from tests.integration.scenario import REACH_TIMEOUT_S, STOP_TIMEOUT_S, Feeder, Scenario
from tests.waiting import wait_until

CHECKPOINTS_ON = 3
"""How far a job goes on before the next thing happens."""

Proxied = tuple[str, KafkaProxy]
"""The broker's own address, for whoever is not to be disturbed; and the proxy."""

FEED_PAUSE_S = 0.1
ONE_TRANSACTION = {"kafka.main.publish_rows_max": "50000"}
"""What waits while a request is held goes out at once."""


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
        before = scenario.reached().checkpoint

        def published_on() -> bool:
            assert self.process.exit_code() is None, f"it ended by itself:\n{self.process.said()}"
            # Decided only when the one before is published (R13).
            return scenario.reached().checkpoint > before + CHECKPOINTS_ON

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
