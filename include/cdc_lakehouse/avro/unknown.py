"""Schemas that the plans of a batch do not hold: raised by a worker, read back on the driver."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from cdc_lakehouse.avro.schema_refs import SchemaRef, in_order

_MARKER = re.compile(r"unknown-schema-ids\[keys=([\da-f,-]*);values=([\da-f,-]*)\]")


class UnknownSchemaIdsError(Exception):
    """Fails the whole batch (`guarantees` §2.5): the driver fetches the schemas and runs it again.

    The text is the interface: it survives the trip through the JVM inside a `PythonException`.
    """

    def __init__(self, keys: Iterable[SchemaRef], values: Iterable[SchemaRef]) -> None:
        self.keys, self.values = frozenset(keys), frozenset(values)
        super().__init__(f"unknown-schema-ids[keys={_joined(self.keys)};values={_joined(self.values)}]")

    def __reduce__(
        self,
    ) -> tuple[type[UnknownSchemaIdsError], tuple[frozenset[SchemaRef], frozenset[SchemaRef]]]:
        return UnknownSchemaIdsError, (self.keys, self.values)


@dataclass(frozen=True, slots=True)
class UnknownIds:
    """Ids by the place where they were seen."""

    keys: frozenset[SchemaRef]
    values: frozenset[SchemaRef]


def unknown_ids_by_place(text: str) -> UnknownIds:
    """All ids named by markers anywhere in `text`; both sets empty when there is no marker."""
    found = _MARKER.findall(text)
    return UnknownIds(
        keys=frozenset(ref for keys, _ in found for ref in _refs(keys)),
        values=frozenset(ref for _, values in found for ref in _refs(values)),
    )


def unknown_ids(text: str) -> frozenset[SchemaRef]:
    """Empty for the text of any other failure."""
    found = unknown_ids_by_place(text)
    return found.keys | found.values


def _joined(refs: Iterable[SchemaRef]) -> str:
    return ",".join(str(ref) for ref in in_order(refs))


def _refs(text: str) -> list[SchemaRef]:
    return [UUID(each) if "-" in each else int(each) for each in text.split(",") if each]
