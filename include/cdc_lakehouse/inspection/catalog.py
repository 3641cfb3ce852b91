"""The names under which tables can be queried, and where each of them lies."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from cdc_lakehouse.config.models import Pipeline
from cdc_lakehouse.lake.names import SCHEMA_CHANGES, Lake
from cdc_lakehouse.lake.state import is_there

_WORD = re.compile(r"[A-Za-z0-9_]+")


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
    """`silver_shop.orders` always; `silver.orders` too while no other pipeline has a table `orders`.

    Those beside it have names where they are there: `silver.orders__history`, `silver.orders__tombstones`.
    So too `silver.__schema_changes`, the log of what was changed in the schemas of silver.
    """

    tables: tuple[NamedTable, ...]

    @classmethod
    def of(cls, root: str, pipelines: Iterable[Pipeline]) -> Catalog:
        known = [
            (pipeline.name, layer, name, uri)
            for pipeline in pipelines
            for layer, name, uri in _tables_of(pipeline, Lake(root=root, pipeline=pipeline.name))
        ]
        times = Counter((layer, name) for _, layer, name, _ in known)
        found = []
        for pipeline, layer, name, uri in known:
            if times[layer, name] == 1:
                found.append(NamedTable(layer, name, uri))
            found.append(NamedTable(f"{layer}_{pipeline}", name, uri))
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


def _tables_of(pipeline: Pipeline, lake: Lake) -> Iterator[tuple[str, str, str]]:
    """Layer, name, place."""
    for table in pipeline.tables:
        yield "bronze", table.name, lake.bronze(table.name)
        yield "silver", table.name, lake.silver(table.name)
        for uri in lake.beside_silver(table.name):
            if is_there(uri):
                yield "silver", uri.rpartition("/")[2], uri
    yield "silver", SCHEMA_CHANGES, lake.schema_changes
