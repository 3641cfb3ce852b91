"""What a registry says of schemas, as plain values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Self
from uuid import UUID

from cdc_lakehouse.avro.schema_refs import SchemaRef

VersionsByRef = Mapping[SchemaRef, int | None]
"""Version of the subject by schema; None for one that was met in a record and belongs to no subject."""


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a subject. `text` has its references written in."""

    subject: str
    number: int
    ref: SchemaRef
    text: str


@dataclass(frozen=True, slots=True)
class TopicVersions:
    """Which schemas the records of a topic have, those of keys and of values apart."""

    keys: VersionsByRef = field(default_factory=dict)
    values: VersionsByRef = field(default_factory=dict)

    @property
    def refs(self) -> frozenset[SchemaRef]:
        return frozenset(self.keys) | frozenset(self.values)

    @property
    def newest_value(self) -> int:
        return max((number for number in self.values.values() if number is not None), default=0)

    def only(self, refs: Collection[SchemaRef]) -> Self:
        return replace(
            self,
            keys={ref: number for ref, number in self.keys.items() if ref in refs},
            values={ref: number for ref, number in self.values.items() if ref in refs},
        )

    def with_version(self, topic: str, version: Version) -> Self:
        """Of the topic's own two subjects; any other leaves it as it is."""
        if version.subject == f"{topic}-key":
            return replace(self, keys={**self.keys, version.ref: version.number})
        if version.subject == f"{topic}-value":
            return replace(self, values={**self.values, version.ref: version.number})
        return self

    def with_met(self, keys: frozenset[SchemaRef], values: frozenset[SchemaRef]) -> Self:
        return replace(
            self,
            keys={**dict.fromkeys(keys), **self.keys},
            values={**dict.fromkeys(values), **self.values},
        )


def oldest_first(versions: VersionsByRef) -> list[SchemaRef]:
    """Schemas without a version come first: the newest is the one that a subject calls so."""
    return sorted(versions, key=lambda ref: (versions[ref] or 0, isinstance(ref, UUID), int(ref)))
