"""Do two texts say the same schema?"""

from __future__ import annotations

import json
from typing import Any

_NAMED = frozenset({"record", "error", "enum", "fixed"})
_PRIMITIVE = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_UNNAMED = _PRIMITIVE | {"array", "map"}
_WITHOUT_MEANING = frozenset({"doc", "aliases"})


def same_schema(one: str, other: str) -> bool:
    """Spacing, order of attributes, comments and short forms may differ: a registry may print anew."""
    if one == other:
        return True
    try:
        return bool(_meaning(json.loads(one), "") == _meaning(json.loads(other), ""))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return False  # one of them is no schema at all, and they differ


def _meaning(node: Any, namespace: str) -> Any:
    if isinstance(node, str):
        return _full_name(node, namespace)
    if isinstance(node, list):
        return [_meaning(branch, namespace) for branch in node]
    if not isinstance(node, dict):
        return node
    kept = {name: value for name, value in node.items() if name not in _WITHOUT_MEANING}
    if _defines_a_name(kept.get("type")):
        kept["name"] = _full_name(kept["name"], kept.pop("namespace", namespace))
        namespace = kept["name"].rpartition(".")[0]
    elif kept.keys() == {"type"}:
        return _meaning(kept["type"], namespace)
    for place in ("type", "items", "values"):
        if place in kept and not _defines_a_name(kept[place]):
            kept[place] = _meaning(kept[place], namespace)
    if "fields" in kept:
        kept["fields"] = [_field(field, namespace) for field in kept["fields"]]
    return kept


def _field(field: dict[str, Any], namespace: str) -> dict[str, Any]:
    """A field has a name of its own, not that of a type."""
    kept = {name: value for name, value in field.items() if name not in _WITHOUT_MEANING}
    return {**kept, "type": _meaning(field["type"], namespace)}


def _defines_a_name(type_: Any) -> bool:
    return isinstance(type_, str) and type_ in _NAMED


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace or name in _UNNAMED else f"{namespace}.{name}"
