"""Which topics feed which tables, decided on names alone."""

from __future__ import annotations

import pytest

from cdc_lakehouse.config.models import Pipeline
from cdc_lakehouse.config.topics import matches
from cdc_lakehouse.contract import ExitCode
from cdc_lakehouse.kafka.discovery import Discovery, discover, needs_topics, table_name

DOCUMENT = {
    "version": 1,
    "name": "shop",
    "owner": "tests",
    "schedule": "0 * * * *",
    "start_date": "2026-01-01",
}


def pipeline(*tables: dict[str, object], **options: object) -> Pipeline:
    return Pipeline.model_validate({**DOCUMENT, **options, "tables": list(tables)})


def topics_of(found: Discovery) -> dict[str, tuple[str, ...]]:
    return {table.name: table.topics for table in found.pipeline.tables}


def refused(found: Discovery) -> dict[str, str]:
    return {error.topic: error.problem for error in found.refused}


@pytest.mark.parametrize(
    ("entry", "topic", "expected"),
    [
        ("shop.public.*", "shop.public.orders", True),
        ("shop.public.*", "shop.public.order-lines_2", True),
        ("shop.public.*", "shop.crm.orders", False),
        ("shop.public.*", "shop.public.a.b", False),
        ("shop.public.*", "xshop.public.orders", False),
        ("shop.*.*", "shop.crm.orders", True),
        ("shop.public.log_*", "shop.public.log_2026", True),
        ("shop.public.log_*", "shop.public.logs", False),
        ("shop.public.orders", "shop.public.orders", True),
        ("shop.public.orders", "shopxpublicxorders", False),
    ],
)
def test_a_star_stands_for_part_of_one_part(entry, topic, expected):
    assert matches(entry, topic) is expected


def test_a_pipeline_of_names_alone_asks_for_no_topics():
    assert not needs_topics(pipeline({"name": "orders", "topics": ["shop.public.orders"]}))


def test_a_topic_that_appears_becomes_a_table_with_the_options_of_all():
    shop = pipeline(defaults={"raw": "always"}, discover={"topics": ["shop.public.*"], "group": "found"})

    found = discover(shop, {"shop.public.returns", "shop.crm.leads"})

    (table,) = found.pipeline.tables
    assert (table.name, table.topics) == ("returns", ("shop.public.returns",))
    assert (table.group, table.raw) == ("found", "always")
    assert found.refused == ()


def test_listed_tables_keep_their_topics_and_their_place():
    shop = pipeline(
        {"name": "sales", "topics": ["shop.public.orders"]}, discover={"topics": ["shop.public.*"]}
    )

    found = discover(shop, {"shop.public.orders", "shop.public.a_first"})

    assert topics_of(found) == {"sales": ("shop.public.orders",), "a_first": ("shop.public.a_first",)}


def test_a_pattern_of_a_table_takes_all_its_topics_and_discovery_the_rest():
    shop = pipeline({"name": "log", "topics": ["shop.public.log_*"]}, discover={"topics": ["shop.public.*"]})

    found = discover(shop, {"shop.public.log_2026", "shop.public.log_2025", "shop.public.orders"})

    assert topics_of(found) == {
        "log": ("shop.public.log_2025", "shop.public.log_2026"),
        "orders": ("shop.public.orders",),
    }


def test_a_pattern_that_matches_nothing_stays_and_will_be_missed_by_name():
    shop = pipeline({"name": "log", "topics": ["shop.public.lgo_*"]})

    assert topics_of(discover(shop, {"shop.public.log_2026"})) == {"log": ("shop.public.lgo_*",)}


def test_control_topics_are_told_and_never_become_tables():
    shop = pipeline({"name": "log", "topics": ["shop.*"]}, discover={"topics": ["*.*.*", "*"]})

    found = discover(shop, {"shop.transaction", "shop.public.debezium_signal", "_schemas", "shop.log"})

    assert topics_of(found) == {"log": ("shop.log",)}
    assert found.control == ("_schemas", "shop.public.debezium_signal", "shop.transaction")


def test_a_topic_that_a_table_names_in_full_is_read_whatever_it_is_called():
    shop = pipeline({"name": "signals", "topics": ["shop.public.debezium_signal"]})

    assert topics_of(discover(shop, {"shop.public.debezium_signal"})) == {
        "signals": ("shop.public.debezium_signal",)
    }


def test_excluded_topics_become_no_tables():
    shop = pipeline(discover={"topics": ["shop.public.*"], "exclude": ["shop.public.tmp_*"]})

    assert topics_of(discover(shop, {"shop.public.tmp_1", "shop.public.orders"})) == {
        "orders": ("shop.public.orders",)
    }


def test_a_name_that_two_topics_would_have_belongs_to_neither_and_the_others_go_on():
    shop = pipeline(discover={"topics": ["shop.*.*"]})

    found = discover(shop, {"shop.public.orders", "shop.crm.orders", "shop.crm.leads"})

    sentence = "shop.crm.orders and shop.public.orders would both be the table orders"
    assert topics_of(found) == {"leads": ("shop.crm.leads",)}
    assert refused(found) == {"shop.crm.orders": sentence, "shop.public.orders": sentence}


def test_a_name_that_a_listed_table_has_is_refused_and_the_table_goes_on():
    shop = pipeline({"name": "orders", "topics": ["shop.public.orders"]}, discover={"topics": ["shop.*.*"]})

    found = discover(shop, {"shop.public.orders", "shop.crm.orders"})

    assert topics_of(found) == {"orders": ("shop.public.orders",)}
    assert refused(found) == {"shop.crm.orders": "there is a table orders already, which other topics feed"}


@pytest.mark.parametrize(
    ("topic", "name"),
    [
        ("shop.public.OrderLines", "orderlines"),
        ("shop.public.order-lines", "order_lines"),
        ("orders", "orders"),
    ],
)
def test_a_table_is_called_like_the_last_part_of_its_topic_in_small_letters(topic, name):
    assert table_name(topic) == name


@pytest.mark.parametrize("last", ["2026_orders", "orders__history", "x" * 64])
def test_a_topic_whose_last_part_is_no_name_is_refused_by_name(last):
    topic = f"shop.public.{last}"

    (error,) = discover(pipeline(discover={"topics": ["shop.public.*"]}), {topic}).refused

    assert (error.topic, error.exit_code) == (topic, ExitCode.CONFIG)


def test_a_topic_that_two_patterns_want_feeds_neither():
    shop = pipeline(
        {"name": "a", "topics": ["shop.public.log_*", "shop.public.a"]},
        {"name": "b", "topics": ["shop.public.*_2026"]},
    )

    found = discover(shop, {"shop.public.log_2026", "shop.public.log_1", "shop.public.x_2026"})

    assert topics_of(found) == {"a": ("shop.public.log_1", "shop.public.a"), "b": ("shop.public.x_2026",)}
    assert refused(found) == {"shop.public.log_2026": "it matches `topics:` of a and of b"}


def test_what_is_left_alone_and_what_is_taken_in_doubt_is_told():
    shop = pipeline(discover={"topics": ["shop.*", "shop.public.*"]})
    found = discover(shop, {"shop.transaction", "shop.public.connect_status", "shop.public.orders"})

    assert topics_of(found).keys() == {"connect_status", "orders"}
    assert found.notes() == {
        "topics_left_alone": ["shop.transaction"],
        "topics_taken_in_doubt": ["shop.public.connect_status"],
    }
    assert discover(shop, {"shop.public.orders"}).notes() == {}


def test_a_topic_that_include_or_the_signal_table_names_is_not_in_doubt():
    topics = {"shop.public.connect_status", "shop.public.app_connect_status"}
    included = pipeline(discover={"topics": ["shop.public.*"], "include": ["*.*.connect_status"]})
    signals = included.model_copy(update={"signal_table": "public.app_connect_status"})

    assert discover(included, topics).notes() == {"topics_taken_in_doubt": ["shop.public.app_connect_status"]}
    assert discover(signals, topics).notes() == {"topics_left_alone": ["shop.public.app_connect_status"]}


def test_include_takes_a_topic_whatever_it_is_called_and_exclude_leaves_out_any():
    shop = pipeline(
        discover={"topics": ["shop.public.*"], "include": ["shop.message"], "exclude": ["*.*.connect_status"]}
    )
    found = discover(shop, {"shop.transaction", "shop.message", "shop.public.connect_status"})

    assert topics_of(found) == {"message": ("shop.message",)}
    assert found.notes() == {}


def test_the_table_of_signals_is_no_table_whatever_it_is_called():
    shop = pipeline(discover={"topics": ["shop.*.*"]}, signal_table="ops.knocks")
    found = discover(shop, {"shop.ops.knocks", "shop.public.knocks"})

    assert topics_of(found) == {"knocks": ("shop.public.knocks",)}
    assert found.control == ("shop.ops.knocks",)
