"""Which columns are compared; what is not is named with its reason."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cdc_lakehouse.config.column_choice import ColumnChoice
from cdc_lakehouse.verification.columns import (
    ColumnPlan,
    KeyNotComparedError,
    SourceColumn,
    plan_columns,
    same_name,
)

SILVER = pa.schema(
    [
        ("id", pa.int32()),
        ("Col_1", pa.string()),
        ("_2nd_col", pa.string()),
        ("span", pa.int64()),
        ("_cdc_op", pa.string()),
    ]
)
ID, FIRST, SECOND = (
    SourceColumn("id", "int4"),
    SourceColumn("Col-1", "text"),
    SourceColumn("2nd col", "text"),
)


def plan(*columns: SourceColumn, dropped: tuple[str, ...] = (), silver: pa.Schema = SILVER) -> ColumnPlan:
    return plan_columns(columns, silver, key=("id",), dropped=dropped)


def test_names_are_adjusted_as_the_connector_does():
    found = plan(FIRST, SECOND, ID, SourceColumn("span", "int8"))

    assert [(each.source, each.silver) for each in found.compared] == [
        ("id", "id"),
        ("Col-1", "Col_1"),
        ("2nd col", "_2nd_col"),
        ("span", "span"),
    ]
    assert (found.keys, found.left_out) == (1, {})


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (SourceColumn("secret", "text"), "drop_columns of the pipeline"),
        (SourceColumn("fresh", "text"), "silver has no such column"),
        (SourceColumn("span", "interval"), "interval as int64 is not compared"),
        (SourceColumn("span", "int8", generated=True), "generated columns are sent by snapshots only"),
        (
            SourceColumn("span", "numeric", stored_away=True),
            "long numbers without a scale are not sent by updates that leave them alone",
        ),
    ],
    ids=lambda each: each.name if isinstance(each, SourceColumn) else "",
)
def test_a_column_that_is_not_compared_is_named(column, reason):
    assert plan(ID, column, dropped=("secret",)).left_out[column.name] == reason


def test_a_column_that_only_silver_has_is_named():
    assert plan(ID, SECOND).left_out == {
        "Col_1": "the source has no such column",
        "span": "the source has no such column",
    }


def test_without_its_key_a_table_is_not_compared():
    with pytest.raises(KeyNotComparedError, match="id of the key: timetz as int32 is not compared"):
        plan(SourceColumn("id", "timetz"), FIRST)


def test_a_name_of_a_topic_means_the_original_or_the_adjusted_one():
    assert same_name("Weird_Name", "Weird Name")
    assert same_name("orders", "orders")
    assert not same_name("orders", "Orders")


CHOSEN = pa.schema([("number", pa.int32()), ("Col_1", pa.string()), ("secret", pa.string())])


def chosen(**choice: object) -> ColumnPlan:
    """Of `id` as `number`, `Col-1` and `secret`."""
    told = ColumnChoice.model_validate({"rename": {"id": "number"}, **choice})
    source = (ID, FIRST, SourceColumn("secret", "text"))
    return plan_columns(source, CHOSEN, key=("id",), dropped=(), choice=told)


def test_a_renamed_column_is_compared_under_its_name_in_silver():
    found = chosen()

    assert [(each.source, each.silver) for each in found.compared] == [
        ("id", "number"),
        ("Col-1", "Col_1"),
        ("secret", "secret"),
    ]
    assert found.left_out == {}


def test_masked_and_excluded_columns_are_named():
    found = chosen(exclude=["Col_1"], mask={"secret": "hash"})

    assert found.left_out == {
        "Col-1": "`columns` of the pipeline",
        "secret": "masked by `columns` of the pipeline",
    }


def test_rows_with_a_hashed_key_have_no_partner():
    with pytest.raises(KeyNotComparedError, match="id of the key: masked by `columns` of the pipeline"):
        chosen(mask={"id": "hash"})


def test_rows_that_a_filter_may_have_left_out_are_named():
    assert list(chosen().of_part_of_the_rows().left_out) == ["(rows that silver does not have)"]
