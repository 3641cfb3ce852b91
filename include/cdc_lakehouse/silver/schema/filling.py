"""Columns that the source added with a default, which rows without a newer event have too (decision 0042).

`ADD COLUMN ... DEFAULT` gives a value to every row of the source and sends none. The schema of the first
writer that sends the column states the default, unless PostgreSQL computes it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type

from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.debezium.defaults import told_defaults
from cdc_lakehouse.debezium.evolution import widened
from cdc_lakehouse.debezium.schema_facts import row_fields
from cdc_lakehouse.lake.names import quoted
from cdc_lakehouse.lake.schema_archive import archived_in_order


@dataclass(frozen=True, slots=True)
class AddedColumn:
    """A column of bronze that writers of a topic did not send at first."""

    default: pa.Scalar
    type: pa.DataType
    """Type of the column, which may have widened since."""
    before: tuple[int, ...]
    """Value schemas of the writers without the column."""

    @property
    def literal(self) -> Column:
        return F.lit(self.default.as_py()).cast(from_arrow_type(self.type))


def added_columns(
    archives: str, topics: Collection[str], columns: TableColumns, *, but: Collection[str], table: str
) -> Mapping[str, AddedColumn]:
    """Return columns, except `but`, that were added once and whose default is certain.

    None in a table of several topics, which are not altered at one moment, nor where the order of the schema
    versions is not known. Where one version adds a column and drops another, the column may be a renamed one:
    rows of the source keep their values then, and the default is only for new rows.
    """
    if len(topics) != 1:
        return {}
    versions = archived_in_order(archives, next(iter(topics)))
    sent = [{field["name"] for field in row_fields(json.loads(text))} for _, text in versions]
    added = {}
    for column in columns.row:
        since = next((place for place, names in enumerate(sent) if column.name in names), 0)
        is_added = since > 0 and all(column.name in names for names in sent[since:])
        may_be_renamed = since > 0 and not sent[since - 1] <= sent[since]
        if is_added and not may_be_renamed and column.name not in but and column.side_of is None:
            default = told_defaults(versions[since][1], table=table).get(column.name)
            if default is not None and widened(default.type, column.type) == column.type:
                before = tuple(number for number, _ in versions[:since])
                added[column.name] = AddedColumn(default, column.type, before)
    return added


def with_defaults(rows: DataFrame, added: Mapping[str, AddedColumn]) -> DataFrame:
    """Return rows of bronze whose images have the default of a column that their writer did not know yet."""
    after = F.col("after")
    for name, column in added.items():
        is_before = F.coalesce(F.col("value_schema_id").isin(*column.before), F.lit(False))
        value = F.when(is_before, column.literal).otherwise(F.col("after").getField(name))
        after = after.withField(quoted(name), value)
    return rows.withColumn("after", after) if added else rows


def with_fills(rows: DataFrame, values: Mapping[str, Column]) -> DataFrame:
    """Return rows that have these values where they had none."""
    values_or_fills = {name: F.coalesce(F.col(quoted(name)), value) for name, value in values.items()}
    return rows.withColumns({name: value for name, value in values_or_fills.items() if name in rows.columns})
