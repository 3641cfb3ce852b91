"""What a table does with a type that its column cannot take: a column beside it, or another type."""

from __future__ import annotations

from dataclasses import replace

from cdc_lakehouse.debezium.columns import Column, TableColumns, column_for, evolve_leniently
from cdc_lakehouse.debezium.evolution import widened

FIRST_SIDE = 2


def with_side_columns(existing: TableColumns, new: TableColumns) -> TableColumns:
    """Like `evolve_leniently`, but values that fit no column of theirs get one: `x__v2` beside `x`.

    The same schemas in the same order make the same columns, and columns that exist are never decided anew.
    A name that is taken, by the source too, is skipped. Columns of the key widen or stay as they are.
    """
    grown = evolve_leniently(existing, new)
    row, keys = list(grown.row), {column.name for column in existing.key}
    taken = {column.name.casefold() for column in (*row, *new.row)}
    for column in new.row:
        if column.name in keys or _is_held(column, grown.row):
            continue
        name = _free(column.name, taken)
        taken.add(name.casefold())
        row.append(Column(name, column.type, side_of=column.name))
    return TableColumns(key=grown.key, row=tuple(row))


def with_newest_types(existing: TableColumns, new: TableColumns) -> TableColumns:
    """Like `evolve_leniently`, but where types do not meet the newer one counts.

    For a table without rows: it begins with what the source sends now, not with what it sent once.
    """
    grown, sent = evolve_leniently(existing, new), {column.name: column for column in new.row}
    row = tuple(
        replace(column, type=sent[column.name].type)
        if column.name in sent and not _is_held(sent[column.name], grown.row)
        else column
        for column in grown.row
    )
    return TableColumns(key=grown.key, row=row)


def _is_held(sent: Column, columns: tuple[Column, ...]) -> bool:
    """Also where no column bears its name but for case: two such columns cannot stand in one table."""
    column = column_for(sent.name, sent.type, columns)
    if column is None:
        return sent.name not in {each.name for each in columns}
    return widened(column.type, sent.type) is not None


def _free(name: str, taken: set[str]) -> str:
    number = FIRST_SIDE
    while f"{name}__v{number}".casefold() in taken:
        number += 1
    return f"{name}__v{number}"
