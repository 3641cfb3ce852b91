"""Which deletes tell the whole row that they ended: those of tables with REPLICA IDENTITY FULL.

No event says so. Under any other identity `before` holds the key and, for the rest, NULL or the default of
the column, which looks like a value. In a column that may be NULL and has no default it is one for sure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.debezium.operations import Operation
from cdc_lakehouse.debezium.schema_facts import facts_of
from cdc_lakehouse.lake.schema_archive import archived_text


def tells_row(events: DataFrame, columns: TableColumns, *, archives: str) -> Column:
    """Of a delete among `events`. Tables without a key have FULL, or PostgreSQL refuses their deletes.

    A delete whose schema has no number, or whose text the lake has lost, tells its key only.
    """
    if not columns.key:
        return F.lit(True)
    found = F.col("key").isNull()
    deletes = events.where((F.col("op") == Operation.DELETE) & F.col("key").isNotNull())
    for topic, schema_id in value_schemas_of(deletes):
        text = archived_text(archives, topic, schema_id)
        sure = () if text is None else tuple(_sure(text, columns))
        if sure:
            of_writer = (F.col("topic") == topic) & (F.col("value_schema_id") == schema_id)
            found |= of_writer & _any_told(sure)
    return found


def value_schemas_of(events: DataFrame) -> list[tuple[str, int]]:
    """(topic, id) of the writers of `events`, as far as they have numbers."""
    named = events.where(F.col("value_schema_id").isNotNull())
    rows = named.select("topic", "value_schema_id").distinct().collect()
    return sorted((row["topic"], row["value_schema_id"]) for row in rows)


def _sure(text: str, columns: TableColumns) -> Iterator[str]:
    """Columns in which no default stands."""
    own = {column.name for column in columns.row} - {column.name for column in columns.key}
    for facts in facts_of(text):
        if facts.name in own and facts.is_nullable and not facts.has_default:
            yield facts.name


def _any_told(names: Sequence[str]) -> Column:
    return reduce(or_, (F.col("before").getField(name).isNotNull() for name in names))
