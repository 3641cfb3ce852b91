"""Rows are found by their keys as a look at every row of the table would find them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdc_lakehouse.lake.deletion_vectors import write_vectors
from cdc_lakehouse.lake.snapshot import DataFile, Snapshot
from cdc_lakehouse.silver.columnar.stored_rows import FoundRows, find_rows

Key = tuple[Any, ...]
Row = dict[str, Any]
SCHEMAS = {
    "number": pa.schema([("id", pa.int64()), ("note", pa.string())]),
    "text": pa.schema([("id", pa.string()), ("note", pa.string())]),
    "composite": pa.schema([("id", pa.int64()), ("part", pa.string()), ("note", pa.string())]),
    "day": pa.schema([("id", pa.date32()), ("note", pa.string())]),
}
ROWS_OF_A_GROUP = 7


def make_value(random: Random, type_: pa.DataType) -> Any:
    number = random.randrange(60)
    if random.random() < 0.05:
        return None
    return f"k{number}" if pa.types.is_string(type_) else number


def make_key(random: Random, schema: pa.Schema) -> Key:
    return tuple(pa.scalar(make_value(random, field.type), field.type).as_py() for field in list(schema)[:-1])


class MadeUpTable:
    """Files of random rows, some sorted by key, some without statistics, some with deleted rows."""

    def __init__(self, folder: Path, random: Random, schema: pa.Schema) -> None:
        self.folder, self.random, self.schema = folder, random, schema
        self.rows: list[tuple[str, int, Row]] = []
        files = tuple(self._write_file(f"{number}.parquet") for number in range(random.randint(1, 4)))
        self.snapshot = Snapshot(uri=folder.as_uri(), version=0, schema=schema, files=files)

    def _write_file(self, name: str) -> DataFile:
        keys = [make_key(self.random, self.schema) for _ in range(self.random.randint(0, 40))]
        if self.random.random() < 0.5:
            keys = sorted(set(keys), key=lambda key: tuple((value is not None, str(value)) for value in key))
        if self.random.random() < 0.5 and self.schema.field("id").type == pa.int64():
            keys = sorted({key for key in keys if None not in key})
        rows = [
            dict(zip(self.schema.names, (*key, str(number)), strict=True)) for number, key in enumerate(keys)
        ]
        table = pa.Table.from_pylist(rows, self.schema)
        has_statistics = self.random.random() < 0.7
        pq.write_table(
            table, self.folder / name, row_group_size=ROWS_OF_A_GROUP, write_statistics=has_statistics
        )
        deleted = sorted(self.random.sample(range(len(rows)), self.random.randint(0, len(rows) // 2)))
        vector = None
        if deleted:
            vector = write_vectors([np.array(deleted, np.uint64)], write=self._write_vectors)[0]
        self.rows += [(name, number, row) for number, row in enumerate(rows) if number not in deleted]
        statistics = self._statistics([row["id"] for row in rows]) if has_statistics else {}
        return DataFile(name, rows=len(rows), deleted=vector, **statistics)

    def _write_vectors(self, path: str, data: bytes) -> None:
        (self.folder / path).write_bytes(data)

    def _statistics(self, values: Sequence[Any]) -> dict[str, Any]:
        known = [value for value in values if value is not None]
        facts: dict[str, Any] = {"nulls": {"id": len(values) - len(known)}}
        if known:
            facts |= {"oldest": {"id": min(known)}, "newest": {"id": max(known)}}
        return facts


def wanted_keys(random: Random, schema: pa.Schema) -> list[Key]:
    return list({make_key(random, schema) for _ in range(random.randint(1, 30))})


def struct_of(keys: Sequence[Key], schema: pa.Schema) -> pa.StructArray:
    names = schema.names[:-1]
    columns = [
        pa.array([key[index] for key in keys], schema.field(name).type) for index, name in enumerate(names)
    ]
    return pa.StructArray.from_arrays(columns, names=names)


def as_rows(found: FoundRows, wanted: Sequence[Key]) -> list[tuple[str, int, Key, str]]:
    notes = found.values["note"].to_pylist()
    return [
        (found.file.path, row, wanted[key], note)
        for row, key, note in zip(found.rows.tolist(), found.keys.tolist(), notes, strict=True)
    ]


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("kind", SCHEMAS)
def test_exactly_the_live_rows_of_the_wanted_keys_are_found(tmp_path: Path, kind: str, seed: int):
    random, schema = Random(f"{kind} {seed}"), SCHEMAS[kind]  # noqa: S311 - a seed, no secret
    table, wanted = MadeUpTable(tmp_path, random, schema), wanted_keys(random, schema)

    found = find_rows(table.snapshot, struct_of(wanted, schema), ["note"])

    keys = schema.names[:-1]
    expected = [
        (name, number, key, row["note"])
        for name, number, row in table.rows
        if (key := tuple(row[column] for column in keys)) in wanted
    ]
    assert [row for rows in found for row in as_rows(rows, wanted)] == expected


def test_a_file_whose_statistics_exclude_all_keys_is_not_opened(tmp_path: Path):
    schema = SCHEMAS["number"]
    missing = DataFile("gone.parquet", 3, None, oldest={"id": 10}, newest={"id": 19}, nulls={"id": 0})
    snapshot = Snapshot(uri=tmp_path.as_uri(), version=0, schema=schema, files=(missing,))

    assert find_rows(snapshot, struct_of([(9,), (20,), (None,)], schema), ["note"]) == []
    with pytest.raises(FileNotFoundError):
        find_rows(snapshot, struct_of([(19,)], schema), ["note"])


def test_columns_that_a_file_lacks_are_null_and_narrow_ones_are_widened(tmp_path: Path):
    pq.write_table(pa.table({"id": pa.array([1, 2], pa.int32())}), tmp_path / "old.parquet")
    old = DataFile("old.parquet", 2, None)
    snapshot = Snapshot(uri=tmp_path.as_uri(), version=0, schema=SCHEMAS["number"], files=(old,))

    found = find_rows(snapshot, struct_of([(2,), (3_000_000_000,)], SCHEMAS["number"]), ["id", "note"])

    assert [rows.values.to_pylist() for rows in found] == [[{"id": 2, "note": None}]]
