"""What a registry says of schemas, as plain values."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Self
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


_KEY, _ENVELOPE = ".Key", ".Envelope"
_NAME_OF_ALL = "ConnectDefault"
"""The converters give it to every record without a name, so it identifies nothing."""


def record_name(text: str) -> str | None:
    """Return the full name of the record that a schema describes; None for one without a name."""
    try:
        root: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    while isinstance(root, dict) and isinstance(root.get("type"), dict):
        root = root["type"]
    if not isinstance(root, dict) or not isinstance(name := root.get("name"), str):
        return None
    namespace = root.get("namespace")
    full = f"{namespace}.{name}" if isinstance(namespace, str) and namespace and "." not in name else name
    return None if full.rpartition(".")[2] == _NAME_OF_ALL else full


class RecordPart(StrEnum):
    """Part of a Kafka record that a schema describes, as subjects end."""

    KEY = "key"
    VALUE = "value"


@dataclass(frozen=True, slots=True)
class RecordNames:
    """Names of the Avro records that the schemas of a topic describe."""

    keys: frozenset[str]
    values: frozenset[str]

    @classmethod
    def of_texts(cls, *, keys: Iterable[str], values: Iterable[str]) -> Self:
        """Return the names in these schemas. Debezium names the key `x.Key` and the event `x.Envelope`, so
        each name yields the other.
        """
        key_names, value_names = (
            {name for text in texts if (name := record_name(text)) is not None} for texts in (keys, values)
        )
        return cls(
            keys=frozenset(key_names | _rename_suffix(value_names, _ENVELOPE, _KEY)),
            values=frozenset(value_names | _rename_suffix(key_names, _KEY, _ENVELOPE)),
        )

    def hold(self, part: RecordPart, text: str) -> bool:
        """Return whether the schema has one of these names; one without a name has none of them."""
        return record_name(text) in (self.keys if part is RecordPart.KEY else self.values)


def _rename_suffix(names: Iterable[str], suffix: str, other: str) -> set[str]:
    return {name.removesuffix(suffix) + other for name in names if name.endswith(suffix)}
