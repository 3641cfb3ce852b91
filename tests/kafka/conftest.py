"""One broker for the tier, topics of its own for each test; Spark starts with the first that wants it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from broker import Broker  # type: ignore[import-not-found]

from local_stack import LocalStack
from local_stack.stack import RunningStack

# The lake and the Spark session are those of the tier next door.
sys.path.insert(0, str(Path(__file__).parents[1] / "spark"))

from drained import Drained  # type: ignore[import-not-found]
from orders import OLD  # type: ignore[import-not-found]

pytest_plugins = ["spark.conftest"]


@pytest.fixture(scope="session")
def stack(tmp_path_factory) -> Iterator[RunningStack]:
    with LocalStack(tmp_path_factory.mktemp("kafka")).running("kafka", airflow=False) as stack:
        yield stack


@pytest.fixture(scope="session")
def broker(stack) -> Iterator[Broker]:
    with closing(Broker(stack.kafka.client_settings())) as broker:
        yield broker


@pytest.fixture
def topic(request) -> str:
    return "t." + "".join(each if each.isalnum() else "_" for each in request.node.name)[:200]


@pytest.fixture
def drained(broker, chain, topic) -> Drained:
    (key_id, key), (value_id, value) = OLD.schemas.items()
    chain.registry.register(topic, keys={key_id: key}, values={value_id: value})
    return Drained(broker, chain, topic)
