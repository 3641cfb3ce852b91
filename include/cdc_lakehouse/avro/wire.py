"""What of a writer schema can be seen on the wire: its wire plan.

Two schemas that differ only in names of types, docs, defaults, logical types or `connect.*` have the
same wire plan; their records can be decoded together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Wire:
    """A type. Equal plans are equal values."""

    kind: str
    """A primitive, `fixed`, `enum`, `record`, `array`, `map`, `union`; `nullable` is a union of null and
    one other branch."""
    parts: tuple[Wire, ...] = ()
    """Types of the fields, the items, the values or the branches."""
    names: tuple[str, ...] = ()
    """Of the fields of a record or the symbols of an enum."""
    size: int = 0
    """Bytes of a fixed; place of the null in a nullable."""


def wire_plan(root: Any, named: Mapping[str, Any]) -> Wire:
    """`root` and `named` come from `admit`, so they are sound, finite and not recursive."""
    known: dict[str, Wire] = {}

    def plan(node: Any) -> Wire:
        if isinstance(node, list):
            return _union(tuple(plan(branch) for branch in node))
        kind = node["type"] if isinstance(node, dict) else node
        if isinstance(kind, (dict, list)):
            return plan(kind)
        if isinstance(kind, str) and kind in named:
            if kind not in known:
                known[kind] = plan(named[kind])
            return known[kind]
        match kind:
            case "record" | "error":
                fields = node["fields"]
                types = tuple(plan(field["type"]) for field in fields)
                return Wire("record", types, tuple(field["name"] for field in fields))
            case "array":
                return Wire("array", (plan(node["items"]),))
            case "map":
                return Wire("map", (plan(node["values"]),))
            case "enum":
                return Wire("enum", names=tuple(node["symbols"]))
            case "fixed":
                return Wire("fixed", size=int(node["size"]))
        return Wire(kind)

    return plan(root)


def _union(branches: tuple[Wire, ...]) -> Wire:
    null = Wire("null")
    if len(branches) == 2 and branches.count(null) == 1:
        place = branches.index(null)
        return Wire("nullable", (branches[1 - place],), size=place)
    return Wire("union", branches)
