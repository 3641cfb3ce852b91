"""The comparison of two tables: whatever differs is seen, order is not."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from local_stack.proof.equality import compare_with_silver
from local_stack.proof.rows import canonical_json, compare_tables
from local_stack.proof.source import SourceTable

TYPES = {
    "id": pa.int64(),
    "name": pa.string(),
    "total": pa.decimal128(12, 2),
    "rate": pa.float64(),
    "day": pa.date32(),
    "at": pa.timestamp("us", tz="UTC"),
    "active": pa.bool_(),
}
ROW = {
    "id": 1,
    "name": "a",
    "total": Decimal("1.00"),
    "rate": 0.1,
    "day": date(2026, 1, 1),
    "at": datetime(2026, 1, 1, tzinfo=UTC),
    "active": True,
}
SECOND = {**ROW, "id": 2, "name": ""}


def table(*rows: dict[str, object], **types: pa.DataType) -> pa.Table:
    known = {**TYPES, **types}
    return pa.table({name: pa.array([row.get(name) for row in rows], type_) for name, type_ in known.items()})


def compared(silver: pa.Table, source: pa.Table | None = None):
    return compare_tables(
        "t", key=["id"], source=table(ROW, SECOND) if source is None else source, silver=silver
    )


def test_the_order_of_rows_does_not_count():
    assert compared(table(SECOND, ROW)).equal


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("name", "b"),
        ("name", None),
        ("total", Decimal("1.01")),
        ("rate", 0.1 + 1e-17 + 1e-16),
        ("day", date(2026, 1, 2)),
        ("at", datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC)),
        ("active", False),
        ("active", None),
    ],
)
def test_one_changed_cell_is_found_with_its_key_and_column(column, value):
    found = compared(table({**ROW, column: value}, SECOND))

    assert (found.equal, found.changed, found.columns) == (False, ((1,),), (column,))


def test_null_is_not_the_empty_text():
    found = compared(table(ROW, {**SECOND, "name": None}))

    assert (found.equal, found.changed, found.columns) == (False, ((2,),), ("name",))


def test_a_missing_row_is_found():
    found = compared(table(ROW))

    assert (found.equal, found.missing, found.silver_rows) == (False, ((2,),), 1)


def test_a_row_that_the_source_lacks_is_found():
    found = compared(table(ROW, SECOND, {**ROW, "id": 3}))

    assert (found.equal, found.surplus) == (False, ((3,),))


def test_a_row_that_stands_there_twice_is_found():
    found = compared(table(ROW, SECOND, SECOND))

    assert (found.equal, found.surplus, found.silver_rows) == (False, ((2,),), 3)


def test_two_rows_instead_of_two_others_with_the_same_sums_are_found():
    silver = table({**ROW, "name": ""}, {**SECOND, "name": "a"})

    assert compared(silver).changed == ((1,), (2,))


def test_text_cannot_flow_from_one_column_into_the_next():
    source = table({**ROW, "name": "ab", "note": "c"}, note=pa.string())
    silver = table({**ROW, "name": "a", "note": "bc"}, note=pa.string())

    assert not compared(silver, source).equal


def test_another_type_is_a_difference_even_when_the_values_look_the_same():
    found = compared(table(ROW, SECOND, total=pa.decimal128(13, 2)))

    assert (found.equal, found.type_differences) == (
        False,
        ("total is decimal128(13, 2) in silver and should be decimal128(12, 2)",),
    )


def test_a_column_that_silver_does_not_have_yet_is_null_there():
    source = table({**ROW, "note": "x"}, {**SECOND, "note": None}, note=pa.string())
    found = compared(table(ROW, SECOND), source)

    assert (found.changed, found.columns) == (((1,),), ("note",))


def test_columns_that_only_silver_has_do_not_count():
    assert compared(table(ROW, SECOND, dropped=pa.string())).equal


def test_the_sentence_names_table_keys_and_columns():
    found = compared(table({**ROW, "active": None}))

    assert found.sentence() == (
        "t differs in 2 rows: 1 missing (key 2); 1 changed (key 1); columns that differ: active"
    )


def test_json_is_compared_as_a_document():
    assert canonical_json('{"b": [1, 2.50], "a": "ö"}') == canonical_json('{"a":"\\u00f6","b":[1,2.50]}')


@pytest.mark.parametrize("other", ['{"a": 1.00}', '{"a": "1.0"}', '{"a": null}', "{}", '{"a": 1}'])
def test_json_digits_and_types_count(other):
    assert canonical_json('{"a": 1.0}') != canonical_json(other)


def test_a_silver_table_that_does_not_exist_is_empty():
    source = SourceTable(("id",), (), table(ROW))

    assert compare_with_silver("t", source, silver=None).missing == ((1,),)


def test_an_empty_source_equals_a_silver_table_that_does_not_exist():
    assert compare_with_silver("t", SourceTable(("id",), (), table()), silver=None).equal


def test_system_columns_do_not_count():
    silver = table(ROW, _cdc_op=pa.string())

    assert compare_with_silver("t", SourceTable(("id",), (), table(ROW)), silver=silver).equal
