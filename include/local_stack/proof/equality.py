"""Every silver table of the shop beside its table in PostgreSQL."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from psycopg import IsolationLevel

from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.rows import read_rows
from local_stack.proof.rows import Comparison, canonical_json, compare_tables
from local_stack.proof.source import SourceTable, read_source, source_tables
from local_stack.stack import RunningStack

_SYSTEM_PREFIX = "_cdc_"


def compare_pipeline(
    stack: RunningStack, *, pipeline: str = "shop", root: str | None = None
) -> list[Comparison]:
    """One comparison per table of the source, and one per history. It is read in one snapshot; nobody else
    should write.

    `root` is another lake than the stack's own.
    """
    lake = Lake(root=root or stack.lake_root(), pipeline=pipeline)
    found = []
    with stack.postgres.connect() as connection:
        connection.isolation_level = IsolationLevel.REPEATABLE_READ
        for table in source_tables(connection):
            source = read_source(connection, table)
            found.append(compare_with_silver(table, source, silver=read_rows(lake.silver(table))))
            history = read_rows(lake.history(table))
            if history is not None:
                standing = history.filter(pc.is_null(history["_cdc_to"]))
                found.append(compare_with_silver(f"{table}__history, now", source, silver=standing))
    return found


def compare_with_silver(table: str, source: SourceTable, *, silver: pa.Table | None) -> Comparison:
    """A silver table that does not exist yet is an empty one."""
    rows = source.rows.schema.empty_table() if silver is None else _of_the_source(silver)
    for column in source.json_columns:
        rows = _canonical(rows, column)
    ours = source.rows
    for column in source.json_columns:
        ours = _canonical(ours, column)
    return compare_tables(table, key=source.key, source=ours, silver=rows)


def _of_the_source(silver: pa.Table) -> pa.Table:
    return silver.select([name for name in silver.column_names if not name.startswith(_SYSTEM_PREFIX)])


def _canonical(rows: pa.Table, column: str) -> pa.Table:
    if column not in rows.column_names or not pa.types.is_string(rows[column].type):
        return rows
    texts = [None if text is None else canonical_json(text) for text in rows[column].to_pylist()]
    return rows.set_column(
        rows.column_names.index(column), column, pa.chunked_array([pa.array(texts, pa.string())])
    )
