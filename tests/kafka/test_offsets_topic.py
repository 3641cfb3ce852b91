"""The topic in which Connect keeps offsets, on a real broker: the newest word of each connector."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from cdc_lakehouse.errors import BrokerUnavailableError
from cdc_lakehouse.kafka.offsets_topic import newest_committed

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
