"""Which columns bronze gets from all versions of a subject, by the table's policy and by what it has."""

from __future__ import annotations

import json
from typing import Any, cast

import pyarrow as pa
import pytest
from debezium_records import columns, envelope_schema, field, key_schema, optional  # type: ignore[import-not-found]

from cdc_lakehouse.avro.schema_refs import SchemaRef
from cdc_lakehouse.bronze.schemas import resolve_subjects
from cdc_lakehouse.config.models import OnSchemaChange
from cdc_lakehouse.debezium.columns import Column
from cdc_lakehouse.lake.bronze_schema import columns_in, table_schema
from cdc_lakehouse.registry.writer_schemas import TopicTexts, WriterSchemas

INT, TEXT = (envelope_schema([field("id", "long"), field("a", optional(kind))]) for kind in ("int", "string"))
EVOLVE, STRICT, SIDE = OnSchemaChange.EVOLVE, OnSchemaChange.STRICT, OnSchemaChange.SIDE_COLUMN
PLAIN_INT, PLAIN_TEXT = Column("a", pa.int32()), Column("a", pa.string())
BESIDE = Column("a__v2", pa.string(), side_of="a")


class ScriptedSchemas:
    def __init__(self, *values: Any) -> None:
        self._values = values

    def of_topic(self, _topic: str) -> TopicTexts:
        values: dict[SchemaRef, str] = {
            number: json.dumps(value) for number, value in enumerate(self._values, 9)
        }
        return TopicTexts(keys={7: json.dumps(key_schema())}, values=values)


def resolved(policy: OnSchemaChange, *versions: Any, existing: Any = None) -> tuple[Column, ...]:
    schemas = cast("WriterSchemas", ScriptedSchemas(*versions))
    known = resolve_subjects(schemas, ("t",), table="t", existing=existing, policy=policy)
    return known.columns.row[1:]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [(EVOLVE, (PLAIN_TEXT,)), (STRICT, (PLAIN_TEXT,)), (SIDE, (PLAIN_INT, BESIDE))],
)
def test_a_table_without_rows_begins_with_the_newest_type_or_with_all(policy, expected):
    assert resolved(policy, INT, TEXT) == expected


@pytest.mark.parametrize(
    ("policy", "expected"),
    [(EVOLVE, (PLAIN_INT,)), (STRICT, (PLAIN_INT,)), (SIDE, (PLAIN_INT, BESIDE))],
)
def test_columns_that_a_table_has_stay(policy, expected):
    assert resolved(policy, INT, TEXT, existing=columns(INT)) == expected


def test_what_is_there_wins_over_the_order_of_versions():
    assert resolved(SIDE, INT, TEXT, existing=columns(TEXT)) == (
        PLAIN_TEXT,
        Column("a__v2", pa.int32(), side_of="a"),
    )


def test_a_table_remembers_which_of_its_columns_stand_beside_others():
    schemas = cast("WriterSchemas", ScriptedSchemas(INT, TEXT))
    known = resolve_subjects(schemas, ("t",), table="t", existing=None, policy=SIDE)

    assert columns_in(table_schema(known.columns)) == known.columns
