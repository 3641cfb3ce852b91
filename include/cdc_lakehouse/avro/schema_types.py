"""The types of one schema, as they refer to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False, slots=True)
class SchemaTypes:
    """`root` and `named` keep `connect.*` attributes and `logical` for whoever gives values a meaning."""

    root: Any
    named: Mapping[str, Any]
    """Definitions by full name."""
    recursive: frozenset[str]
    """Names of records that contain themselves."""

    def resolve(self, node: Any) -> Any:
        """The type that a name stands for; any other type as it is, without a dict around it."""
        while True:
            if isinstance(node, str) and node in self.named:
                node = self.named[node]
            elif isinstance(node, dict) and isinstance(node["type"], (dict, list)):
                node = node["type"]
            elif isinstance(node, dict) and node["type"] in self.named:
                node = self.named[node["type"]]
            else:
                return node

    def is_recursive(self, node: Any) -> bool:
        """Of a resolved type."""
        return isinstance(node, dict) and node.get("name") in self.recursive
