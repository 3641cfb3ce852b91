"""The topic in which Connect keeps offsets, on a real broker: the newest word of each connector."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from cdc_lakehouse.config.settings import Connection, Role
from cdc_lakehouse.database.access import Database
from cdc_lakehouse.errors import BrokerUnavailableError, MissingConnectionError
from cdc_lakehouse.kafka.offsets_topic import newest_committed
from cdc_lakehouse.preflight.findings import Level
from cdc_lakehouse.preflight.source import offsets_finding

SHOP, BILLING = ["shop", {"server": "shop"}], ["billing", {"server": "billing"}]


def said(broker, topic: str, key: Sequence[object], *positions: int | None, partition: int = 0) -> None:
    values = [None if each is None else json.dumps({"lsn_commit": each}).encode() for each in positions]
    broker.send(topic, values, key=json.dumps(key).encode(), partition=partition)


def test_each_connector_is_told_with_what_it_committed_last(broker, topic):
    broker.create(topic, partitions=3, cleanup_policy="compact")
    said(broker, topic, SHOP, 1, 2, partition=1)
    said(broker, topic, BILLING, 7, partition=2)
    said(broker, topic, SHOP, 3, partition=1)

    assert newest_committed(broker.settings, topic) == [
        (BILLING, {"lsn_commit": 7}),
        (SHOP, {"lsn_commit": 3}),
    ]


def test_a_connector_whose_offsets_were_deleted_has_none(broker, topic):
    broker.create(topic)
    said(broker, topic, SHOP, 1, None)

    assert newest_committed(broker.settings, topic) == []


def test_only_the_newest_records_are_read(broker, topic):
    broker.create(topic)
    said(broker, topic, BILLING, 7)
    said(broker, topic, SHOP, *range(600))

    assert newest_committed(broker.settings, topic) == [(SHOP, {"lsn_commit": 599})]


def test_a_topic_that_is_not_there_is_told_so(broker, topic):
    with pytest.raises(BrokerUnavailableError, match="not-there"):
        newest_committed(broker.settings, "not-there")


def source(topic: str) -> Database:
    extra = {"database": "shop", "offsets_topic": topic}
    return Database.of(Connection(Role.SOURCE, host="db", login="reader", extra=extra))


def test_the_preflight_names_the_connectors_that_have_committed(broker, topic):
    broker.create(topic)
    before = offsets_finding(source(topic), broker.settings)
    said(broker, topic, SHOP, 1)
    said(broker, topic, BILLING, 7)
    after = offsets_finding(source(topic), broker.settings)

    assert (before.level, after.level) == (Level.WARNING, Level.OK)
    assert before.sentence == f"db:5432/shop, no connector has committed in {topic}"
    assert after.sentence == f"db:5432/shop, offsets of billing, shop in {topic}"


def test_a_topic_with_something_else_is_no_topic_of_offsets(broker, topic):
    broker.create(topic)
    broker.send(topic, [b"no json"], key=b"k")

    with pytest.raises(MissingConnectionError, match=f"`offsets_topic` {topic} holds something else"):
        offsets_finding(source(topic), broker.settings)
