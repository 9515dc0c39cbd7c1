"""What Kafka says when it ends a transaction without telling a partition in it (R32)."""

from __future__ import annotations

from connectors.kafka.dev_broker import BrokerProcess

PASSED_OVER = "these partitions are likely deleted already and hence can be skipped"


def has_passed_over(broker: BrokerProcess) -> bool:
    """Whether this broker, as a coordinator, has done so since it was started."""
    return PASSED_OVER in broker.log.read_text()
