"""How the columns of a table come from its schemas and grow."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from debezium_records import ROW_FIELDS, columns, decimal, envelope_schema, field, key_schema, optional  # type: ignore[import-not-found]

from cdc_lakehouse.debezium.columns import Column, TableColumns, columns_of, evolve, evolve_leniently
from cdc_lakehouse.debezium.incompatible import with_newest_types, with_side_columns
from cdc_lakehouse.errors import (
    IncompatibleSchemaError,
    KeySchemaDriftError,
    NotSupportedYetError,
    UnsupportedTypeError,
)

ID = Column("id", pa.int64())


def evolve_of_t(existing: TableColumns, new: TableColumns) -> TableColumns:
    return evolve(existing, new, table="t")


def table(*row: Column) -> TableColumns:
    return TableColumns(key=(ID,), row=(ID, *row))


def test_the_columns_come_from_the_row_and_the_key():
    found = columns(envelope_schema([field("id", "long"), field("total", optional(decimal(8, 2)))]))
    assert found == table(Column("total", pa.decimal128(8, 2)))


@pytest.mark.parametrize(
    ("was", "now", "then"),
    [
        (pa.int16(), pa.int64(), pa.int64()),
        (pa.int64(), pa.int32(), pa.int64()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.decimal128(8, 2), pa.decimal128(12, 2), pa.decimal128(12, 2)),
        (pa.decimal128(12, 4), pa.decimal128(8, 2), pa.decimal128(12, 4)),
        (pa.decimal128(8, 2), pa.decimal128(12, 4), pa.decimal128(12, 4)),
        (pa.decimal128(8, 2), pa.decimal128(8, 4), pa.decimal128(10, 4)),
        (pa.date32(), pa.timestamp("us"), pa.timestamp("us")),
        (pa.timestamp("us"), pa.date32(), pa.timestamp("us")),
        (pa.list_(pa.int64()), pa.list_(pa.int32()), pa.list_(pa.int64())),
        (pa.bool_(), pa.int16(), pa.bool_()),
    ],
)
def test_a_column_widens_and_never_narrows(was, now, then):
    assert evolve(table(Column("a", was)), table(Column("a", now)), table="t").row[1].type == then


def test_new_columns_come_last_and_missing_ones_stay():
    a, b, c = (Column(name, pa.string()) for name in "abc")
    assert evolve(table(a, b), table(c, b), table="t") == table(a, b, c)


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (pa.int32(), pa.string()),
        (pa.decimal128(38, 2), pa.decimal128(38, 4)),
        (pa.list_(pa.int32()), pa.list_(pa.int64())),
        (pa.int64(), pa.float64()),
        (pa.timestamp("us"), pa.timestamp("us", tz="UTC")),
    ],
)
def test_types_that_do_not_meet_stop_the_table_or_keep_the_old_one(was, now):
    old, new = table(Column("a", was)), table(Column("a", now), Column("b", now))
    with pytest.raises(IncompatibleSchemaError) as caught:
        evolve(old, new, table="t")
    assert (caught.value.column, caught.value.was, caught.value.now) == ("a", str(was), str(now))
    assert evolve_leniently(old, new) == table(Column("a", was), Column("b", now))


@pytest.mark.parametrize(
    "key", [(Column("id", pa.string()),), (Column("number", pa.int64()),), (ID, Column("tenant", pa.int64()))]
)
def test_a_changed_key_stops_the_table(key):
    new = TableColumns(key=key, row=(ID,))
    with pytest.raises(KeySchemaDriftError) as caught:
        evolve(table(), new, table="t")
    assert caught.value.was == "id int64"
    assert caught.value.now == ", ".join(f"{each.name} {each.type}" for each in key)
    assert evolve_leniently(table(), new) == table()


@pytest.mark.parametrize("grown", [evolve_of_t, evolve_leniently, with_side_columns, with_newest_types])
def test_a_key_widens_and_never_narrows(grown):
    narrow, wide = (
        TableColumns(key=(Column("tenant", pa.string()), Column("id", type_)), row=(Column("id", type_),))
        for type_ in (pa.int32(), pa.int64())
    )
    assert grown(narrow, wide) == wide
    assert grown(wide, narrow) == wide


def test_a_table_without_a_key_gets_one_and_never_loses_it():
    keyless = TableColumns(key=(), row=(ID,))
    assert evolve(keyless, table(), table="t") == table()
    assert evolve_leniently(keyless, table()) == table()
    assert evolve_leniently(table(), keyless) == table()
    with pytest.raises(KeySchemaDriftError):
        evolve(table(), keyless, table="t")


def test_names_alike_but_for_case_collide():
    old, new = table(), table(Column("ID", pa.int64()))
    with pytest.raises(NotSupportedYetError, match="columns id and ID"):
        evolve(old, new, table="t")
    assert evolve_leniently(old, new) == old
    with pytest.raises(NotSupportedYetError, match="columns id and Id"):
        columns(envelope_schema([field("id", "long"), field("Id", "long")]))


def test_a_flattened_value_is_refused():
    with pytest.raises(NotSupportedYetError, match="flattened"):
        columns(key_schema())


def test_a_dropped_column_is_no_column_and_no_key():
    texts = json.dumps(key_schema()), json.dumps(envelope_schema(ROW_FIELDS))
    found = columns_of(*texts, table="orders", dropped=frozenset({"note"}))
    assert "note" not in {column.name for column in found.row}
    with pytest.raises(NotSupportedYetError, match="id, part of the key of orders, in drop_columns"):
        columns_of(*texts, table="orders", dropped=frozenset({"id"}))


def test_a_float_is_no_key():
    with pytest.raises(UnsupportedTypeError) as caught:
        columns(key=key_schema("double"))
    assert (caught.value.column, caught.value.type) == ("id", "double as part of the key")
