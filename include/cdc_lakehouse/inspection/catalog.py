"""The names under which tables can be queried, and where each of them lies."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from cdc_lakehouse.config.models import Pipeline
from cdc_lakehouse.lake.names import Lake

_WORD = re.compile(r"[A-Za-z0-9_]+")
_LAYERS = ("bronze", "silver")


@dataclass(frozen=True, slots=True)
class NamedTable:
    schema: str
    name: str
    uri: str

    @property
    def qualified(self) -> str:
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class Catalog:
    """`silver_shop.orders` always; `silver.orders` too while no other pipeline has a table `orders`."""

    tables: tuple[NamedTable, ...]

    @classmethod
    def of(cls, root: str, pipelines: Iterable[Pipeline]) -> Catalog:
        known = [(pipeline.name, table.name) for pipeline in pipelines for table in pipeline.tables]
        times = Counter(table for _, table in known)
        found = []
        for pipeline, table in known:
            lake = Lake(root=root, pipeline=pipeline)
            for layer, uri in zip(_LAYERS, (lake.bronze(table), lake.silver(table)), strict=True):
                if times[table] == 1:
                    found.append(NamedTable(layer, table, uri))
                found.append(NamedTable(f"{layer}_{pipeline}", table, uri))
        return cls(tuple(found))

    def mentioned(self, query: str) -> list[NamedTable]:
        """Every table that the query can possibly mean: its schema and its name both stand in it."""
        words = {word.lower() for word in _WORD.findall(query)}
        return [table for table in self.tables if table.schema in words and table.name in words]

    def close_to(self, name: str) -> str | None:
        """What somebody who wrote `name` may have meant."""
        known = [table.qualified for table in self.tables]
        wanted = name.lower()
        same_name = [found for found in known if found.rpartition(".")[2] == wanted.rpartition(".")[2]]
        same_layer = [found for found in same_name if found.startswith("silver.")] or same_name
        close = get_close_matches(wanted, known, n=1, cutoff=0.5)
        return next(iter([*same_layer, *close] if "." not in wanted else [*close, *same_layer]), None)
