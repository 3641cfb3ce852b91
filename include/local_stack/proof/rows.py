"""Compare two Arrow tables as sets of rows: counts, a checksum that knows no order, what differs."""

from __future__ import annotations

import json
import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from hashlib import blake2b
from typing import Any

import pyarrow as pa

_NULL = b"\x00"
_HASH_BYTES = 16
_MODULUS = 1 << (8 * _HASH_BYTES)

Cells = list[bytes]
Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One table on both sides. Keys are in the words of the source."""

    table: str
    source_rows: int
    silver_rows: int
    source_checksum: str
    silver_checksum: str
    missing: tuple[Key, ...] = ()
    """In the source only."""
    surplus: tuple[Key, ...] = ()
    """In silver only, or there more often."""
    changed: tuple[Key, ...] = ()
    """On both sides, with other values."""
    columns: tuple[str, ...] = ()
    """Where the changed rows differ."""
    type_differences: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        same = (self.source_rows, self.source_checksum) == (self.silver_rows, self.silver_checksum)
        return same and not self.type_differences

    @property
    def differing(self) -> int:
        return len(self.missing) + len(self.surplus) + len(self.changed)

    def sentence(self, *, keys: int = 3) -> str:
        """What differs, with a few keys of each kind."""
        if self.equal:
            return f"{self.table} is equal: {self.source_rows} rows, checksum {self.source_checksum}"
        kinds = (("missing", self.missing), ("surplus", self.surplus), ("changed", self.changed))
        told = [f"{len(found)} {kind} (key {_listed(found, keys)})" for kind, found in kinds if found]
        if self.columns:
            told.append(f"columns that differ: {', '.join(self.columns)}")
        told += self.type_differences
        return f"{self.table} differs in {self.differing} rows: {'; '.join(told)}"


def compare_tables(name: str, *, key: Sequence[str], source: pa.Table, silver: pa.Table) -> Comparison:
    """All columns of `source` count; those that only silver has (system columns, dropped ones) do not.

    A column that silver does not have is NULL there: the source has not sent it yet.
    """
    differences = _type_differences(source.schema, silver.schema)
    if differences:
        return Comparison(name, source.num_rows, silver.num_rows, "", "", type_differences=differences)
    silver = _with_columns(silver, source.schema)
    ours, theirs = _Side(source, key), _Side(silver, key)
    missing, surplus = ours.beyond(theirs), theirs.beyond(ours)
    both = missing.keys() & surplus.keys()
    columns = {column for number in both for column in _differing(ours, theirs, number)}
    return Comparison(
        name,
        source.num_rows,
        silver.num_rows,
        ours.checksum,
        theirs.checksum,
        missing=tuple(ours.key_of(number) for number in missing if number not in both),
        surplus=tuple(theirs.key_of(number) for number in surplus if number not in both),
        changed=tuple(ours.key_of(number) for number in missing if number in both),
        columns=tuple(column for column in source.column_names if column in columns),
    )


def canonical_json(text: str) -> str:
    """The same text for the same document: key order and white space do not count, digits do."""
    document = json.loads(text, parse_float=Decimal)
    return json.dumps(document, sort_keys=True, separators=(",", ":"), default=_exactly)


def checksum(rows: Iterable[bytes]) -> str:
    """A sum, so that order does not count and a row that stands there twice does."""
    return f"{sum(int.from_bytes(row) for row in rows) % _MODULUS:032x}"


class _Side:
    """One side's rows, as hashes, found by key."""

    def __init__(self, table: pa.Table, key: Sequence[str]) -> None:
        self.table = table
        self.cells = {name: encoded(table[name]) for name in table.column_names}
        self.hashes = [_row_hash(row) for row in zip(*self.cells.values(), strict=True)]
        self.checksum = checksum(self.hashes)
        self._key = list(key) or table.column_names
        self.keys = list(zip(*(self.cells[name] for name in self._key), strict=True))
        self.rows: dict[tuple[bytes, ...], list[int]] = defaultdict(list)
        for row, found in enumerate(self.keys):
            self.rows[found].append(row)

    def beyond(self, other: _Side) -> dict[tuple[bytes, ...], int]:
        """Keys with rows that the other side does not have, or has less often; and such a row."""
        found = {}
        left = Counter(other.hashes)
        for row, row_hash in enumerate(self.hashes):
            if left[row_hash] > 0:
                left[row_hash] -= 1
            else:
                found[self.keys[row]] = row
        return found

    def key_of(self, key: tuple[bytes, ...]) -> Key:
        row = self.rows[key][0]
        return tuple(self.table[name][row].as_py() for name in self._key)


def _differing(ours: _Side, theirs: _Side, key: tuple[bytes, ...]) -> list[str]:
    """Columns whose values under this key are not the same on both sides."""
    return [
        name
        for name in ours.cells
        if Counter(ours.cells[name][row] for row in ours.rows[key])
        != Counter(theirs.cells[name][row] for row in theirs.rows[key])
    ]


def encoded(column: pa.ChunkedArray) -> Cells:
    """Each value as bytes that no other value of its type has; NULL is not the empty text."""
    encode = _encoder(column.type)
    return [_NULL if value is None else b"\x01" + encode(value) for value in _plain(column)]


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """Instants and days as numbers: Python's own types have fewer years."""
    if pa.types.is_timestamp(column.type):
        return list(column.cast(pa.int64()).to_pylist())
    if pa.types.is_date32(column.type):
        return list(column.cast(pa.int32()).to_pylist())
    return list(column.to_pylist())


def _encoder(type_: pa.DataType) -> Callable[[Any], bytes]:
    if pa.types.is_floating(type_):
        return lambda value: struct.pack(">d", value if value == value else float("nan"))  # noqa: PLR0124
    if pa.types.is_binary(type_):
        return bytes
    return lambda value: str(value).encode()


def _row_hash(row: Sequence[bytes]) -> bytes:
    """Lengths keep ("ab", "c") apart from ("a", "bc")."""
    whole = blake2b(digest_size=_HASH_BYTES)
    for cell in row:
        whole.update(len(cell).to_bytes(8))
        whole.update(cell)
    return whole.digest()


def _type_differences(source: pa.Schema, silver: pa.Schema) -> tuple[str, ...]:
    return tuple(
        f"{field.name} is {silver.field(field.name).type} in silver and should be {field.type}"
        for field in source
        if field.name in silver.names and silver.field(field.name).type != field.type
    )


def _with_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        table[field.name]
        if field.name in table.column_names
        else pa.chunked_array([pa.nulls(table.num_rows, field.type)])
        for field in schema
    ]
    return pa.table(columns, names=schema.names)


def _exactly(number: object) -> object:
    """A text in JSONB cannot hold this character, so no other value looks like it."""
    return {"\x00": str(number)}


def _listed(keys: Sequence[Key], most: int) -> str:
    told = [", ".join(map(str, key)) for key in keys[:most]]
    return " | ".join(told) + (" …" if len(keys) > most else "")
