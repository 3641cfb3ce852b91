"""Random schemas, and values of them for fastavro to write."""

from __future__ import annotations

from itertools import count
from typing import Any

from hypothesis import strategies as st

INT, LONG = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
DAYS = st.integers(-719_162, 2_932_896)
SECONDS = st.integers(-62_135_596_800, 253_402_300_799)


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


def unscaled(precision: int, size: int | None = None) -> st.SearchStrategy[bytes]:
    limit = 10**precision - 1

    def encoded(number: int) -> bytes:
        return number.to_bytes(size or (number.bit_length() + 8) // 8, "big", signed=True)

    return st.integers(-limit, limit).map(encoded)


def per_second(parts: int) -> st.SearchStrategy[int]:
    return st.builds(lambda second, part: second * parts + part, SECONDS, st.integers(0, parts - 1))


Drawn = tuple[Any, st.SearchStrategy[Any]]

NUMBERS: list[Drawn] = [
    ("int", INT),
    ("long", LONG),
    (logical("int", "date"), DAYS),
    (logical("int", "time-millis"), st.integers(0, 86_399_999)),
    (logical("long", "time-micros"), st.integers(0, 86_399_999_999)),
    (logical("long", "timestamp-millis"), per_second(1_000)),
    (logical("long", "timestamp-micros"), per_second(1_000_000)),
    (logical("long", "timestamp-nanos"), st.integers(-(2**62), 2**62)),
    (logical("long", "local-timestamp-millis"), per_second(1_000)),
    (logical("long", "local-timestamp-micros"), per_second(1_000_000)),
    (logical("long", "local-timestamp-nanos"), st.integers(-(2**62), 2**62)),
    (logical("long", "parsecs"), LONG),
    (logical("long", "date"), LONG),
]
REALS: list[Drawn] = [
    ("float", st.floats(width=32, allow_nan=False)),
    ("double", st.floats(allow_nan=False)),
]
TEXTS: list[Drawn] = [
    ("string", st.text(max_size=8)),
    (logical("string", "uuid"), st.uuids().map(str)),
]
BYTES: list[Drawn] = [
    ("bytes", st.binary(max_size=8)),
    (logical("bytes", "decimal", precision=9, scale=2), unscaled(9)),
    (logical("bytes", "decimal", precision=38, scale=0), unscaled(38)),
    (logical("bytes", "decimal", precision=60, scale=7), unscaled(60)),
]
FLAGS: list[Drawn] = [("boolean", st.booleans())]
NAMED: list[Drawn] = [
    ({"type": "enum", "symbols": ["a", "b", "c"]}, st.sampled_from("abc")),
    ({"type": "fixed", "size": 3}, st.binary(min_size=3, max_size=3)),
    ({"type": "fixed", "size": 0}, st.just(b"")),
    ({"type": "fixed", "size": 16, "logicalType": "uuid"}, st.binary(min_size=16, max_size=16)),
    ({"type": "fixed", "size": 12, "logicalType": "duration"}, st.binary(min_size=12, max_size=12)),
    ({"type": "fixed", "size": 9, "logicalType": "decimal", "precision": 20, "scale": 4}, unscaled(20, 9)),
]
CATEGORIES = [NUMBERS, REALS, TEXTS, BYTES, FLAGS]
"""In a union one of each: what is read says which branch it was."""


class Drawing:
    """Schemas of one document: names are used once and referred to later."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw, self.numbers = draw, count()
        # A name without a space would be in that of the type around it.
        self.spaces = draw(st.sampled_from([[""], ["space.", "other.space."]]))
        self.known: dict[str, st.SearchStrategy[Any]] = {}

    def name(self) -> str:
        return self.draw(st.sampled_from(self.spaces)) + f"N{next(self.numbers)}"

    def type(self, depth: int) -> Drawn:
        kinds = ["leaf"] * 4 + ["named", "null"]
        if depth > 0:
            kinds += ["nullable"] * 3 + ["array", "map", "record", "record", "union", "union", "recursive"]
        if self.known:
            kinds.append("reference")
        kind = self.draw(st.sampled_from(kinds))
        found: Drawn = getattr(self, kind)(depth)
        return found

    def leaf(self, _depth: int) -> Drawn:
        found: Drawn = self.draw(st.sampled_from(self.draw(st.sampled_from(CATEGORIES))))
        return found

    def named(self, _depth: int) -> Drawn:
        return self.named_as(*self.draw(st.sampled_from(NAMED)))

    def null(self, _depth: int) -> Drawn:
        return "null", st.none()

    def named_as(self, schema: Any, values: st.SearchStrategy[Any]) -> Drawn:
        name = self.name()
        self.known[name] = values
        return {**schema, "name": name}, values

    def reference(self, _depth: int) -> Drawn:
        name = self.draw(st.sampled_from(sorted(self.known)))
        return name, self.known[name]

    def nullable(self, depth: int) -> Drawn:
        schema, values = self.type(depth - 1)
        if schema == "null" or isinstance(schema, list):
            return schema, values
        branches = ["null", schema] if self.draw(st.booleans()) else [schema, "null"]
        return branches, st.none() | values

    def union(self, depth: int) -> Drawn:
        categories = self.draw(st.permutations(CATEGORIES))[: self.draw(st.integers(0, 3))]
        leaves = [("null", st.none()), *(self.draw(st.sampled_from(category)) for category in categories)]
        # Their order stays: the later ones may refer to names of the earlier ones.
        others = [self.record(depth - 1), self.record(depth - 1), self.array(depth - 1), self.map(depth - 1)]
        leaves = self.draw(st.permutations(leaves))
        kept = [*leaves, *others] if self.draw(st.booleans()) else [*others, *leaves]
        values = [hinted(schema, each) for schema, each in kept]
        return [schema for schema, _ in kept], st.one_of(values)

    def array(self, depth: int) -> Drawn:
        schema, values = self.type(max(0, depth - 1))
        if schema == "null":
            schema, values = "int", INT
        elif least(schema) == 0:
            schema, values = ["null", schema], st.none() | values
        return {"type": "array", "items": schema}, st.lists(values, max_size=3)

    def map(self, depth: int) -> Drawn:
        schema, values = self.type(max(0, depth - 1))
        return {"type": "map", "values": schema}, st.dictionaries(st.text(max_size=3), values, max_size=3)

    def record(self, depth: int) -> Drawn:
        fields = {f"f{place}": self.type(max(0, depth - 1)) for place in range(self.draw(st.integers(0, 4)))}
        listed = [{"name": name, "type": schema} for name, (schema, _) in fields.items()]
        values = st.fixed_dictionaries({name: each for name, (_, each) in fields.items()})
        return self.named_as({"type": "record", "fields": listed}, values)

    def recursive(self, _depth: int) -> Drawn:
        name, (schema, values) = self.name(), self.leaf(0)
        node = {
            "type": "record",
            "name": name,
            "fields": [
                {"name": "value", "type": schema},
                {"name": "next", "type": ["null", name]},
                {"name": "kids", "type": {"type": "array", "items": name}},
                {"name": "more", "type": {"type": "map", "values": [name, "string", "null"]}},
            ],
        }
        end: dict[str, Any] = {"next": None, "kids": [], "more": {}}

        def around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
            link = inner.map(lambda value: (name, value))
            return st.fixed_dictionaries(
                {
                    "value": values,
                    "next": st.none() | link,
                    "kids": st.lists(inner, max_size=2),
                    "more": st.dictionaries(
                        st.text(max_size=2), st.none() | link | st.just(("string", "x")), max_size=2
                    ),
                }
            )

        nodes = st.recursive(values.map(lambda value: {"value": value, **end}), around, max_leaves=4)
        self.known[name] = nodes
        return node, nodes


def hinted(schema: Any, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Which branch to write; fastavro finds those without a name by the value."""
    name = schema.get("name") if isinstance(schema, dict) else schema
    named = name is not None and (name.startswith("N") or "." in name)
    return values.map(lambda value: (name, value)) if named else values


def least(schema: Any) -> int:
    """0 where a value may take no bytes; a reference may."""
    if isinstance(schema, str):
        return 0 if schema == "null" or schema[:1].isupper() or "." in schema else 1
    if isinstance(schema, list):
        return 1
    if schema["type"] == "record":
        return max((least(field["type"]) for field in schema["fields"]), default=0)
    return int(schema.get("size", 1))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, list[Any]]:
    """A schema of any type, and values to write."""
    drawing = Drawing(draw)
    schema, values = drawing.type(3) if draw(st.integers(0, 5)) == 0 else drawing.record(3)
    return schema, draw(st.lists(values, min_size=1, max_size=4))


WIDER = {"int": "long", "float": "double"}


@st.composite
def versions(draw: st.DrawFn) -> list[tuple[Any, list[Any]]]:
    """Two versions of a record: fields come and go, move, and some get a wider type."""
    drawing = Drawing(draw)
    fields = {}
    for place in range(draw(st.integers(1, 4))):
        fields[f"f{place}"] = drawing.type(2)
        drawing.known.clear()  # no reference to what another version may not have
    found = []
    for version in (0, 1):
        names = draw(st.permutations(sorted(fields)))[: draw(st.integers(0, len(fields)))]
        listed, values = [], {}
        for name in names:
            schema, each = fields[name]
            wider = WIDER.get(schema) if isinstance(schema, str) else None
            listed.append({"name": name, "type": wider if wider and version else schema})
            values[name] = each
        record = {"type": "record", "name": "R", "fields": listed}
        found.append((record, draw(st.lists(st.fixed_dictionaries(values), min_size=1, max_size=3))))
    return found
