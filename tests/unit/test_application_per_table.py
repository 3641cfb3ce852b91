"""How many tables of an application are worked on side by side, and what a failed one is told."""

from __future__ import annotations

import pytest

from cdc_lakehouse.application.per_table import failed, tables_at_once, with_way_out
from cdc_lakehouse.config.models import Pipeline, Table
from cdc_lakehouse.debezium.signals import SnapshotKind, snapshot_advice
from cdc_lakehouse.errors import (
    BrokerUnavailableError,
    LakehouseError,
    ModeChangedError,
    OffsetsLostError,
    SourceEpochSpentError,
)

DOCUMENT = {
    "version": 1,
    "name": "shop",
    "owner": "tests",
    "schedule": "0 * * * *",
    "start_date": "2026-01-01",
    "tables": [
        {"name": "orders", "topics": ["shop.orders"]},
        {"name": "clicks", "topics": ["shop.clicks"], "group": "heavy"},
    ],
}


def pipeline(**options: object) -> Pipeline:
    return Pipeline.model_validate({**DOCUMENT, **options})


@pytest.mark.parametrize(("cores", "expected"), [(1, 2), (2, 4), (64, 16)])
def test_by_default_tables_fit_the_cores(cores, expected):
    shop = pipeline()

    assert tables_at_once(shop, shop.tables, cores=cores) == expected


def test_a_group_has_its_own_number_and_the_others_that_of_the_pipeline():
    shop = pipeline(tables_at_once=6, tables_at_once_by_group={"heavy": 1})

    assert tables_at_once(shop, shop.groups["heavy"], cores=2) == 1
    assert tables_at_once(shop, shop.groups["main"], cores=2) == 6


def test_tables_of_several_groups_in_one_application_follow_the_pipeline():
    shop = pipeline(tables_at_once=3, tables_at_once_by_group={"heavy": 1})

    assert tables_at_once(shop, shop.tables, cores=2) == 3


def test_a_number_for_a_group_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="names the group 'heavi', which no table is in"):
        pipeline(tables_at_once_by_group={"heavi": 1})


def test_advice_that_names_a_snapshot_is_followed_by_the_statement_for_the_table():
    table = Table(name="orders", topics=("shop.public.orders", "shop.public.old_orders"))
    lost = OffsetsLostError(table="orders", decision="orders=shop.public.orders/0:0-5")
    found = with_way_out(failed("orders", lost), lost, table, pipeline=pipeline(signal_table="ops.signals"))

    assert found.error is not None
    assert found.error.advice.startswith(lost.advice)
    assert (
        "INSERT INTO ops.signals VALUES (gen_random_uuid(), 'execute-snapshot', "
        '\'{"data-collections": ["public.orders", "public.old_orders"], "type": "blocking"}\');'
    ) in found.error.advice


def test_advice_that_names_a_repair_is_followed_by_its_dag_and_the_filled_form():
    table = Table(name="orders", topics=("shop.public.orders",))
    changed = ModeChangedError(table="orders", was="append", now="upsert")

    found = with_way_out(failed("orders", changed), changed, table, pipeline=pipeline())

    assert found.error is not None
    assert found.error.advice == (
        f'{changed.advice} The repair: DAG `cdc_shop_rebuild`, with the form {{"tables": ["orders"]}}.'
    )


def test_the_form_of_a_repair_has_the_options_that_the_advice_is_about():
    table = Table(name="orders", topics=("shop.public.orders",))
    spent = SourceEpochSpentError(table="orders", asked=7, known=2**60, highest=2**53 - 1)

    found = with_way_out(failed("orders", spent), spent, table, pipeline=pipeline())

    assert found.error is not None
    assert found.error.advice.endswith(
        'The repair: DAG `cdc_shop_retire`, with the form {"tables": ["orders"], "what": "archive"}.'
    )


def test_a_topic_that_is_not_named_after_its_table_leaves_the_name_to_the_person():
    assert '"data-collections": ["<schema>.<table>"]' in snapshot_advice(
        SnapshotKind.INCREMENTAL, ["orders"], signals="public.debezium_signal"
    )


def test_other_advice_stays_as_it_is():
    away = BrokerUnavailableError(bootstrap="kafka:9092", reason="gone")
    table = Table(name="orders", topics=("shop.public.orders",))

    assert with_way_out(failed("orders", away), away, table, pipeline=pipeline()) == failed("orders", away)


def test_every_error_that_sends_a_person_for_a_snapshot_says_which():
    named = {error.code for error in every_error() if "snapshot" in error.advice} - {"NOT_FRESH"}

    assert named == {error.code for error in every_error() if error.snapshot}
    assert {error.snapshot for error in every_error()} == {"", *SnapshotKind}


def every_error() -> list[type[LakehouseError]]:
    found, waiting = [], [LakehouseError]
    while waiting:
        error = waiting.pop()
        waiting += error.__subclasses__()
        found.append(error)
    return found
