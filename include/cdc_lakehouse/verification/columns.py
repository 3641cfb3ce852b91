"""Which columns of a table are compared, and which are not, and why: named, never passed over."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from cdc_lakehouse.verification.source_values import Reader, reader_for

SYSTEM_PREFIX = "_cdc_"
_NOT_AVRO = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True, slots=True)
class SourceColumn:
    name: str
    type: str
    """PostgreSQL's name of it, of what a domain stands on; `enum` for every enumeration."""
    generated: bool = False
    stored_away: bool = False
    """It has numbers without a scale so long that an update that leaves them alone does not send them."""


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    source: str
    silver: str
    type: pa.DataType
    reader: Reader


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    compared: tuple[ComparedColumn, ...]
    """Those of the key first."""
    keys: int
    """How many of them are the key."""
    left_out: Mapping[str, str]
    """Column -> why it is not compared."""


class KeyNotComparedError(Exception):
    """Without its key no row has a partner. The text says what is wrong with it."""


def plan_columns(
    source: Sequence[SourceColumn], silver: pa.Schema, *, key: Sequence[str], dropped: Collection[str]
) -> ColumnPlan:
    """Raises `KeyNotComparedError`."""
    compared: dict[str, ComparedColumn] = {}
    left_out: dict[str, str] = {}
    for column in source:
        name = _name_in(silver, column.name)
        found = _compared(column, silver, name=name, dropped=dropped)
        if isinstance(found, str):
            left_out[column.name] = found
        else:
            compared[found.silver] = found
    at_source = {_adjusted(column.name) for column in source}
    for name in silver.names:
        if not name.startswith(SYSTEM_PREFIX) and _adjusted(name) not in at_source:
            left_out[name] = "the source has no such column"
    for name in key:
        if name not in compared:
            raise KeyNotComparedError(f"{name} of the key: {left_out.get(name, 'no such column')}")
    rest = [name for name in compared if name not in key]
    ordered = tuple(compared[name] for name in (*key, *rest))
    return ColumnPlan(compared=ordered, keys=len(key), left_out=left_out)


def _compared(
    column: SourceColumn, silver: pa.Schema, *, name: str | None, dropped: Collection[str]
) -> ComparedColumn | str:
    """Or why not."""
    if {column.name, _adjusted(column.name)} & set(dropped):
        return "drop_columns of the pipeline"
    if name is None:
        return "silver has no such column"
    if column.generated:
        return "generated columns are sent by snapshots only"
    if column.stored_away:
        return "long numbers without a scale are not sent by updates that leave them alone"
    type_ = silver.field(name).type
    reader = reader_for(column.type, type_)
    if reader is None:
        return f"{column.type} as {type_} is not compared"
    return ComparedColumn(source=column.name, silver=name, type=type_, reader=reader)


def _name_in(silver: pa.Schema, name: str) -> str | None:
    return next((each for each in (name, _adjusted(name)) if each in silver.names), None)


def _adjusted(name: str) -> str:
    """As the connector makes names that Avro takes (`cdc-semantics` §6)."""
    plain = _NOT_AVRO.sub("_", name)
    return f"_{plain}" if plain[:1].isdigit() else plain


def same_name(told: str, original: str) -> bool:
    """Whether a name in a topic can be this one of the source."""
    return told in (original, _adjusted(original))
