"""The columns of a table as its schemas tell them, and how they grow (`cdc-semantics` §7)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from cdc_lakehouse.debezium.envelope import Field, plan_envelope, plan_key
from cdc_lakehouse.debezium.evolution import widened
from cdc_lakehouse.errors import (
    IncompatibleSchemaError,
    KeySchemaDriftError,
    NotSupportedYetError,
    UnsupportedTypeError,
)


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: pa.DataType
    """Final type: what bronze and silver store."""
    side_of: str | None = None
    """Where the source changed the type of a column: the column that this one stands beside."""

    @property
    def sent_as(self) -> str:
        """The name under which the source sends its values."""
        return self.name if self.side_of is None else self.side_of


@dataclass(frozen=True, slots=True)
class TableColumns:
    """Key fields and row fields, in the order in which the table got them."""

    key: tuple[Column, ...]
    """None while no schema of a key is known: the table is keyless, or has been truncated only."""
    row: tuple[Column, ...]
    topic: str | None = None
    """The column of silver's key that is the topic of its rows, where the table has one."""


def columns_of(
    key_schema: str | None, value_schema: str, *, table: str, dropped: frozenset[str] = frozenset()
) -> TableColumns:
    """From one pair of writer schemas (JSON texts). Raises a `ConfigError` for what cannot be planned."""
    key = () if key_schema is None else key_columns(key_schema, table=table, dropped=dropped)
    row = _columns(plan_envelope(value_schema, table=table, dropped=dropped).after, table=table)
    return TableColumns(key=key, row=row)


def key_columns(key_schema: str, *, table: str, dropped: frozenset[str] = frozenset()) -> tuple[Column, ...]:
    """Raises a `ConfigError` for a key that cannot be one."""
    key = _columns(plan_key(key_schema, table=table).fields, table=table)
    for column in key:
        if column.name in dropped:
            feature = f"{column.name}, part of the key of {table}, in drop_columns"
            raise NotSupportedYetError(feature=feature)
        if not may_be_key(column.type):
            what = f"{column.type} as part of the key"
            raise UnsupportedTypeError(table=table, column=column.name, type=what)
    return key


def unknown_types(
    value_schema: str, *, table: str, dropped: frozenset[str] = frozenset()
) -> dict[str, tuple[str, ...]]:
    """Column -> semantic names in it that this release does not know (`cdc-semantics` §7).

    Raises what `columns_of` raises.
    """
    row = plan_envelope(value_schema, table=table, dropped=dropped).after
    return {field.name: field.unknown for field in row if field.unknown}


def column_for(sent: str, type_: pa.DataType, columns: tuple[Column, ...]) -> Column | None:
    """The column that takes values of this type which are `sent` under this name.

    The first that holds them; where none does, the one whose values they are not. None: there is no column.
    """
    own = [column for column in columns if column.sent_as == sent]
    holding = (column for column in own if widened(column.type, type_) is not None)
    return next(holding, own[0] if own else None)


def evolve(existing: TableColumns, new: TableColumns, *, table: str) -> TableColumns:
    """New columns at the end, types widened, missing columns kept; a `LakehouseError` if that cannot be.

    A table whose key was not known gets it; what it held before has none.
    """
    key = widened_key(existing.key, new.key)
    if key is None:
        raise KeySchemaDriftError(table=table, was=_told(existing.key), now=_told(new.key))
    row = {column.name: column for column in existing.row}
    for column in new.row:
        known = column_for(column.name, column.type, tuple(row.values())) or row.get(column.name)
        if known is None:
            row[column.name] = column
            continue
        type_ = widened(known.type, column.type) if known.sent_as == column.name else None
        if type_ is None:
            was, now = str(known.type), str(column.type)
            raise IncompatibleSchemaError(table=table, column=column.name, was=was, now=now)
        row[known.name] = replace(known, type=type_)
    _refuse_collisions(tuple(row.values()), table=table)
    return TableColumns(key=key, row=tuple(row.values()))


def widened_key(existing: tuple[Column, ...], new: tuple[Column, ...]) -> tuple[Column, ...] | None:
    """Return the key that holds the values of both, in the order of `existing`; None where there is none.

    Columns of a key widen like those of a row. Another set of columns is another key.
    """
    if not existing:
        return new
    sent = {column.name: column.type for column in new}
    if sent.keys() != {column.name for column in existing}:
        return None
    key = []
    for column in existing:
        type_ = widened(column.type, sent[column.name])
        if type_ is None:
            return None
        key.append(replace(column, type=type_))
    return tuple(key)


def evolve_leniently(existing: TableColumns, new: TableColumns) -> TableColumns:
    """Like `evolve`, but what cannot be stays as it is, and records that need it become undecodable.

    Bronze always ingests; the policies on schemas stop silver (`architecture` §6).
    """
    row = {column.name: column for column in existing.row}
    names = {name.casefold() for name in row}
    for column in new.row:
        known = column_for(column.name, column.type, tuple(row.values()))
        if known is not None:
            row[known.name] = replace(known, type=widened(known.type, column.type) or known.type)
        elif column.name.casefold() not in names:
            row[column.name] = column
            names.add(column.name.casefold())
    key = widened_key(existing.key, new.key) or existing.key
    return TableColumns(key=key, row=tuple(row.values()))


def _columns(fields: tuple[Field, ...], *, table: str) -> tuple[Column, ...]:
    columns = tuple(Column(field.name, field.value.type) for field in fields)
    _refuse_collisions(columns, table=table)
    return columns


def _refuse_collisions(columns: tuple[Column, ...], *, table: str) -> None:
    """Spark and Delta take `ID` and `id` for one column (`cdc-semantics` §6)."""
    seen: dict[str, str] = {}
    for column in columns:
        other = seen.setdefault(column.name.casefold(), column.name)
        if other != column.name:
            raise NotSupportedYetError(
                feature=f"{table} with the columns {other} and {column.name}, alike but for case,"
            )
        if _collides_inside(column.type):
            raise UnsupportedTypeError(
                table=table, column=column.name, type="record with fields that are alike but for case"
            )


def _collides_inside(type_: pa.DataType) -> bool:
    inner = [type_.field(place) for place in range(type_.num_fields)]
    names = {field.name.casefold() for field in inner}
    return len(names) < len(inner) or any(_collides_inside(field.type) for field in inner)


def may_be_key(type_: pa.DataType) -> bool:
    """Floats do not compare for equality reliably, and nested values not at all (`cdc-semantics` §5)."""
    return not (pa.types.is_floating(type_) or pa.types.is_nested(type_))


def _told(columns: tuple[Column, ...]) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in columns)
