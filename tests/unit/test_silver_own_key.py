"""Which columns of bronze's rows are silver's key, and when a row of `before` is known to be whole."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from cdc_lakehouse.config.models import Table
from cdc_lakehouse.debezium.columns import Column, TableColumns
from cdc_lakehouse.debezium.defaults import values_for_nothing
from cdc_lakehouse.errors import InvalidShapeError
from cdc_lakehouse.silver.own_key.key_columns import OwnKey, own_key

ID, CODE, RATE, TAGS = (
    Column("id", pa.int64()),
    Column("code", pa.string()),
    Column("rate", pa.float64()),
    Column("tags", pa.list_(pa.string())),
)
KEYED = TableColumns(key=(ID,), row=(ID, CODE, RATE, TAGS))
WIDE = TableColumns(key=(ID, CODE), row=(ID, CODE, RATE))
KEYLESS = TableColumns(key=(), row=(ID, CODE))


def table(**options: Any) -> Table:
    return Table.model_validate({"name": "orders", "topics": ["t"], **options})


def planned(columns: TableColumns, **options: Any) -> OwnKey:
    found = own_key(columns, table(**options))
    assert found is not None
    return found


def test_the_message_key_is_the_key_unless_the_table_names_another():
    assert own_key(KEYED, table()) is None
    assert own_key(KEYED, table(key=["id"])) is None
    assert own_key(WIDE, table(key=["code", "id"])) is None


@pytest.mark.parametrize(
    ("columns", "key", "is_sent", "beside"),
    [
        (KEYED, ["code"], False, ["code", "rate", "tags"]),
        (KEYED, ["code", "id"], False, ["code", "rate", "tags"]),
        (WIDE, ["id"], True, ["rate"]),
        (KEYLESS, ["id"], False, ["id", "code"]),
    ],
)
def test_columns_of_the_message_key_are_told_by_every_event(columns, key, is_sent, beside):
    found = planned(columns, key=key)

    assert found.names == tuple(key)
    assert found.is_sent is is_sent
    assert [column.name for column in found.beside_message_key] == beside


def test_a_key_is_named_as_silver_names_it():
    found = own_key(KEYED, table(key=["number"], columns={"rename": {"code": "number"}}))

    assert found is not None
    assert found.columns == TableColumns(key=(CODE,), row=KEYED.row)


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        (["cod"], "bronze has no column cod; did you mean code?"),
        (["rate"], "rate is double, which does not tell rows apart reliably"),
        (["tags"], "tags is list<item: string>, which does not tell rows apart reliably"),
    ],
)
def test_what_cannot_be_a_key_of_this_bronze_is_refused(key, problem):
    with pytest.raises(InvalidShapeError) as caught:
        own_key(KEYED, table(key=key))

    assert (caught.value.setting, caught.value.problem) == ("key", problem)


UUID = {"type": "string", "connect.name": "io.debezium.data.Uuid"}
JSON = {"type": "string", "connect.name": "io.debezium.data.Json"}
NO_UUID = "00000000-0000-0000-0000-000000000000"


@pytest.mark.parametrize(
    ("field", "type_", "expected"),
    [
        ({"type": ["null", "string"], "default": None}, pa.string(), ()),
        ({"type": ["null", JSON], "default": None}, pa.string(), ()),
        ({"type": "string"}, pa.string(), ("", NO_UUID)),
        ({"type": UUID}, pa.string(), ("", NO_UUID)),
        ({"type": JSON}, pa.string(), None),
        ({"type": "string", "default": "new"}, pa.string(), ("", NO_UUID, "new")),
        ({"type": ["string", "null"], "default": "new"}, pa.string(), ("", NO_UUID, "new")),
        ({"type": "int", "default": 5}, pa.int32(), (0, 5)),
        ({"type": "boolean"}, pa.bool_(), (False,)),
        ({"type": "int"}, pa.date32(), (date(1970, 1, 1),)),
        ({"type": "string"}, pa.timestamp("us", tz="UTC"), (datetime(1970, 1, 1, tzinfo=UTC),)),
        ({"type": {"type": "bytes", "connect.name": "x"}, "default": "\x01"}, pa.decimal128(4, 2), None),
        ({"type": "bytes"}, pa.binary(), None),
    ],
)
def test_values_that_may_stand_for_none_are_known_by_the_writers_schema(field, type_, expected):
    assert values_for_nothing({"name": "x", **field}, type_) == expected
