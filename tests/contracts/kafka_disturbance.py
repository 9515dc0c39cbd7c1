"""Ending transactions from outside, by another client's request classes: what operators and accidents do."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.waiting import wait_until

with warnings.catch_warnings():
    # It reads its schemas, while it is imported, by a function of the standard library on its way out.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient
    from kafka.errors import KafkaError
    from kafka.protocol.metadata.find_coordinator import CoordinatorType
    from kafka.protocol.producer.transaction import EndTxnRequest

WAIT_S = 60.0


@contextmanager
def outside(bootstrap: str) -> Iterator[Outsider]:
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        yield Outsider(client)
    finally:
        client.close()


class Outsider:
    """Sees and ends other people's transactions."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def state(self, transactional_id: str) -> Any:
        return self._client.describe_transactions([transactional_id])[transactional_id]

    def end(self, transactional_id: str, *, commit: bool, as_seen: Any = None) -> int:
        """Send EndTxn in the name of the present producer, or of ``as_seen``; returns the error code."""
        seen = as_seen or self.state(transactional_id)

        async def send() -> int:
            request = EndTxnRequest(
                transactional_id=transactional_id,
                producer_id=seen.producer_id,
                producer_epoch=seen.producer_epoch,
                committed=commit,
                max_version=3,
            )
            answer = await self._client._manager.send(request, node_id=seen.coordinator_id)
            return int(answer.error_code)

        run: Callable[..., int] = self._client._manager.run
        return run(send)

    def coordinators(self, name: str) -> tuple[int, int]:
        """Node ids of the coordinators of the group and of the transactional id of this name."""
        find, run = self._client._find_coordinator_ids, self._client._manager.run
        group = run(find, [name], CoordinatorType.GROUP)[name]
        return int(group), int(run(find, [name], CoordinatorType.TRANSACTION)[name])

    def group_coordinator(self, group: str) -> int | None:
        """Node id of a group's coordinator; None when nobody says."""
        try:
            found = self._client._manager.run(
                self._client._find_coordinator_ids, [group], CoordinatorType.GROUP
            )
        except KafkaError:
            return None
        return int(found[group])

    def wait_ended(self, transactional_id: str) -> str:
        """Until no transaction of this id is open; returns its state."""

        def ended() -> str:
            state = str(self.state(transactional_id).state.value)
            return "" if state == "Ongoing" else state

        return wait_until(ended, WAIT_S, f"the transaction of {transactional_id} is ended")
