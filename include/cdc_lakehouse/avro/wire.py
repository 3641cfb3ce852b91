"""What of a writer schema can be seen on the wire: its wire plan.

Two schemas that differ only in names of types, docs, defaults, logical types or `connect.*` have the
same wire plan; their records can be decoded together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from cdc_lakehouse.avro.schema_types import SchemaTypes


@dataclass(frozen=True, slots=True)
class Wire:
    """A type. Equal plans are equal values."""

    kind: str
    """A primitive, `fixed`, `enum`, `record`, `array`, `map`; `nullable` is a union of null and one other
    branch, `sole` one of a single branch, `union` any other; `recursive` is a record that contains itself
    and `again`, inside of one, the way back."""
    parts: tuple[Wire, ...] = ()
    """Types of the fields, the items, the values or the branches; the records of a `recursive`, of which
    it is the first and the others are those recursive ones that it contains."""
    names: tuple[str, ...] = ()
    """Of the fields of a record or the symbols of an enum."""
    size: int = 0
    """Bytes of a fixed; place of the null in a nullable; of an `again`, place of the record."""


NULL = Wire("null")


def wire_plan(types: SchemaTypes) -> Wire:
    """`types` come from `admit`, so they are sound.

    A record that is the root is one to the plan even where it is recursive: only what is below it and
    leads back is `recursive`.
    """
    planning, node = _Planning(types), types.resolve(types.root)
    return planning.structure(node["type"], node) if isinstance(node, dict) else planning.plan(node)


def without_text(wire: Wire) -> Wire:
    """The same bytes with texts read as bytes: what nobody wants to see need not be UTF-8.

    Keys of maps, which must differ, and recursive types are left as they are.
    """
    if wire.kind == "recursive":
        return wire
    kind = "bytes" if wire.kind == "string" else wire.kind
    return replace(wire, kind=kind, parts=tuple(map(without_text, wire.parts)))


class _Planning:
    def __init__(self, types: SchemaTypes) -> None:
        self._types = types
        self._known: dict[str, Wire] = {}
        self._places: dict[str, int] | None = None
        """Inside a recursive type: the places of the recursive records met so far."""

    def plan(self, node: Any) -> Wire:
        node = self._types.resolve(node)
        if isinstance(node, list):
            return _union(tuple(self.plan(branch) for branch in node))
        if isinstance(node, str):
            return Wire(node)
        name = node.get("name")
        if self._types.is_recursive(node):
            if self._places is None:
                return self._recursion(name)
            return Wire("again", size=self._places.setdefault(name, len(self._places)))
        if name is None or self._places is not None:
            return self.structure(node["type"], node)
        if name not in self._known:
            self._known[name] = self.structure(node["type"], node)
        return self._known[name]

    def _recursion(self, name: str) -> Wire:
        if name not in self._known:
            self._known[name] = self._plan_recursion(name)
        return self._known[name]

    def _plan_recursion(self, name: str) -> Wire:
        self._places = {name: 0}
        records: list[Wire] = []
        while len(records) < len(self._places):
            node = self._types.named[list(self._places)[len(records)]]
            records.append(self.structure(node["type"], node))
        self._places = None
        return Wire("recursive", tuple(records))

    def structure(self, kind: str, node: Any) -> Wire:
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
    if len(branches) == 1:
        return Wire("sole", branches)
    if len(branches) == 2 and branches.count(NULL) == 1:
        place = branches.index(NULL)
        return Wire("nullable", (branches[1 - place],), size=place)
    return Wire("union", branches)
