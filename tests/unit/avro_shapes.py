"""Random Avro schemas, values of them as fastavro takes them, and the same values as columns give them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

from hypothesis import strategies as st


@dataclass(frozen=True)
class Shape:
    """A type: its schema, and pairs of (what fastavro writes, what a column of it holds)."""

    schema: Any
    values: st.SearchStrategy[tuple[Any, Any]]
    least: int = 1
    """Bytes that a value takes at least."""


def _plain(kind: str, values: st.SearchStrategy[Any], least: int = 1) -> Shape:
    return Shape(kind, values.map(lambda value: (value, value)), least)


def _float32(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


PRIMITIVES = [
    _plain("null", st.none(), 0),
    _plain("boolean", st.booleans()),
    _plain("int", st.integers(-(2**31), 2**31 - 1) | st.integers(-70, 70)),
    _plain("long", st.integers(-(2**63), 2**63 - 1) | st.integers(-70, 70)),
    _plain("float", st.floats(width=32, allow_nan=False).map(_float32)),
    _plain("double", st.floats(allow_nan=False)),
    _plain("bytes", st.binary(max_size=20)),
    _plain("string", st.text(max_size=12)),
]


@st.composite
def shapes(draw: st.DrawFn, depth: int = 3, names: Callable[[], int] | None = None) -> Shape:
    names = names or count().__next__
    simple = ["primitive"] * 3 + ["enum", "fixed"]
    nested = ["nullable", "nullable", "array", "map", "record", "union", "again"]
    kind = draw(st.sampled_from(simple if depth == 0 else simple + nested))
    if kind in ("record", "again"):
        return draw(records(depth - 1, names))
    if kind in ("primitive", "enum", "fixed", "union"):
        return draw(_simple(kind, names))
    inner = draw(shapes(depth - 1, names))
    if kind == "nullable":
        return _nullable(inner, draw(st.booleans()))
    if inner.least == 0 and kind == "array":
        return inner
    return _array(inner) if kind == "array" else _map(inner)


@st.composite
def _simple(draw: st.DrawFn, kind: str, names: Callable[[], int]) -> Shape:
    if kind == "union":
        return _union(draw(st.permutations(PRIMITIVES))[: draw(st.integers(3, 5))])
    if kind == "enum":
        symbols = [f"S{place}" for place in range(draw(st.integers(1, 100)))]
        return _named({"type": "enum", "symbols": symbols}, names, st.sampled_from(symbols), 1)
    if kind == "fixed":
        size = draw(st.integers(1, 20))
        return _named({"type": "fixed", "size": size}, names, st.binary(min_size=size, max_size=size), size)
    return draw(st.sampled_from(PRIMITIVES))


def _named(schema: Any, names: Callable[[], int], values: st.SearchStrategy[Any], least: int) -> Shape:
    return Shape({**schema, "name": f"N{names()}"}, values.map(lambda value: (value, value)), least)


@st.composite
def records(draw: st.DrawFn, depth: int = 3, names: Callable[[], int] | None = None) -> Shape:
    names = names or count().__next__
    fields = draw(st.lists(shapes(depth, names), max_size=5))
    schema = {
        "type": "record",
        "name": f"R{names()}",
        "fields": [{"name": f"f{place}", "type": each.schema} for place, each in enumerate(fields)],
    }

    def sides(pairs: tuple[tuple[Any, Any], ...]) -> tuple[Any, Any]:
        written, read = ({f"f{place}": pair[side] for place, pair in enumerate(pairs)} for side in (0, 1))
        return written, read

    least = sum(each.least for each in fields)
    return Shape(schema, st.tuples(*(each.values for each in fields)).map(sides), least)


def _nullable(inner: Shape, null_first: bool) -> Shape:
    if inner.schema == "null" or isinstance(inner.schema, list):
        return inner
    schema = ["null", inner.schema] if null_first else [inner.schema, "null"]
    return Shape(schema, st.just((None, None)) | inner.values)


def _union(branches: list[Shape]) -> Shape:
    kept = [branch for branch in branches if branch.schema != "null"]

    def member(place: int, pair: tuple[Any, Any]) -> tuple[Any, Any]:
        members = {f"member{other}": None for other in range(len(kept))}
        return (kept[place].schema, pair[0]), {**members, f"member{place}": pair[1]}

    choices: list[st.SearchStrategy[Any]] = [
        branch.values.map(partial(member, place)) for place, branch in enumerate(kept)
    ]
    if len(kept) < len(branches):
        choices.append(st.just((None, None)))
    return Shape([branch.schema for branch in branches], st.one_of(choices))


def _array(item: Shape) -> Shape:
    return Shape(
        {"type": "array", "items": item.schema},
        st.lists(item.values, max_size=4).map(
            lambda pairs: ([pair[0] for pair in pairs], [pair[1] for pair in pairs])
        ),
    )


def _map(value: Shape) -> Shape:
    return Shape(
        {"type": "map", "values": value.schema},
        st.dictionaries(st.text(max_size=5), value.values, max_size=4).map(
            lambda entries: (
                {key: pair[0] for key, pair in entries.items()},
                [(key, pair[1]) for key, pair in entries.items()],
            )
        ),
    )
