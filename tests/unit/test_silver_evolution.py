"""What silver's columns become when bronze's are other ones: planned without Spark."""

from __future__ import annotations

import pytest

from cdc_lakehouse.config.models import OnSchemaChange
from cdc_lakehouse.errors import IncompatibleSchemaError, NotSupportedYetError, SchemaChangedError
from cdc_lakehouse.silver.schema.evolution import (
    ChangeKind,
    ColumnChange,
    Writer,
    plan_columns,
    refuse_by_policy,
    refuse_system_names,
    with_writers,
)


def planned(existing: dict[str, str], wanted: dict[str, str], **sides: str) -> tuple[ColumnChange, ...]:
    return plan_columns(existing, wanted, table="t", sides=sides)


def test_new_columns_stand_behind_their_neighbour():
    changes = planned({"id": "bigint", "z": "string"}, {"id": "bigint", "a": "int", "b": "int"})

    assert changes == (
        ColumnChange(ChangeKind.ADDED, "a", None, "int", after="id", sent_as="a"),
        ColumnChange(ChangeKind.ADDED, "b", None, "int", after="a", sent_as="b"),
    )


@pytest.mark.parametrize(
    "wanted", [{"id": "bigint"}, {"old": "int", "id": "bigint"}], ids=["dropped", "in another order"]
)
def test_a_column_stays_where_it_is_whether_bronze_has_it_or_not(wanted):
    assert planned({"id": "bigint", "old": "int"}, wanted) == ()


def test_a_side_column_says_what_its_neighbour_is():
    changes = planned({"a": "int"}, {"a": "int", "a__v2": "string"}, a__v2="a")

    assert changes == (
        ColumnChange(ChangeKind.SIDE_COLUMN, "a__v2", "int", "string", after="a", sent_as="a"),
    )


TYPES = [
    "boolean",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "decimal(8,2)",
    "decimal(10,2)",
    "decimal(10,4)",
    "decimal(9,4)",
    "string",
    "binary",
    "date",
    "timestamp_ntz",
    "timestamp",
    "array<int>",
    "array<bigint>",
    "struct<a:int>",
    "struct<a:int,b:int>",
    "map<string,int>",
]
WIDENING = {
    ("smallint", "int"),
    ("smallint", "bigint"),
    ("int", "bigint"),
    ("float", "double"),
    ("decimal(8,2)", "decimal(10,2)"),
    ("decimal(8,2)", "decimal(10,4)"),
    ("decimal(9,4)", "decimal(10,4)"),
    ("date", "timestamp_ntz"),
}
PAIRS = [(was, now) for was in TYPES for now in TYPES if was != now]


@pytest.mark.parametrize(("was", "now"), sorted(WIDENING))
def test_a_column_widens_where_no_value_changes(was, now):
    assert planned({"a": was}, {"a": now}) == (ColumnChange(ChangeKind.WIDENED, "a", was, now, sent_as="a"),)


@pytest.mark.parametrize(("was", "now"), [pair for pair in PAIRS if pair not in WIDENING])
def test_any_other_change_of_a_type_stops_the_table(was, now):
    with pytest.raises(IncompatibleSchemaError) as caught:
        planned({"a": was}, {"a": now})

    error = caught.value
    assert (error.table, error.column, error.was, error.now) == ("t", "a", was, now)


def test_a_strict_table_waits_and_is_told_everything():
    changes = planned({"a": "int"}, {"a": "bigint", "a__v2": "string", "b": "date"}, a__v2="a")
    writers = [Writer(7, {"a": "int"}), Writer(9, {"a": "bigint"}), Writer(11, {"a": "string", "b": "date"})]

    with pytest.raises(SchemaChangedError) as caught:
        refuse_by_policy(with_writers(changes, writers), OnSchemaChange.STRICT, table="t")

    assert caught.value.diff == (
        "a was int and is now bigint (schema 9), a__v2 was int and is now string (schema 11), "
        "b is new, date (schema 11)"
    )


@pytest.mark.parametrize("policy", [OnSchemaChange.EVOLVE, OnSchemaChange.SIDE_COLUMN])
def test_other_tables_take_what_can_be_taken(policy):
    refuse_by_policy(planned({"a": "int"}, {"a": "bigint"}), policy, table="t")


def test_a_strict_table_without_a_change_goes_on():
    refuse_by_policy((), OnSchemaChange.STRICT, table="t")


def test_a_change_names_all_schemas_that_send_it_and_no_other():
    (change,) = planned({"a": "decimal(5,2)"}, {"a": "decimal(9,4)"})
    writers = [
        Writer(1, {"a": "decimal(5,2)"}),
        Writer(2, {"b": "int"}),
        Writer(3, {"a": "decimal(7,2)"}),
        Writer(4, {"a": "decimal(9,4)"}),
    ]

    (told,) = with_writers([change], writers)

    assert told.schema_ids == (3, 4)


@pytest.mark.parametrize("name", ["_cdc_op", "_CDC_anything", "_metadata"])
def test_a_source_column_that_looks_like_ours_or_like_sparks_is_refused(name):
    with pytest.raises(NotSupportedYetError) as caught:
        refuse_system_names(("id", name), table="orders")

    assert name in caught.value.feature
