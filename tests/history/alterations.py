"""The SQL of a step that alters a table, and what silver cannot know of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from history.shapes import Column, Shape  # type: ignore[import-not-found]
from history.steps import Kind, Step  # type: ignore[import-not-found]

MOST_ADDED = 5
_ADDED = (
    ("integer", "7"),
    ("text", "'given'"),
    ("numeric(10,2)", "1.50"),
    ("boolean", "true"),
    ("timestamp with time zone", "'2026-01-02 03:04:05+00'"),
)


class Unsent(StrEnum):
    """What silver has in a column for rows that nobody wrote since: no event tells the value."""

    NULL = "null"
    """The column is new there."""
    ANYTHING = "anything"
    """A column of that name was there before, and silver keeps what it had."""


@dataclass(frozen=True, slots=True)
class Alteration:
    statements: tuple[str, ...]
    column: str = ""
    """That older rows have not sent."""
    unsent: Unsent = Unsent.NULL


def alteration_of(step: Step, shape: Shape) -> Alteration | None:
    """None where there is no column to do it to."""
    return _WRITERS[step.kind](shape, Random(step.seed))  # noqa: S311


def _added(shape: Shape) -> list[Column]:
    return [column for column in shape.columns if column.is_added]


def _new_name(chance: Random) -> str:
    return f"x{chance.randrange(10**6)}"


def _add(shape: Shape, chance: Random) -> Alteration | None:
    if len(_added(shape)) >= MOST_ADDED:
        return _drop(shape, chance)
    name, (sql, default) = _new_name(chance), chance.choice(_ADDED)
    more = chance.choice(("", "", f" DEFAULT {default}", f" NOT NULL DEFAULT {default}"))
    return Alteration((f"ALTER TABLE {shape.name} ADD COLUMN {name} {sql}{more}",), name)


def _drop(shape: Shape, chance: Random) -> Alteration | None:
    if not (added := _added(shape)):
        return None
    return Alteration((f"ALTER TABLE {shape.name} DROP COLUMN {chance.choice(added).name}",))


def _rename(shape: Shape, chance: Random) -> Alteration | None:
    if not (added := _added(shape)):
        return None
    name, new = chance.choice(added).name, _new_name(chance)
    return Alteration((f"ALTER TABLE {shape.name} RENAME COLUMN {name} TO {new}",), new)


def _replace(shape: Shape, chance: Random) -> Alteration | None:
    """Dropped and added again: the same column in another place."""
    if not (added := _added(shape)):
        return None
    column = chance.choice(added)
    table = f"ALTER TABLE {shape.name}"
    statements = (f"{table} DROP COLUMN {column.name}", f"{table} ADD COLUMN {column.name} {column.sql}")
    return Alteration(statements, column.name, Unsent.ANYTHING)


def _widen(shape: Shape, chance: Random) -> Alteration | None:
    """Any column that can, the key's among them."""
    columns = (*shape.key, *shape.rest)
    wider = [(c.name, sql) for c in columns if (sql := _wider(c.sql, chance)) is not None]
    if not wider:
        return None
    name, sql = chance.choice(wider)
    return Alteration((f"ALTER TABLE {shape.name} ALTER COLUMN {name} TYPE {sql}",))


def _wider(sql: str, chance: Random) -> str | None:
    if sql == "integer":
        return "bigint"
    if found := re.fullmatch(r"character varying\((\d+)\)", sql):
        return chance.choice(("text", f"character varying({2 * int(found[1])})"))
    if found := re.fullmatch(r"numeric\((\d+),(\d+)\)", sql):
        return f"numeric({int(found[1]) + 4},{found[2]})" if int(found[1]) < 30 else None
    return None


_WRITERS: dict[Kind, Callable[[Shape, Random], Alteration | None]] = {
    Kind.ADD_COLUMN: _add,
    Kind.DROP_COLUMN: _drop,
    Kind.RENAME_COLUMN: _rename,
    Kind.WIDEN_COLUMN: _widen,
    Kind.REPLACE_COLUMN: _replace,
}
