"""Every row and every value of silver beside PostgreSQL's."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from history.content import Content  # type: ignore[import-not-found]
from history.inequalities import Unwritten, Wanted, plain_value, wanted  # type: ignore[import-not-found]
from history.shapes import STAMP, Column  # type: ignore[import-not-found]
from unit.postgres_says import plain  # type: ignore[import-not-found]

Key = tuple[Any, ...]
_SYSTEM = "_cdc_"
_SHOWN = 120


@dataclass(frozen=True, slots=True)
class Difference:
    """A value, or a whole row when `column` is empty."""

    table: str
    key: Key
    column: str
    postgres: str
    silver: str
    moment: str = ""
    """That the history was asked for."""

    def at(self, moment: str) -> Difference:
        return replace(self, moment=moment)

    def __str__(self) -> str:
        place = f"{self.table} key {self.key}" + (f" column {self.column}" if self.column else "")
        place = f"{self.moment}, {place}" if self.moment else place
        return f"{place}: PostgreSQL has {self.postgres}, silver has {self.silver}"


@dataclass(frozen=True, slots=True)
class Compared:
    rows: int
    values: int
    exempt: int
    """Values that were never sent and that nobody can know."""
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Silver:
    """The rows of a silver table as plain values, by key."""

    types: dict[str, pa.DataType]
    rows: dict[Key, list[dict[str, Any]]]

    @classmethod
    def of(cls, table: pa.Table | None, key: tuple[str, ...]) -> Silver:
        """A table that does not exist yet is an empty one."""
        if table is None:
            return cls({}, {})
        names = [name for name in table.column_names if not name.startswith(_SYSTEM)]
        columns = {name: [v for chunk in table[name].chunks for v in plain(chunk)] for name in names}
        found: dict[Key, list[dict[str, Any]]] = defaultdict(list)
        for values in zip(*columns.values(), strict=True):
            row = dict(zip(names, values, strict=True))
            found[tuple(row[name] for name in key)].append(row)
        return cls({name: table.schema.field(name).type for name in names}, dict(found))


def compare(content: Content, table: pa.Table | None, unwritten: Unwritten) -> Compared:
    """Of a table of PostgreSQL with silver's."""
    silver = Silver.of(table, content.key)
    differences: list[Difference] = []
    by_name = {column.name: column for column in content.columns}
    values = exempt = 0
    left = dict(silver.rows)
    for texts in content.rows:
        row = dict(zip(by_name, texts, strict=True))
        key = _key_of(content, row, by_name, silver.types)
        held = left.pop(key, [])
        if len(held) != 1:
            differences.append(Difference(content.table, key, "", "one row", f"{len(held)} rows"))
            continue
        for column in content.columns:
            found = held[0].get(column.name)
            must = _wanted(content.table, column, row, silver.types, unwritten)
            values, exempt = values + 1, exempt + must.anything
            if not must.is_met_by(found):
                told = " or ".join(repr(each) for each in must.values)
                differences.append(
                    Difference(content.table, key, column.name, _short(told), _short(repr(found)))
                )
    for key, rows in left.items():
        differences.append(Difference(content.table, key, "", "no row", f"{len(rows)} rows"))
    return Compared(len(content.rows), values, exempt, tuple(differences))


def _key_of(
    content: Content, row: dict[str, str | None], columns: dict[str, Column], types: dict[str, pa.DataType]
) -> Key:
    return tuple(
        plain_value(row[name], columns[name].sql, types.get(name, pa.string())) for name in content.key
    )


def _wanted(
    table: str,
    column: Column,
    row: dict[str, str | None],
    types: dict[str, pa.DataType],
    unwritten: Unwritten,
) -> Wanted:
    type_ = types.get(column.name)
    if type_ is None:  # no event has had it: silver has no such column
        type_ = pa.string()
    return wanted(table, column, row[column.name], type_, stamp=row.get(STAMP), unwritten=unwritten)


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"
