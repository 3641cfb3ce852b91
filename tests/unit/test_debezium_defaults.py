"""Which defaults of a writer schema are those of the source's rows, and which stand for what it computes."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from debezium_records import decimal, envelope_schema, field, semantic  # type: ignore[import-not-found]

from cdc_lakehouse.debezium.columns import Column, TableColumns
from cdc_lakehouse.debezium.defaults import told_defaults
from cdc_lakehouse.lake.schema_archive import SchemaArchive
from cdc_lakehouse.registry.versions import TopicVersions
from cdc_lakehouse.silver.schema.filling import added_columns


def required(node: Any, default: Any) -> dict[str, Any]:
    return {"type": node, "default": default}


@pytest.mark.parametrize(
    ("node", "default", "expected"),
    [
        ("int", 7, 7),
        ("string", "seven", "seven"),
        ("double", 0.5, 0.5),
        ("boolean", False, False),
        (semantic("int", "io.debezium.time.Date"), 19_723, date(2024, 1, 1)),
        (decimal(6, 2), "\x00\x96", Decimal("1.50")),
        ("int", 0, None),
        ("long", 0, None),
        ("string", "", None),
        (semantic("int", "io.debezium.time.Date"), 0, None),
        (semantic("long", "io.debezium.time.MicroTimestamp"), 0, None),
        (semantic("string", "io.debezium.data.Json"), "{}", None),
        (semantic("int", "io.debezium.time.Date"), 2_146_033_979, None),
        ("bytes", "A", None),
        (["int", "null"], 7, None),
    ],
)
def test_a_default_is_told_where_nothing_computed_looks_like_it(node, default, expected):
    schema = json.dumps(envelope_schema([field("id", "long"), field("a", required(node, default))]))

    found = told_defaults(schema, table="t").get("a")

    assert (None if found is None else found.as_py()) == expected


A, B = field("a", required("int", 7)), field("b", required("string", "x"))
COLUMNS = TableColumns(
    key=(Column("id", pa.int64()),),
    row=(Column("id", pa.int64()), Column("a", pa.int64()), Column("b", pa.string())),
)


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ([[], [A]], {"a": (7, (1,))}),
        ([[], [A], [A, B]], {"a": (7, (1,)), "b": ("x", (1, 2))}),
        ([[A], [A, B]], {"b": ("x", (1,))}),
        ([[A]], {}),
        ([[A], [], [A]], {}),
        ([[], [A], []], {}),
        ([[B], [A]], {}),
        ([[], [A], [B]], {}),
    ],
    ids=[
        "added",
        "one after the other",
        "second",
        "always",
        "dropped and made again",
        "gone again",
        "perhaps renamed",
        "added and perhaps renamed",
    ],
)
def test_a_column_is_added_where_all_later_versions_have_it(versions, expected, tmp_path):
    archive = SchemaArchive((tmp_path / "memory").as_uri())
    for number, fields in enumerate(versions, 1):
        text = json.dumps(envelope_schema([field("id", "long"), *fields]))
        archive.keep(number, text, subjects=())
    archive.keep_topic("t", TopicVersions(values={number: number for number in range(1, len(versions) + 1)}))

    found = added_columns(tmp_path.as_uri(), {"t"}, COLUMNS, but=(), table="t")

    assert {name: (each.default.as_py(), each.before) for name, each in found.items()} == expected


def test_versions_in_no_certain_order_tell_no_added_column(tmp_path):
    archive = SchemaArchive((tmp_path / "memory").as_uri())
    for number, fields in enumerate([[], [A]], 1):
        text = json.dumps(envelope_schema([field("id", "long"), *fields]))
        archive.keep(number, text, subjects=())
    archive.keep_topic("t", TopicVersions(values={1: 1, 2: None}))

    assert added_columns(tmp_path.as_uri(), {"t"}, COLUMNS, but=(), table="t") == {}
    assert added_columns(tmp_path.as_uri(), {"t", "u"}, COLUMNS, but=(), table="t") == {}
