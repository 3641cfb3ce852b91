"""A cluster that does not answer."""

from __future__ import annotations

import gc
import socket
import weakref
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

import pytest

from cdc_lakehouse.errors import BrokerUnavailableError
from cdc_lakehouse.kafka.cluster import Cluster, millis_from


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where nobody listens: the port was free a moment ago and is bound, not listening."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def test_a_broker_that_is_not_there_is_unavailable(nobody):
    with (
        closing(Cluster({"bootstrap.servers": nobody}, timeout_seconds=0.5)) as cluster,
        pytest.raises(BrokerUnavailableError) as caught,
    ):
        cluster.facts({"shop.public.orders"})

    assert caught.value.bootstrap == nobody
    assert "refused" in caught.value.reason.lower()


@pytest.fixture
def without_garbage_collection() -> Iterator[None]:
    """Where Python collects a client on the thread that brings answers, librdkafka ends the process (134)."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("without_garbage_collection")
def test_a_client_is_no_garbage_when_its_owner_lets_go(nobody):
    cluster = Cluster({"bootstrap.servers": nobody}, timeout_seconds=0.5)
    client = weakref.ref(cluster._admin)

    del cluster

    assert client() is None


@pytest.mark.usefixtures("without_garbage_collection")
def test_a_client_ends_with_close_though_somebody_still_holds_the_connection(nobody):
    """As the traceback of an error does that is kept."""
    cluster = Cluster({"bootstrap.servers": nobody}, timeout_seconds=0.5)
    client = weakref.ref(cluster._admin)
    with pytest.raises(BrokerUnavailableError) as kept:
        cluster.facts({"shop.public.orders"})

    cluster.close()

    assert kept.value.bootstrap == nobody
    assert client() is None


def test_a_connection_that_was_closed_asks_nothing(nobody):
    cluster = Cluster({"bootstrap.servers": nobody}, timeout_seconds=0.5)

    cluster.close()
    cluster.close()

    with pytest.raises(RuntimeError, match="was closed"):
        cluster.topic_names()


@pytest.mark.parametrize(
    ("microsecond", "millis"), [(0, 0), (1, 1), (123_000, 123), (123_001, 124), (999_999, 1000)]
)
def test_a_moment_is_the_first_millisecond_that_is_not_before_it(microsecond, millis):
    second = datetime(2026, 11, 3, 14, 7, 9, tzinfo=UTC)

    asked = millis_from(second.replace(microsecond=microsecond))

    assert asked - int(second.timestamp()) * 1000 == millis
