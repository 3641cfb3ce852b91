"""Which columns of a table are compared, and which are not, and why: named, never passed over."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from cdc_lakehouse.config.column_choice import ColumnChoice, Mask
from cdc_lakehouse.verification.source_values import Reader, reader_for

ROWS = "(rows that silver does not have)"
"""Stands among columns that are left out; no column has such a name."""
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

    def of_part_of_the_rows(self) -> ColumnPlan:
        """Of a table that has a filter."""
        why = "`filter` of the pipeline: which rows it keeps is known to silver only"
        return replace(self, left_out={**self.left_out, ROWS: why})


class KeyNotComparedError(Exception):
    """Without its key no row has a partner. The text says what is wrong with it."""


def plan_columns(
    source: Sequence[SourceColumn],
    silver: pa.Schema,
    *,
    key: Sequence[str],
    dropped: Collection[str],
    choice: ColumnChoice | None = None,
) -> ColumnPlan:
    """`key` has the names of bronze; `choice` is what silver has of it. Raises `KeyNotComparedError`."""
    choice = choice or ColumnChoice()
    compared: dict[str, ComparedColumn] = {}
    left_out: dict[str, str] = {}
    for column in source:
        found = _not_as_it_was(column, choice) or _compared(
            column, silver, name=_name_in(silver, column.name, choice), dropped=dropped
        )
        if isinstance(found, str):
            left_out[column.name] = found
        else:
            compared[found.silver] = found
    at_source = {_adjusted(name) for column in source for name in _names_of(column.name, choice)}
    for name in silver.names:
        if not name.startswith(SYSTEM_PREFIX) and _adjusted(name) not in at_source:
            left_out[name] = "the source has no such column"
    keys = [choice.rename.get(name, name) for name in key]
    for name, own in zip(key, keys, strict=True):
        if own not in compared:
            raise KeyNotComparedError(f"{name} of the key: {left_out.get(name, 'no such column')}")
    rest = [name for name in compared if name not in keys]
    ordered = tuple(compared[name] for name in (*keys, *rest))
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


def _not_as_it_was(column: SourceColumn, choice: ColumnChoice) -> str | None:
    """Why silver's values are others than the source's, or none, by the pipeline's own word."""
    names = (column.name, _adjusted(column.name))
    is_included = choice.include is None or any(name in choice.include for name in names)
    masks = {choice.mask[name] for name in names if name in choice.mask}
    if not is_included or Mask.DROP in masks or any(name in choice.exclude for name in names):
        return "`columns` of the pipeline"
    return "masked by `columns` of the pipeline" if masks else None


def _name_in(silver: pa.Schema, name: str, choice: ColumnChoice) -> str | None:
    return next((each for each in _names_of(name, choice) if each in silver.names), None)


def _names_of(name: str, choice: ColumnChoice) -> tuple[str, ...]:
    """What silver may call a column of the source."""
    return tuple(choice.rename.get(each, each) for each in (name, _adjusted(name)))


def _adjusted(name: str) -> str:
    """As the connector makes names that Avro takes (`cdc-semantics` §6)."""
    plain = _NOT_AVRO.sub("_", name)
    return f"_{plain}" if plain[:1].isdigit() else plain


def same_name(told: str, original: str) -> bool:
    """Whether a name in a topic can be this one of the source."""
    return told in (original, _adjusted(original))
