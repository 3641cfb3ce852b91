"""Which updates and deletes show the row as it was: those of tables with REPLICA IDENTITY FULL.

No event says so. Under another identity `before` has the columns of that identity, and for the rest NULL, the
default of the column, or what the connector takes for nothing: 0, an empty text, 1970. Any other value there
is one of the row.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc_lakehouse.debezium import columns as source
from cdc_lakehouse.debezium.schema_facts import row_fields
from cdc_lakehouse.lake.schema_archive import archived_text
from cdc_lakehouse.silver.folding.told_rows import value_schemas_of

_NO_UUID = "00000000-0000-0000-0000-000000000000"
_PLAIN_TEXTS = (None, "io.debezium.data.Uuid", "io.debezium.data.Enum")
"""Semantic names of texts whose nothing is known."""


def shows_row(events: DataFrame, columns: Sequence[source.Column], *, archives: str) -> Column:
    """Of an update or delete among `events` of bronze; `columns` are those beside its message key.

    False where its schema has no number, or where the lake has lost the text.
    """
    found = F.lit(False)
    for topic, schema_id in value_schemas_of(events):
        text = archived_text(archives, topic, schema_id)
        shown = [] if text is None else list(_shown(json.loads(text), {each.name: each for each in columns}))
        if shown:
            of_writer = (F.col("topic") == topic) & (F.col("value_schema_id") == schema_id)
            found |= of_writer & reduce(or_, shown)
    return found


def _shown(schema: Any, columns: dict[str, source.Column]) -> Iterator[Column]:
    """One condition per column in which a value of the row can be told from none."""
    for field in row_fields(schema):
        column = columns.get(field["name"])
        nothing = None if column is None else values_for_nothing(field, column.type)
        if column is not None and nothing is not None:
            value = F.col("before").getField(column.name)
            yield value.isNotNull() & ~F.coalesce(value.isin(*nothing), F.lit(False))


def values_for_nothing(field: dict[str, Any], type_: pa.DataType) -> Sequence[Any] | None:
    """Values beside NULL that may stand for none; None where they are not known."""
    branches = field["type"] if isinstance(field["type"], list) else [field["type"]]
    values = [each for each in branches if each != "null"]
    name = values[0].get("connect.name") if len(values) == 1 and isinstance(values[0], dict) else None
    default = field.get("default")
    if default is None:
        return () if "null" in branches else _nothing(type_, name)
    nothing = _nothing(type_, name)
    is_plain = name is None and isinstance(default, bool | int | float | str)
    return (*nothing, default) if is_plain and nothing is not None else None


def _nothing(type_: pa.DataType, name: str | None) -> Sequence[Any] | None:
    if pa.types.is_boolean(type_):
        return (False,)
    if pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        return (0,)
    if pa.types.is_date(type_):
        return (date(1970, 1, 1),)
    if pa.types.is_timestamp(type_):
        return (datetime(1970, 1, 1, tzinfo=UTC if type_.tz else None),)
    if pa.types.is_string(type_) and name in _PLAIN_TEXTS:
        return ("", _NO_UUID)
    return None
