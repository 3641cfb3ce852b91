"""Topics that are no tables, by their documented names; and tables that look a little like them."""

from __future__ import annotations

import pytest

from cdc_lakehouse.debezium.control_topics import is_control_topic


@pytest.mark.parametrize(
    "topic",
    [
        "__consumer_offsets",
        "__transaction_state",
        "__share_group_state",
        "__cluster_metadata",
        "_schemas",
        "_confluent-metrics",
        "_connect_configs",
        "_connect_offsets",
        "_connect_status",
        "connect-configs",
        "connect-offsets",
        "connect-status",
        "connect-statuses",
        "my_connect_offsets",
        "docker-connect-configs",
        "connect-cluster-1-offsets",
        "__debezium-heartbeat.shop",
        "debezium-heartbeat.shop",
        "shop.transaction",
        "shop.message",
        "shop.public.debezium_signal",
        "shop.inventory.dbz_signal",
        "debezium_signals",
        "shop-signal",
        "debezium_notifications",
        "schema-changes.inventory",
        "schemahistory.fullfillment",
        "shop.schema-history",
        "dbhistory.inventory",
        "heartbeats",
        "mm2-offsets.primary.internal",
        "primary.checkpoints.internal",
        "app-KSTREAM-AGGREGATE-STATE-STORE-0000000003-changelog",
        "app-counts-repartition",
    ],
)
def test_topics_of_the_machinery_are_no_tables(topic):
    assert is_control_topic(topic)


@pytest.mark.parametrize(
    "topic",
    [
        "shop.public.orders",
        "shop.public.transaction",
        "shop.public.message",
        "shop.public.signals",
        "shop.public.connections",
        "shop.public.order_status",
        "shop.public.site_offsets",
        "shop.public.heartbeat",
        "shop.public.schema_versions",
        "shop.public.internal",
        "orders",
        "shop.orders",
    ],
)
def test_tables_may_have_such_words_in_their_names(topic):
    assert not is_control_topic(topic)
