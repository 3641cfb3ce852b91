"""Schemas that name types of other schemas, written out as one text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

_NAMED = frozenset({"record", "error", "enum", "fixed"})


def with_references(text: str, referenced: Sequence[str]) -> str:
    """`text` with each referenced type defined where it is first named; as it is without references."""
    if not referenced:
        return text
    known: dict[str, Any] = {}
    for each in referenced:
        _collect(json.loads(each), known, namespace="")
    return json.dumps(_inlined(json.loads(text), known, namespace=""))


def _collect(node: Any, known: dict[str, Any], *, namespace: str) -> None:
    """Top-level named types; a union at the top lists several."""
    for branch in node if isinstance(node, list) else [node]:
        if isinstance(branch, dict) and branch.get("type") in _NAMED:
            known.setdefault(_full_name(branch, namespace), branch)


def _full_name(node: Any, namespace: str) -> str:
    name, own = node["name"], node.get("namespace", namespace)
    return name if "." in name or not own else f"{own}.{name}"


def _inlined(node: Any, known: dict[str, Any], *, namespace: str) -> Any:
    """Takes each definition out of `known` when it is used: later mentions stay names."""
    if isinstance(node, str):
        for name in (f"{namespace}.{node}", node):
            if name in known:
                definition = known.pop(name)
                return _inlined({**definition, "name": name, "namespace": ""}, known, namespace="")
        return node
    if isinstance(node, list):
        return [_inlined(branch, known, namespace=namespace) for branch in node]
    if not isinstance(node, dict):
        return node
    if node.get("type") in _NAMED:
        namespace = _full_name(node, namespace).rpartition(".")[0]
        known.pop(_full_name(node, namespace), None)
    inlined = {
        place: _inlined(node[place], known, namespace=namespace)
        for place in ("type", "items", "values")
        if place in node
    }
    if "fields" in node:
        inlined["fields"] = [
            {**field, "type": _inlined(field["type"], known, namespace=namespace)} for field in node["fields"]
        ]
    return {**node, **inlined}
