"""Topics that are no tables, by their documented names; and tables that look a little like them."""

from __future__ import annotations

import pytest

from cdc_lakehouse.debezium.control_topics import is_control_topic, resembles_control_topic


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
        "shop.public.flyway_schema_history",
        "shop.public.connect_status",
        "shop.public.price_db_history",
        "shop.public._internal_accounts",
        "shop.public.traffic_signal",
        "shop.public.debezium_signals_of_2026",
        "shop.public.orders-changelog",
        "_shop.public.orders",
        "shop.connect_status",
        "shop.flyway_schema_history",
        "traffic_signal",
        "orders",
        "shop.orders",
    ],
)
def test_tables_may_have_such_words_in_their_names(topic):
    assert not is_control_topic(topic)


@pytest.mark.parametrize(
    "topic",
    [
        "shop.public.flyway_schema_history",
        "shop.public.connect_status",
        "shop.public.price_db_history",
        "shop.connect.offsets",
        "_shop.public.orders",
    ],
)
def test_a_table_that_could_be_a_control_topic_is_named_as_such(topic):
    assert resembles_control_topic(topic)


@pytest.mark.parametrize("topic", ["shop.public.orders", "shop.public.debezium_signal", "_schemas"])
def test_what_is_certain_either_way_is_not_in_doubt(topic):
    assert not resembles_control_topic(topic)
