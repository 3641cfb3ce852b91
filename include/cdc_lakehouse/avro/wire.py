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
    return _Planning(named).plan(root)


class _Planning:
    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._known: dict[str, Wire] = {}

    def plan(self, node: Any) -> Wire:
        if isinstance(node, list):
            return _union(tuple(self.plan(branch) for branch in node))
        kind = node["type"] if isinstance(node, dict) else node
        if isinstance(kind, (dict, list)):
            return self.plan(kind)
        if kind in self._named:
            if kind not in self._known:
                self._known[kind] = self.plan(self._named[kind])
            return self._known[kind]
        return self._structure(kind, node)

    def _structure(self, kind: str, node: Any) -> Wire:
        match kind:
            case "record" | "error":
                fields = node["fields"]
                types = tuple(self.plan(field["type"]) for field in fields)
                wire = Wire("record", types, tuple(field["name"] for field in fields))
            case "array" | "map":
                wire = Wire(kind, (self.plan(node["items" if kind == "array" else "values"]),))
            case "enum":
                wire = Wire(kind, names=tuple(node["symbols"]))
            case "fixed":
                wire = Wire(kind, size=int(node["size"]))
            case _:
                wire = Wire(kind)
        return wire


def _union(branches: tuple[Wire, ...]) -> Wire:
    null = Wire("null")
    if len(branches) == 2 and branches.count(null) == 1:
        place = branches.index(null)
        return Wire("nullable", (branches[1 - place],), size=place)
    return Wire("union", branches)
