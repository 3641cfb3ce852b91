"""Which named types of a schema contain themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def recursive_types(named: Mapping[str, Any]) -> frozenset[str]:
    """`named` comes from a parsed schema: names are full names."""
    return _on_cycles({name: direct_types(node, named) for name, node in named.items()})


def direct_types(node: Any, named: Mapping[str, Any]) -> set[str]:
    """Return the named types that a named type leads to without another one between."""
    return {name for name, _ in _inside(node, named)}


def endless_types(named: Mapping[str, Any]) -> frozenset[str]:
    """Those of which no value ends: there is no union, array or map on the way back to them."""
    edges = {name: {each for each, direct in _inside(node, named) if direct} for name, node in named.items()}
    return _on_cycles(edges)


def _inside(node: Any, named: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Names right inside a named type, and whether its every value holds one of them."""
    for field in node.get("fields", ()):
        yield from _names(field["type"], named, direct=True)


def _names(node: Any, named: Mapping[str, Any], *, direct: bool) -> Iterator[tuple[str, bool]]:
    if isinstance(node, list):
        for branch in node:
            yield from _names(branch, named, direct=False)
    elif isinstance(node, str):
        if node in named:
            yield node, direct
    elif "name" in node:
        yield node["name"], direct
    elif node["type"] in ("array", "map"):
        yield from _names(node["items" if node["type"] == "array" else "values"], named, direct=False)
    else:
        yield from _names(node["type"], named, direct=direct)


def _on_cycles(edges: Mapping[str, set[str]]) -> frozenset[str]:
    """Tarjan's components that are more than one name without a way back to itself; without recursion."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_names: list[str] = []
    found: set[str] = {name for name, others in edges.items() if name in others}
    for root in edges:
        if root in order:
            continue
        path: list[tuple[str, Iterator[str]]] = [(root, iter(edges[root]))]
        order[root] = lowest[root] = len(order)
        open_names.append(root)
        while path:
            name, others = path[-1]
            other = next(others, None)
            if other is None:
                path.pop()
                if path:
                    lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[name])
                if lowest[name] == order[name]:
                    found.update(_closed(name, open_names, lowest, len(edges)))
            elif other not in order:
                order[other] = lowest[other] = len(order)
                open_names.append(other)
                path.append((other, iter(edges[other])))
            else:
                lowest[name] = min(lowest[name], lowest[other])
    return frozenset(found)


def _closed(name: str, open_names: list[str], lowest: dict[str, int], beyond: int) -> list[str]:
    """Takes the component of `name` off the stack; empty when it is that name alone."""
    place = open_names.index(name)
    component = open_names[place:]
    del open_names[place:]
    for each in component:
        lowest[each] = beyond  # nobody reaches back over it any more
    return component if len(component) > 1 else []
