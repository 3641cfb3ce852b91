"""Writer schemas for `decode_frames`, with records of each: logical types, nesting, recursion, versions."""

from __future__ import annotations

from typing import Any

from avro_typed_shapes import (  # type: ignore[import-not-found]
    BYTES,
    FLAGS,
    NAMED,
    NUMBERS,
    REALS,
    TEXTS,
    logical,
)

DECIMAL = logical("bytes", "decimal", precision=20, scale=3)
DAY, MOMENT = logical("int", "date"), logical("long", "timestamp-millis")


def record(name: str, **fields: Any) -> dict[str, Any]:
    listed = [{"name": field, "type": node} for field, node in fields.items()]
    return {"type": "record", "name": name, "fields": listed}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def map_of(values: Any) -> dict[str, Any]:
    return {"type": "map", "values": values}


def fixed(name: str, size: int, **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size, **more}


_KINDS = [node for node, _ in (*NUMBERS, *REALS, *TEXTS, *BYTES, *FLAGS)]
_NAMED = [{**node, "name": f"N{place}"} for place, (node, _) in enumerate(NAMED)]
LOGICAL = record(
    "L",
    **{f"f{place}": node for place, node in enumerate([*_KINDS, *_NAMED])},
    **{f"n{place}": ["null", node] for place, node in enumerate(_KINDS)},
    **{f"m{place}": [node["name"], "null"] for place, node in enumerate(_NAMED)},
)
NODE = record(
    "Node",
    value="bytes",
    next=["null", "Node"],
    kids=array("Node"),
    more=map_of(["Node", "string", "null"]),
)
TYPED = record(
    "T",
    a=[MOMENT, array(DECIMAL), "null"],
    b=map_of(["null", fixed("Uuid", 16, logicalType="uuid")]),
    c=["null", NODE],
    d=array(["null", DAY]),
    e=[record("Nil"), "string", "Node", map_of(["null", "string", "int"])],
    f=array(fixed("Span", 12, logicalType="duration")),
    g=["null", record("Inner", x=logical("string", "uuid"), y=["null", "float"])],
)
_LEAF: dict[str, Any] = {"value": b"\x00\xff", "next": None, "kids": [], "more": {}}
_INNER = {"x": "89791762-2336-4186-9674-299b90a802e2", "y": 0.5}
TYPED_VALUES: list[Any] = [
    {"a": 1, "b": {"x": b"0123456789abcdef"}, "c": _LEAF, "d": [7, None], "e": ("Nil", {}), "f": [],
     "g": None},
    {"a": [b"\x07", b"\x00\xff"], "b": {}, "c": None, "d": [], "e": "text", "f": [bytes(12)], "g": _INNER},
    {"a": None, "b": {"": None}, "c": {**_LEAF, "next": _LEAF, "kids": [_LEAF]}, "d": [1] * 40,
     "e": ("Node", {**_LEAF, "more": {"k": "x", "n": None}}), "f": [b"\x01\x00\x00\x00" * 3] * 2, "g": None},
    {"a": 2, "b": {}, "c": None, "d": [], "e": {"a": None, "b": "x", "c": 7}, "f": [],
     "g": {**_INNER, "y": None}},
]  # fmt: skip
RECURSIVE = record(
    "All",
    n="int",
    d=["null", "double", "float", "long", "boolean"],
    t=["string", {"type": "enum", "name": "E", "symbols": ["a", "b"]}, fixed("F", 2)],
    m=map_of(["null", "All", array("double")]),
    k=array(["null", "All", record("Pair", l="All", r=["null", "Pair"])]),
)
_ALL: dict[str, Any] = {"n": 1, "d": None, "t": 'é"\\\n', "m": {}, "k": []}
RECURSIVE_VALUES: list[Any] = [
    _ALL,
    {**_ALL, "d": 1.5, "m": {"a": None, "b": [0.5, float("nan"), -0.0, 1e300]}, "k": [None, ("All", _ALL)]},
    {**_ALL, "t": ("E", "b"), "m": {"x": ("All", _ALL)},
     "k": [("Pair", {"l": _ALL, "r": {"l": _ALL, "r": None}})]},
    {**_ALL, "t": ("F", b"ab"), "d": True, "m": {"y": [float("inf")]}},
]  # fmt: skip
NESTED = record(
    "R",
    a=array(map_of(["null", "string", "int"])),
    b=[array(["null", "long"]), "null", "bytes"],
    c=["int"],
    d=array(["null", record("Wide", **{f"w{place}": "int" for place in range(20)})]),
    e=map_of(array(map_of("boolean"))),
)
NESTED_VALUES: list[Any] = [
    {"a": [{"x": None, "y": "z"}, {}], "b": [1, None], "c": 1, "d": [None], "e": {"k": [{"t": True}, {}]}},
    {"a": [], "b": b"xy", "c": -1, "d": [{f"w{place}": place for place in range(20)}, None], "e": {}},
    {"a": [{"x": 3}], "b": None, "c": 2**31 - 1, "d": [None] * 30, "e": {"": []}},
    bytes.fromhex("00 02 0002 00 04 026b00 026b00 00"),  # the key k twice in `e`, which nobody can write
]  # fmt: skip
TINY = logical("bytes", "decimal", precision=20_000, scale=16_383)
EXPANDING = record(
    "X",
    n=array(TINY),
    d=["null", TINY],
    s=array({"type": "enum", "name": "Long", "symbols": ["x" * 1000, "y"]}),
    r=array(["null", record("Far", **{f"r{place}": "string" for place in range(400)})]),
)
"""A byte, or two, stand for thousands."""
EXPANDING_VALUES: list[Any] = [
    {"n": [b"\x07"] * 3, "d": b"\x00", "s": ["y"], "r": []},
    {"n": [b"\x07"] * 4, "d": None, "s": ["x" * 1000] * 200, "r": [None]},
    {"n": [], "d": b"\xff" * 900, "s": [], "r": [None] * 60},
]
OLD = record("V", a="int", b="float", c="string", d=logical("bytes", "decimal", precision=6, scale=2),
             n=record("In", x=["null", "int"]), l=array("int"))  # fmt: skip
NEW = record("V", c=["null", "string"], a=["null", "long"], n=record("In", y="string", x="long"),
             b="double", d=["null", logical("bytes", "decimal", precision=30, scale=2)], l=array("long"),
             z=DAY)  # fmt: skip
OTHER = record("V", a="string", c="bytes", n=array("int"), l=array(array("int")), d="float")
"""Its types do not meet those of the others."""
OLD_VALUE = {"a": 1, "b": 0.5, "c": "x", "d": b"\x07", "n": {"x": 1}, "l": [1, 2]}
NEW_VALUE = {"c": "x", "a": 2**40, "n": {"y": "", "x": 5}, "b": 1.5, "d": b"\x01" * 10, "l": [2**50], "z": 9}
OTHER_VALUE = {"a": "x", "c": b"x", "n": [], "l": [[1]], "d": 0.5}


def plain_value(node: Any) -> Any:
    """A value of a type of `LOGICAL`."""
    if isinstance(node, list):
        return None
    kind = node if isinstance(node, str) else node["type"]
    if kind == "fixed":
        return bytes(node["size"])
    if kind == "string" and node != "string":
        return _INNER["x"]
    plain = {"float": 0.5, "double": -1e300, "string": "é", "bytes": b"\x07", "boolean": True, "enum": "b"}
    return plain.get(kind, 3)


def _filled(nullable: bool) -> dict[str, Any]:
    by_name = {node["name"]: node for node in _NAMED}
    values = {}
    for field in LOGICAL["fields"]:
        node = field["type"]
        if isinstance(node, list) and not nullable:
            node = next(branch for branch in node if branch != "null")
            node = by_name.get(node, node) if isinstance(node, str) else node
        values[field["name"]] = plain_value(node)
    return values


LOGICAL_VALUES = [_filled(True), _filled(False)]
