"""Which updates and deletes show the row as it was: those of tables with REPLICA IDENTITY FULL.

No event says so. Under another identity `before` has the columns of that identity, and for the rest NULL, the
default of the column, or what the connector takes for nothing: 0, an empty text, 1970. Any other value there
is one of the row.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc_lakehouse.debezium import columns as source
from cdc_lakehouse.debezium.defaults import values_for_nothing
from cdc_lakehouse.debezium.schema_facts import row_fields
from cdc_lakehouse.lake.schema_archive import archived_text
from cdc_lakehouse.silver.folding.told_rows import value_schemas_of


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
