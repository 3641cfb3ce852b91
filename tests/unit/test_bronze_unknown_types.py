"""A type that this release does not know is stored as it came, and the log names its column."""

from __future__ import annotations

import json
import logging
from typing import Any, cast

import pyarrow as pa
from debezium_records import ROW_FIELDS, envelope_schema, field, key_schema, semantic  # type: ignore[import-not-found]

from cdc_lakehouse.bronze.schemas import resolve_subjects
from cdc_lakehouse.registry.writer_schemas import TopicTexts, WriterSchemas


class ScriptedSchemas:
    def __init__(self, value: Any) -> None:
        self._value = value

    def of_topic(self, _topic: str) -> TopicTexts:
        return TopicTexts(keys={7: json.dumps(key_schema())}, values={9: json.dumps(self._value)})


def test_an_unknown_type_becomes_a_column_and_a_line_of_the_log(caplog):
    money = field("price", semantic("string", "com.acme.Money"))
    schemas = cast("WriterSchemas", ScriptedSchemas(envelope_schema([*ROW_FIELDS, money])))
    with caplog.at_level(logging.WARNING):
        known = resolve_subjects(schemas, ("t",), table="orders", existing=None)
    assert {column.name: column.type for column in known.columns.row}["price"] == pa.string()
    assert [(record.message, vars(record)["column"], vars(record)["types"]) for record in caplog.records] == [
        ("unknown type stored as it came", "price", ("com.acme.Money (string)",))
    ]


def test_known_types_say_nothing(caplog):
    schemas = cast("WriterSchemas", ScriptedSchemas(envelope_schema(ROW_FIELDS)))
    with caplog.at_level(logging.WARNING):
        resolve_subjects(schemas, ("t",), table="orders", existing=None)
    assert caplog.records == []
