"""The rows of either side as cells of the same columns: what a comparison is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lakehouse.lake.rows import batches_of
from cdc_lakehouse.lake.snapshot import Snapshot
from cdc_lakehouse.verification.cells import cells
from cdc_lakehouse.verification.columns import ColumnPlan

_POSITION, _DELETED = "_cdc_position", "_cdc_deleted"
_ROWS_AT_ONCE = 10_000
_BEYOND = pa.scalar(b"\x00beyond", pa.binary())
"""No value of silver has this cell: the lake cannot hold what the source has."""


@dataclass(frozen=True, slots=True)
class RowBatch:
    cells: tuple[pa.Array, ...]
    """In the order of the plan: those of the key first."""
    tokens: pa.Array
    """What changes whenever somebody writes the row: the source's transaction, silver's position."""
    as_null: dict[str, int] = field(default_factory=dict)
    """Column -> values that silver stores as NULL because no column of the lake holds them."""


def source_batch(plan: ColumnPlan, texts: Sequence[pa.StringArray], *, beyond_is_null: bool) -> RowBatch:
    """`texts` are PostgreSQL's, of the plan's columns, and the row's transaction behind them."""
    found, as_null = [], {}
    for column, told in zip(plan.compared, texts, strict=False):
        values, beyond = column.reader.parse(told, column.type)
        cell = cells(column.reader.settle(values))
        if beyond.any():
            instead = pa.scalar(None, pa.binary()) if beyond_is_null else _BEYOND
            cell = pc.if_else(pa.array(beyond), instead, cell)
            if beyond_is_null:
                as_null[column.source] = int(np.count_nonzero(beyond))
        found.append(cell)
    return RowBatch(tuple(found), tokens=texts[-1], as_null=as_null)


def silver_batches(plan: ColumnPlan, snapshot: Snapshot) -> Iterator[RowBatch]:
    """Rows that are only marked as deleted are none."""
    names = snapshot.schema.names
    system = [name for name in (_POSITION, _DELETED) if name in names]
    columns = [column.silver for column in plan.compared]
    for table in batches_of(snapshot, [*columns, *system], most=_ROWS_AT_ONCE):
        kept = table.filter(pc.invert(pc.fill_null(table[_DELETED], False))) if _DELETED in names else table
        whole = kept.combine_chunks()
        found = tuple(cells(column.reader.settle(_array(whole[column.silver]))) for column in plan.compared)
        yield RowBatch(found, tokens=_positions(whole))


def _positions(table: pa.Table) -> pa.Array:
    if _POSITION not in table.column_names:
        return pa.nulls(table.num_rows, pa.string())
    parts = [pc.cast(part, pa.string()) for part in _array(table[_POSITION]).flatten()]
    return pc.binary_join_element_wise(*parts, ".", null_handling="replace", null_replacement="")


def _array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)
