"""The SQL of a step that changes rows: a pure value of the step and of the table's shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from history.shapes import Column, Shape  # type: ignore[import-not-found]
from history.steps import Kind, Step  # type: ignore[import-not-found]
from history.values import key_text, spare_key_text, text_of  # type: ignore[import-not-found]

Row = tuple[str | None, ...]
Writer = Callable[[Shape, Random], list["Statement"]]


@dataclass(frozen=True, slots=True)
class Statement:
    """`rows` are streamed by COPY; otherwise `values` are parameters."""

    sql: str
    values: Row = ()
    rows: tuple[Row, ...] | None = None

    def __str__(self) -> str:
        told = [
            value if value is None or len(value) < 40 else f"{value[:20]}… ({len(value)})"
            for value in self.values
        ]
        return f"{self.sql} {told}" if told else self.sql


def statements_of(step: Step, shape: Shape, *, others: Sequence[str] = ()) -> list[Statement]:
    """`others` are the tables that a TRUNCATE of several may name."""
    chance = Random(step.seed)  # noqa: S311
    if step.kind is Kind.TRUNCATE_MANY:
        chosen = chance.sample(list(others), min(len(others), chance.randint(1, 3)))
        names = ", ".join(dict.fromkeys([shape.name, *chosen]))
        return [Statement(f"TRUNCATE {names}")]
    return _WRITERS[step.kind](shape, chance)


def _names(columns: Sequence[Column]) -> str:
    return ", ".join(column.name for column in columns)


def _places(columns: Sequence[Column]) -> str:
    return ", ".join(f"%s::{column.sql}" for column in columns)


def _key_of(shape: Shape, chance: Random) -> Row:
    return tuple(
        key_text(c.sql, chance, keys=shape.table.keys if n == 0 else 5) for n, c in enumerate(shape.key)
    )


def _where(shape: Shape) -> str:
    return " AND ".join(f"{column.name} = %s::{column.sql}" for column in shape.key)


def _values(columns: Sequence[Column], chance: Random) -> Row:
    return tuple(
        text_of(column.sql, chance, large=column.external, nulls=0 if column.required else 0.12)
        for column in columns
    )


def _some(columns: Sequence[Column], chance: Random) -> list[Column]:
    """In the order of the table; often a single one, so that large values are left untouched."""
    most = chance.choice((1, 1, 2, 3, len(columns)))
    chosen = set(chance.sample([column.name for column in columns], min(len(columns), most)))
    return [column for column in columns if column.name in chosen]


def _some_set(shape: Shape, chance: Random) -> tuple[str, Row]:
    columns = _some(shape.rest, chance)
    return ", ".join(f"{c.name} = %s::{c.sql}" for c in columns), _values(columns, chance)


def _insert_of(shape: Shape, key: Row, chance: Random, *, conflict: str = "") -> Statement:
    columns = (*shape.key, *shape.rest)
    sql = f"INSERT INTO {shape.name} ({_names(columns)}) VALUES ({_places(columns)}){conflict}"
    return Statement(sql, (*key, *_values(shape.rest, chance)))


def _insert(shape: Shape, chance: Random) -> list[Statement]:
    return [_insert_of(shape, _key_of(shape, chance), chance)]


def _insert_many(shape: Shape, chance: Random) -> list[Statement]:
    columns = (*shape.key, *shape.rest)
    rows = [(*_key_of(shape, chance), *_values(shape.rest, chance)) for _ in range(chance.randint(2, 12))]
    places = ", ".join(f"({_places(columns)})" for _ in rows)
    skip = f" ON CONFLICT ({_names(shape.key)}) DO NOTHING" if shape.table.upserts else ""
    sql = f"INSERT INTO {shape.name} ({_names(columns)}) VALUES {places}{skip}"
    return [Statement(sql, tuple(value for row in rows for value in row))]


def _upsert(shape: Shape, chance: Random) -> list[Statement]:
    changed = ", ".join(f"{c.name} = excluded.{c.name}" for c in _some(shape.rest, chance))
    conflict = f" ON CONFLICT ({_names(shape.key)}) DO UPDATE SET {changed}"
    return [_insert_of(shape, _key_of(shape, chance), chance, conflict=conflict)]


def _copy(shape: Shape, chance: Random) -> list[Statement]:
    """Keys that are there first make room: COPY knows no conflict."""
    keys = list(dict.fromkeys(_key_of(shape, chance) for _ in range(chance.randint(2, 10))))
    columns = (*shape.key, *shape.rest)
    rows = tuple((*key, *_values(shape.rest, chance)) for key in keys)
    copy = Statement(f"COPY {shape.name} ({_names(columns)}) FROM STDIN", rows=rows)
    if not shape.key:
        return [copy]
    return [*(Statement(f"DELETE FROM {shape.name} WHERE {_where(shape)}", key) for key in keys), copy]


def _update(shape: Shape, chance: Random) -> list[Statement]:
    changes, values = _some_set(shape, chance)
    where, key = _one(shape, chance)
    return [Statement(f"UPDATE {shape.name} SET {changes} WHERE {where}", (*values, *key))]


def _part(shape: Shape, chance: Random) -> str:
    parts = chance.randint(2, 6)
    return f"stamp %% {parts} = {chance.randrange(parts)}"


def _one(shape: Shape, chance: Random) -> tuple[str, Row]:
    """A condition and its parameters; of a table without a key, some rows."""
    return (_where(shape), _key_of(shape, chance)) if shape.key else (_part(shape, chance), ())


def _update_many(shape: Shape, chance: Random) -> list[Statement]:
    changes, values = _some_set(shape, chance)
    return [Statement(f"UPDATE {shape.name} SET {changes} WHERE {_part(shape, chance)}", values)]


def _delete(shape: Shape, chance: Random) -> list[Statement]:
    where, key = _one(shape, chance)
    return [Statement(f"DELETE FROM {shape.name} WHERE {where}", key)]


def _delete_many(shape: Shape, chance: Random) -> list[Statement]:
    return [Statement(f"DELETE FROM {shape.name} WHERE {_part(shape, chance)}")]


def _reinsert(shape: Shape, chance: Random) -> list[Statement]:
    key = _key_of(shape, chance)
    return [Statement(f"DELETE FROM {shape.name} WHERE {_where(shape)}", key), _insert_of(shape, key, chance)]


def _moved(shape: Shape, old: Row, new: Row, chance: Random) -> Statement:
    """Often with some other columns too; nothing happens while the new key is taken."""
    more, values = _some_set(shape, chance) if chance.random() < 0.4 else ("", ())
    changes = ", ".join([f"{c.name} = %s::{c.sql}" for c in shape.key] + ([more] if more else []))
    free = f"NOT EXISTS (SELECT FROM {shape.name} WHERE {_where(shape)})"
    sql = f"UPDATE {shape.name} SET {changes} WHERE {_where(shape)} AND {free}"
    return Statement(sql, (*new, *values, *old, *new))


def _key_change(shape: Shape, chance: Random) -> list[Statement]:
    return [_moved(shape, _key_of(shape, chance), _key_of(shape, chance), chance)]


def _key_chain(shape: Shape, chance: Random) -> list[Statement]:
    """One row over several keys, sometimes back to where it began."""
    keys = [_key_of(shape, chance) for _ in range(chance.randint(3, 4))]
    keys = [*keys, keys[0]] if chance.random() < 0.4 else keys
    return [_moved(shape, old, new, chance) for old, new in pairwise(keys)]


def _key_swap(shape: Shape, chance: Random) -> list[Statement]:
    """Two rows exchange their keys over one that nobody has."""
    one, other = _key_of(shape, chance), _key_of(shape, chance)
    spare = (spare_key_text(shape.key[0].sql), *one[1:])
    steps = ((one, spare), (other, one), (spare, other))
    return [_moved(shape, old, new, chance) for old, new in steps]


def _key_taken_over(shape: Shape, chance: Random) -> list[Statement]:
    """A row moves to the key of one that was just deleted, and another takes the key it left."""
    gone, moving = _key_of(shape, chance), _key_of(shape, chance)
    delete = Statement(f"DELETE FROM {shape.name} WHERE {_where(shape)}", gone)
    found = [delete, _moved(shape, moving, gone, chance)]
    return [*found, _insert_of(shape, moving, chance)] if chance.random() < 0.4 else found


def _place_swap(shape: Shape, chance: Random) -> list[Statement]:
    """Two rows exchange a value that is unique at the end of the transaction only."""
    a, b = (key_text("integer", chance, keys=shape.table.keys) for _ in range(2))
    pair = f"id IN ({a}, {b})"
    other = f"(SELECT place FROM {shape.name} WHERE id = CASE row.id WHEN {a} THEN {b} ELSE {a} END)"
    both = f"(SELECT count(*) FROM {shape.name} WHERE {pair}) = 2"
    return [Statement(f"UPDATE {shape.name} AS row SET place = {other} WHERE {pair} AND {both}")]


def _seat_swap(shape: Shape, chance: Random) -> list[Statement]:
    """Two rows exchange their keys in one statement."""
    a, b = (key_text("integer", chance, keys=shape.table.keys) for _ in range(2))
    return [Statement(f"UPDATE {shape.name} SET id = {a} + {b} - id WHERE id IN ({a}, {b})")]


def _truncate(shape: Shape, chance: Random) -> list[Statement]:
    return [Statement(f"TRUNCATE {shape.name}")]


def _truncate_and_fill(shape: Shape, chance: Random) -> list[Statement]:
    return [Statement(f"TRUNCATE {shape.name}"), *_insert_many(shape, chance)]


_WRITERS: dict[Kind, Writer] = {
    Kind.INSERT: _insert,
    Kind.INSERT_MANY: _insert_many,
    Kind.UPSERT: _upsert,
    Kind.COPY: _copy,
    Kind.UPDATE: _update,
    Kind.UPDATE_MANY: _update_many,
    Kind.DELETE: _delete,
    Kind.DELETE_MANY: _delete_many,
    Kind.REINSERT: _reinsert,
    Kind.KEY_CHANGE: _key_change,
    Kind.KEY_CHAIN: _key_chain,
    Kind.KEY_SWAP: _key_swap,
    Kind.KEY_TAKEN_OVER: _key_taken_over,
    Kind.PLACE_SWAP: _place_swap,
    Kind.SEAT_SWAP: _seat_swap,
    Kind.TRUNCATE: _truncate,
    Kind.TRUNCATE_AND_FILL: _truncate_and_fill,
}
