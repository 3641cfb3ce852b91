"""Positions of a whole batch: the columnar twin of `position`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lakehouse.avro.typed.columns import numbers_of, present
from cdc_lakehouse.debezium.conversions import same_text
from cdc_lakehouse.debezium.operations import Operation
from cdc_lakehouse.debezium.position import (
    FULL_SNAPSHOT,
    INCREMENTAL,
    MYSQL_CONNECTORS,
    binlog_number,
    sequence_pair,
)
from cdc_lakehouse.debezium.sequences import read_pairs


def position_columns(
    source: pa.StructArray, op: pa.Array, total_order: pa.Array, offset: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray]:
    """Values in the order phase, commit, streamed, row, order_in_tx, kind, and a mask of the known ones."""
    count = len(op)
    connector, snapshot = source.field("connector"), source.field("snapshot")
    full = _one_of(snapshot, sorted(FULL_SNAPSHOT))
    known = present(source) & present(op)
    postgresql, mysql = _one_of(connector, ["postgresql"]), _one_of(connector, sorted(MYSQL_CONNECTORS))
    commit, row = np.zeros(count, np.int64), offset.astype(np.int64)
    order = _or_zero(total_order)
    if postgresql.any():
        known &= _postgresql(source, postgresql, commit, row)
    if mysql.any():
        known &= _mysql(source, mysql, commit, row)
        order = np.where(mysql, _or_zero(source.field("row")), order)
    phase = (~full).astype(np.int64)
    streamed = (~(full | _one_of(snapshot, [INCREMENTAL]))).astype(np.int64)
    kind = (~_one_of(op, [str(Operation.DELETE)])).astype(np.int64)
    return [phase, commit, streamed, row, order, kind], known


def _one_of(column: pa.Array, texts: list[str]) -> np.ndarray:
    found: np.ndarray = np.zeros(len(column), bool)
    text = same_text(column)
    if text is not None:
        found[:] = text in texts
    elif column.null_count < len(column):
        found = pc.is_in(column, value_set=pa.array(texts, pa.string())).to_numpy(zero_copy_only=False)
    return found


def _or_zero(column: pa.Array) -> np.ndarray:
    found = numbers_of(column, np.int64)
    return found if column.null_count == 0 else np.where(present(column), found, 0)


def _postgresql(source: pa.StructArray, mine: np.ndarray, commit: np.ndarray, row: np.ndarray) -> np.ndarray:
    first, own, has_own, readable = _sequences(source.field("sequence"), mine)
    has_lsn = present(source.field("lsn"))
    commit[mine] = first[mine]
    row[mine] = np.where(has_lsn, _or_zero(source.field("lsn")), own)[mine]
    known: np.ndarray = ~mine | (readable & (has_lsn | has_own))
    return known


def _mysql(source: pa.StructArray, mine: np.ndarray, commit: np.ndarray, row: np.ndarray) -> np.ndarray:
    files = source.field("file").dictionary_encode()
    numbers = [binlog_number(name) for name in files.dictionary.to_pylist()] or [None]
    codes = files.indices.fill_null(0).to_numpy()
    commit[mine] = np.array([number or 0 for number in numbers], np.int64)[codes][mine]
    row[mine] = _or_zero(source.field("pos"))[mine]
    named = np.array([number is not None for number in numbers])[codes] & present(source.field("file"))
    known: np.ndarray = ~mine | (named & present(source.field("pos")))
    return known


def _sequences(column: pa.Array, mine: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """First number or 0, second number or 0, whether there is a second, whether the text is readable."""
    count = len(column)
    first, second = np.zeros(count, np.int64), np.zeros(count, np.int64)
    has_second, readable = np.zeros(count, bool), np.ones(count, bool)
    there = present(column)
    if not (there & mine).any():
        return first, second, has_second, readable
    usual = read_pairs(column, first, second)
    has_second |= usual
    for place in np.flatnonzero(there & mine & ~usual):
        pair = sequence_pair(column[int(place)].as_py())
        readable[place] = pair is not None
        if pair is not None:
            first[place], second[place], has_second[place] = pair[0] or 0, pair[1] or 0, pair[1] is not None
    return first, second, has_second, readable
