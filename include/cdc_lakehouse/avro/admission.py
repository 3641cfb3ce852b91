"""Which writer schemas are let in: a schema is input, and may be hostile (`guarantees` §4)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import fastavro
from fastavro.schema import SchemaParseException

from cdc_lakehouse.avro.recursion import direct_types, endless_types, recursive_types
from cdc_lakehouse.avro.schema_types import SchemaTypes

MAX_SCHEMA_BYTES = 1_000_000
MAX_DEPTH = 32
MAX_FIELDS = 2_000
MAX_EXPANDED = 20_000
"""Fields with every reference written out: few names can stand for very many fields."""
MAX_BRANCHES = 100
"""Branches of a union: each is looked at for every batch, and for every item of a list of unions."""
MAX_NAME = 1_000
"""Of fields and symbols: a byte of data can stand for one."""


class SchemaRefusedError(Exception):
    """The text says which limit; the caller says which table and which schema."""


def admit(text: str) -> SchemaTypes:
    """The parsed schema, names resolved to full names, as fastavro gives it; logical types kept aside.

    Logical types do not reach fastavro: values are read raw and converted by `connect.name`, so they
    stay on each type as `logical` (`cdc-semantics` §6). Types may contain themselves where a value can end.
    """
    if len(text.encode(errors="surrogatepass")) > MAX_SCHEMA_BYTES:
        raise SchemaRefusedError(f"it is larger than {MAX_SCHEMA_BYTES} bytes")
    try:
        schema = json.loads(text)
        _check_depth(schema, left=4 * MAX_DEPTH)
        named: dict[str, Any] = {}
        parsed = fastavro.parse_schema(_without_logical_types(_unwrapped(schema)), named_schemas=named)
        shape = _Shape(named)
        shape.measure(parsed, depth=1)
        _check_ends(named)
        recursive = recursive_types(named)
        shape.check_recursion(recursive)
    except SchemaRefusedError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, SchemaParseException) as exc:
        raise SchemaRefusedError(f"it is not an Avro schema ({type(exc).__name__})") from exc
    if shape.fields > MAX_FIELDS:
        raise SchemaRefusedError(f"it has more than {MAX_FIELDS} fields")
    return SchemaTypes(parsed, named, recursive)


def _check_depth(node: Any, *, left: int) -> None:
    """JSON nesting, before any parser walks it: one type takes up to four levels of JSON."""
    if left == 0:
        raise SchemaRefusedError(f"it is nested deeper than {MAX_DEPTH}")
    for child in _children(node):
        _check_depth(child, left=left - 1)


def _children(node: Any) -> Iterator[Any]:
    if isinstance(node, dict):
        yield from node.values()
    elif isinstance(node, list):
        yield from node


def _without_logical_types(node: Any) -> Any:
    """`logicalType` becomes `logical`; defaults are never used and go (`cdc-semantics` §6)."""
    if isinstance(node, list):
        return [_without_logical_types(child) for child in node]
    if not isinstance(node, dict):
        return node
    kept = {name: value for name, value in node.items() if name not in ("default", "doc")}
    walked = {
        name: _without_logical_types(value) if name in ("type", "fields", "items", "values") else value
        for name, value in kept.items()
    }
    logical = walked.pop("logicalType", None)
    return walked if logical is None else {**walked, "logical": logical}


def _unwrapped(schema: Any) -> Any:
    """Java takes a type inside of `{"type": ...}` for that type."""
    while isinstance(schema, dict) and isinstance(schema.get("type"), (dict, list)):
        schema = schema["type"]
    return schema


class _Shape:
    """Walks a parsed schema once: nesting, number of fields, and the least bytes a value takes."""

    def __init__(self, named: dict[str, Any]) -> None:
        self._named = named
        self._known: dict[str, tuple[int, int, int]] = {}
        self._open: set[str] = set()
        self.fields = 0

    def measure(self, node: Any, *, depth: int) -> tuple[int, int, int]:
        """(least bytes, expanded fields, height); raises `SchemaRefusedError`."""
        if depth > MAX_DEPTH:
            raise SchemaRefusedError(f"it is nested deeper than {MAX_DEPTH}")
        if isinstance(node, list):
            return self._union(node, depth=depth)
        kind = node["type"] if isinstance(node, dict) else node
        if isinstance(kind, (dict, list)):
            return self.measure(kind, depth=depth)
        return self._named_or_nested(node, kind, depth=depth)

    def _named_or_nested(self, node: Any, kind: str, *, depth: int) -> tuple[int, int, int]:
        if kind in ("record", "error"):
            return self._record(node, depth=depth)
        if kind in ("array", "map"):
            return self._collection(node["items" if kind == "array" else "values"], kind, depth=depth)
        if kind in self._named:
            return self._reference(kind, depth=depth)
        if kind == "enum":
            _check_names(node["symbols"])
        if kind != "fixed":
            return _LEAST_BYTES[kind], 1, 1
        if int(node["size"]) < 0:
            raise SchemaRefusedError("it has a fixed of negative size")
        return int(node["size"]), 1, 1

    def check_recursion(self, recursive: frozenset[str]) -> None:
        """Raise `SchemaRefusedError` where recursive types expand to too many fields.

        The plan of such a type contains all that it leads to (`wire`): a hundred that lead to each other are
        ten thousand. The walk takes no more steps than the limit.
        """
        inner = {name: direct_types(self._named[name], self._named) & recursive for name in recursive}
        expanded = 0
        for root in recursive:
            waiting, seen = [root], {root}
            while waiting:
                name = waiting.pop()
                expanded += self._known[name][1] if name in self._known else 1
                if expanded > MAX_EXPANDED:
                    raise SchemaRefusedError(f"its recursive types stand for more than {MAX_EXPANDED} fields")
                waiting += inner[name] - seen
                seen |= inner[name]

    def _union(self, branches: list[Any], *, depth: int) -> tuple[int, int, int]:
        if not branches:
            raise SchemaRefusedError("it has a union without branches")
        if len(branches) > MAX_BRANCHES:
            raise SchemaRefusedError(f"it has a union of more than {MAX_BRANCHES} branches")
        if any(isinstance(branch, list) for branch in branches) or branches.count("null") > 1:
            raise SchemaRefusedError("it has a union in a union, or null twice in one")
        parts = [self.measure(branch, depth=depth) for branch in branches]
        expanded = sum(part[1] for part in parts)
        _check_expanded(expanded)
        return 1, expanded, max(part[2] for part in parts)

    def _record(self, node: Any, *, depth: int) -> tuple[int, int, int]:
        name = node["name"]
        names = [field["name"] for field in node["fields"]]
        _check_names(names)
        if len(set(names)) < len(names):
            raise SchemaRefusedError("it has a record with two fields of one name")
        self._open.add(name)
        self.fields += len(names)
        parts = [self.measure(field["type"], depth=depth + 1) for field in node["fields"]]
        self._open.discard(name)
        expanded = 1 + sum(part[1] for part in parts)
        _check_expanded(expanded)
        height = 1 + max((part[2] for part in parts), default=0)
        self._known[name] = sum(part[0] for part in parts), expanded, height
        return self._known[name]

    def _collection(self, item: Any, kind: str, *, depth: int) -> tuple[int, int, int]:
        least, expanded, height = self.measure(item, depth=depth + 1)
        if kind == "array" and least == 0:
            raise SchemaRefusedError("it has an array whose items take no bytes")
        return 1, expanded + 1, height + 1

    def _reference(self, name: str, *, depth: int) -> tuple[int, int, int]:
        if name in self._open:
            return 1, 1, 1  # text, and what leads back here takes a byte at least, or it is endless
        if name not in self._known:
            return self.measure(self._named[name], depth=depth)
        if depth + self._known[name][2] - 1 > MAX_DEPTH:
            raise SchemaRefusedError(f"it is nested deeper than {MAX_DEPTH}")
        return self._known[name]


def _check_ends(named: dict[str, Any]) -> None:
    if endless_types(named):
        raise SchemaRefusedError("it is recursive without end: a record contains itself in every value")


def _check_names(names: list[str]) -> None:
    if any(len(name) > MAX_NAME for name in names):
        raise SchemaRefusedError(f"it has a name of more than {MAX_NAME} characters")
    if any("\ud800" <= character <= "\udfff" for name in names for character in name):
        raise SchemaRefusedError("it has a name with half a surrogate pair, which is no text")


def _check_expanded(fields: int) -> None:
    if fields > MAX_EXPANDED:
        raise SchemaRefusedError(f"its references stand for more than {MAX_EXPANDED} fields")


_LEAST_BYTES = {
    "null": 0,
    "boolean": 1,
    "int": 1,
    "long": 1,
    "float": 4,
    "double": 8,
    "bytes": 1,
    "string": 1,
    "enum": 1,
}
