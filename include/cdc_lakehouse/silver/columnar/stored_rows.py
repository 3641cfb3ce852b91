"""Find the rows that a Delta table has of some keys, by statistics first and then by key columns alone.

A file whose statistics exclude all keys is not opened. Of another one only those row groups are read whose
statistics may have a key, and there first the key columns. Files that a merge wrote are sorted by key, so
that a key is found by binary search.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_lakehouse.fold.arrays import Bools, Int64s
from cdc_lakehouse.fold.key_groups import number_keys
from cdc_lakehouse.lake.filesystem import filesystem_of
from cdc_lakehouse.lake.rows import conform, naming_damage, nullable_schema, read_deleted
from cdc_lakehouse.lake.snapshot import DataFile, Snapshot


@dataclass(frozen=True, slots=True)
class FoundRows:
    """Rows of one file that have a wanted key and are not deleted."""

    file: DataFile
    count: int
    """Rows that the file has, deleted ones as well."""
    rows: Int64s
    """Numbers of the rows in the file, ascending."""
    keys: Int64s
    """The wanted key of each row, as its number."""
    values: pa.Table
    """The columns that were asked for, row by row."""

    def take(self, mask: Bools) -> FoundRows:
        values = self.values.filter(pa.array(mask))
        return replace(self, rows=self.rows[mask], keys=self.keys[mask], values=values)


def find_rows(snapshot: Snapshot, wanted: pa.StructArray, columns: Sequence[str]) -> list[FoundRows]:
    """Return the rows that have one of the `wanted` keys, file by file, with these columns of theirs.

    `wanted` has each key once, in the types of the table.
    """
    keys = _WantedKeys.of(wanted)
    found = (_find_in_file(snapshot, file, keys, columns) for file in snapshot.files if keys.may_be_in(file))
    return [rows for rows in found if len(rows.rows)]


@dataclass(frozen=True, slots=True)
class _WantedKeys:
    keys: pa.StructArray
    sorted_values: Sequence[Any] | None
    """Values of the first key column, without NULL; None for a type whose statistics are not compared."""
    order: Int64s
    """Number of the key of each sorted value."""
    nulls: Int64s
    """Keys whose first column is NULL."""

    @classmethod
    def of(cls, keys: pa.StructArray) -> _WantedKeys:
        first = keys.field(0)
        nulls = np.flatnonzero(first.is_null().to_numpy(zero_copy_only=False))
        if not _has_comparable_statistics(first.type):
            return cls(keys, None, nulls, nulls)
        order = pc.sort_indices(first).to_numpy().astype(np.int64)
        order = order[: len(keys) - len(nulls)]
        return cls(keys, first.take(pa.array(order)).to_pylist(), order, nulls)

    @property
    def names(self) -> list[str]:
        return [field.name for field in self.keys.type]

    def may_be_in(self, file: DataFile) -> bool:
        name = self.names[0]
        lowest, highest, null_count = (values.get(name) for values in (file.oldest, file.newest, file.nulls))
        return len(self.between(lowest, highest, null_count)) > 0

    def between(self, lowest: Any, highest: Any, null_count: int | None) -> Int64s:
        """Return the keys that rows may have whose first column lies between two values; None is unknown."""
        if self.sorted_values is None or lowest is None or highest is None:
            return np.arange(len(self.keys))
        start, end = bisect_left(self.sorted_values, lowest), bisect_right(self.sorted_values, highest)
        nulls = self.nulls if null_count != 0 else self.nulls[:0]
        return np.concatenate([self.order[start:end], nulls])


def _has_comparable_statistics(type_: pa.DataType) -> bool:
    """Return whether log and file write the lowest and highest values of a type as Python compares them."""
    return bool(pa.types.is_integer(type_) or pa.types.is_string(type_))


def _find_in_file(
    snapshot: Snapshot, file: DataFile, wanted: _WantedKeys, columns: Sequence[str]
) -> FoundRows:
    filesystem, folder = filesystem_of(snapshot.uri)
    whole = nullable_schema(snapshot)
    schemas = [pa.schema([whole.field(name) for name in names]) for names in (wanted.names, columns)]
    numbers, keys, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [schemas[1].empty_table()]
    with naming_damage(snapshot.uri, file), filesystem.open_input_file(f"{folder}/{file.path}") as stream:
        parquet = pq.ParquetFile(stream, coerce_int96_timestamp_unit="us", page_checksum_verification=True)
        deleted = read_deleted(file, filesystem=filesystem, folder=folder)
        for group, start, candidates in _row_groups(parquet, wanted):
            key_columns = _read_columns(parquet, group, schemas[0])
            rows, matched = _match_keys(key_columns, wanted.keys, candidates)
            is_live = ~np.isin(rows + start, deleted)
            rows, matched = rows[is_live], matched[is_live]
            if len(rows):
                numbers.append(rows + start)
                keys.append(matched)
                values.append(_read_columns(parquet, group, schemas[1]).take(pa.array(rows)))
        count = parquet.metadata.num_rows
    return FoundRows(file, count, np.concatenate(numbers), np.concatenate(keys), pa.concat_tables(values))


def _row_groups(parquet: pq.ParquetFile, wanted: _WantedKeys) -> Iterator[tuple[int, int, Int64s]]:
    """Return the row groups that may have wanted keys, with the number of their first row, and these keys."""
    metadata, start = parquet.metadata, 0
    names = [column.path for column in parquet.schema]
    column = names.index(wanted.names[0]) if wanted.names[0] in names else None
    for group in range(metadata.num_row_groups):
        facts = None if column is None else metadata.row_group(group).column(column).statistics
        if facts is not None and facts.has_min_max:
            null_count = facts.null_count if facts.has_null_count else None
            candidates = wanted.between(facts.min, facts.max, null_count)
        else:
            candidates = wanted.between(None, None, None)
        if len(candidates):
            yield group, start, candidates
        start += metadata.row_group(group).num_rows


def _read_columns(parquet: pq.ParquetFile, group: int, schema: pa.Schema) -> pa.Table:
    """Return columns of a row group in the types of the table; those that the file lacks are NULL."""
    present = [name for name in schema.names if name in parquet.schema_arrow.names]
    if not present:
        rows = parquet.metadata.row_group(group).num_rows
        return pa.table([pa.nulls(rows, field.type) for field in schema], schema=schema)
    return conform(parquet.read_row_group(group, columns=present), schema)


def _match_keys(rows: pa.Table, wanted: pa.StructArray, candidates: Int64s) -> tuple[Int64s, Int64s]:
    """Return which rows have one of the candidates as their key, ascending, and which one each has."""
    first = rows.column(0).combine_chunks()
    keys = wanted.take(pa.array(candidates))
    if rows.num_columns == 1 and pa.types.is_integer(first.type) and not first.null_count:
        values = first.to_numpy()
        if len(values) < 2 or (values[1:] > values[:-1]).all():
            return _search_sorted(values, keys.field(0), candidates)
    numbers = pc.index_in(first, value_set=pc.unique(keys.field(0)))
    possible = np.flatnonzero(numbers.is_valid().to_numpy(zero_copy_only=False))
    if not len(possible):
        return possible, possible
    columns = [column.combine_chunks() for column in rows.take(pa.array(possible)).columns]
    found = pa.StructArray.from_arrays(columns, names=[field.name for field in wanted.type])
    (wanted_numbers, found_numbers), count = number_keys(keys, found)
    key_of_number = np.full(count, -1, np.int64)
    key_of_number[wanted_numbers] = candidates
    matched = key_of_number[found_numbers]
    return possible[matched >= 0], matched[matched >= 0]


def _search_sorted(values: Int64s, keys: pa.Array, candidates: Int64s) -> tuple[Int64s, Int64s]:
    """Return the rows of sorted values that are one of the keys."""
    is_valid = keys.is_valid().to_numpy(zero_copy_only=False)
    numbers, candidates = keys.drop_null().to_numpy(), candidates[is_valid]
    rows = np.searchsorted(values, numbers)
    is_there = rows < len(values)
    is_there[is_there] = values[rows[is_there]] == numbers[is_there]
    order = np.argsort(rows[is_there], kind="stable")
    return rows[is_there][order].astype(np.int64), candidates[is_there][order]
