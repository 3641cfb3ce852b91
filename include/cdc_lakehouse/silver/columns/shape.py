"""Which columns silver has of those of bronze (decision 0030): decisions on values, no Spark."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from difflib import get_close_matches

import pyarrow as pa

from cdc_lakehouse.config.column_choice import ColumnChoice, Mask
from cdc_lakehouse.debezium.columns import Column, TableColumns
from cdc_lakehouse.errors import InvalidShapeError


@dataclass(frozen=True, slots=True)
class ShapedColumn:
    source: Column
    """As bronze has it."""
    column: Column
    """As silver has it."""
    mask: Mask | None
    """Never `drop`."""

    @property
    def is_as_it_was(self) -> bool:
        return self.mask is None and self.column.name == self.source.name


@dataclass(frozen=True, slots=True)
class Shape:
    key: tuple[ShapedColumn, ...]
    row: tuple[ShapedColumn, ...]
    left_out: frozenset[str]
    """Columns of bronze that silver does not have."""

    @property
    def columns(self) -> TableColumns:
        """Silver's."""
        return TableColumns(
            key=tuple(each.column for each in self.key), row=tuple(each.column for each in self.row)
        )

    @property
    def changes_nothing(self) -> bool:
        return not self.left_out and all(each.is_as_it_was for each in (*self.key, *self.row))


def plan_shape(columns: TableColumns, choice: ColumnChoice, *, table: str) -> Shape:
    """Raises for a choice that speaks of columns that bronze does not have, or that silver cannot be without.

    A name that bronze lacks is an error though the column may come later: what a mask meant to hide would
    be in silver by then.
    """
    _refuse_unknown(columns, choice, table=table)
    row = {each.name: _shaped(each, choice, table=table) for each in columns.row}
    key = tuple(_of_key(each, choice, table=table) for each in columns.key)
    shape = Shape(
        key=key,
        row=tuple(each for each in row.values() if each is not None),
        left_out=frozenset(name for name, each in row.items() if each is None),
    )
    _refuse_one_name_for_two(shape, table=table)
    return shape


def reshaped(
    columns: TableColumns, before: ColumnChoice, now: ColumnChoice, *, existing: Collection[str]
) -> tuple[str, ...]:
    """The columns of bronze that were one thing in silver by `before` and are another by `now`.

    `existing` are silver's columns: one that it should have and does not is new, and may become anything.
    One that was left out counts too: bronze has its values, and silver's older rows would not.
    """
    changed = []
    for column in columns.row:
        was, is_ = _treatment(column, before), _treatment(column, now)
        is_new = was is not None and was[0] not in existing
        if was != is_ and not is_new:
            changed.append(column.name)
    return tuple(changed)


def _shaped(column: Column, choice: ColumnChoice, *, table: str) -> ShapedColumn | None:
    treatment = _treatment(column, choice)
    if treatment is None:
        return None
    name, mask = treatment
    if mask is Mask.HASH and pa.types.is_nested(column.type):
        problem = f"{column.name} is {column.type}; a hash stands for one value, not for nested ones"
        raise InvalidShapeError(table=table, setting="columns.mask", problem=problem)
    side_of = None if column.side_of is None else choice.rename.get(column.side_of, column.side_of)
    type_ = pa.string() if mask is Mask.HASH else column.type
    return ShapedColumn(column, replace(column, name=name, type=type_, side_of=side_of), mask)


def _treatment(column: Column, choice: ColumnChoice) -> tuple[str, Mask | None] | None:
    """Name and mask in silver. A column beside another is treated like it, unless it is named itself."""
    own, sent = column.name, column.sent_as
    named = {own, sent}
    if named & set(choice.exclude) or not (choice.include is None or named & set(choice.include)):
        return None
    mask = choice.mask.get(own, choice.mask.get(sent))
    if mask is Mask.DROP:
        return None
    if own in choice.rename or sent not in choice.rename:
        return choice.rename.get(own, own), mask
    beside = own.removeprefix(sent) if own.startswith(sent) else f"_{own}"
    return choice.rename[sent] + beside, mask


def _of_key(column: Column, choice: ColumnChoice, *, table: str) -> ShapedColumn:
    shaped = _shaped(column, choice, table=table)
    if shaped is None or shaped.mask is Mask.NULL:
        name = column.name
        setting = "mask" if name in choice.mask else "exclude" if name in choice.exclude else "include"
        problem = f"{name} is part of the key; it may be renamed or hashed, and silver needs it"
        raise InvalidShapeError(table=table, setting=f"columns.{setting}", problem=problem)
    return shaped


def _refuse_unknown(columns: TableColumns, choice: ColumnChoice, *, table: str) -> None:
    for setting, name in choice.named:
        refuse_unknown(name, columns, setting=f"columns.{setting}", table=table)


def refuse_unknown(name: str, columns: TableColumns, *, setting: str, table: str) -> None:
    """`columns` are bronze's."""
    known = {column.name for column in (*columns.key, *columns.row)}
    if name not in known:
        close = get_close_matches(name, sorted(known), n=1, cutoff=0.5)
        hint = f"did you mean {close[0]}?" if close else f"it has {', '.join(sorted(known))}"
        problem = f"bronze has no column {name}; {hint}"
        raise InvalidShapeError(table=table, setting=setting, problem=problem)


def _refuse_one_name_for_two(shape: Shape, *, table: str) -> None:
    """Spark takes `ID` and `id` for one column (`cdc-semantics` §6)."""
    seen: dict[str, ShapedColumn] = {}
    for each in shape.row:
        other = seen.setdefault(each.column.name.casefold(), each)
        if other is not each:
            names = f"{other.source.name} and {each.source.name}"
            problem = f"{names} would both be {each.column.name} in silver"
            raise InvalidShapeError(table=table, setting="columns.rename", problem=problem)
