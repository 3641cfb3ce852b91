"""A cluster that does not answer."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from cdc_lakehouse.errors import BrokerUnavailableError
from cdc_lakehouse.kafka.cluster import Cluster


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where nobody listens: the port was free a moment ago and is bound, not listening."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def test_a_broker_that_is_not_there_is_unavailable(nobody):
    cluster = Cluster({"bootstrap.servers": nobody}, timeout_seconds=0.5)

    with pytest.raises(BrokerUnavailableError) as caught:
        cluster.facts({"shop.public.orders"})

    assert caught.value.bootstrap == nobody
    assert "refused" in caught.value.reason.lower()
