"""The events of a case as Kafka records: Avro by fastavro, in the Confluent frame."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from cases.case_file import Case, CaseEvent, Row  # type: ignore[import-not-found]
from unit.debezium_records import (  # type: ignore[import-not-found]
    decimal,
    envelope_schema,
    field,
    framed,
    optional,
    semantic,
    source,
)

_DECIMAL, _ENUM = "decimal(", "enum("
_NODES: dict[str, Any] = {
    **{kind: kind for kind in ("int", "long", "float", "double", "string")},
    "short": {"type": "int", "connect.type": "int16"},
    "date": semantic("int", "io.debezium.time.Date"),
    "timestamp": semantic("long", "io.debezium.time.MicroTimestamp"),
}
_KEY_IDS_DOWN_FROM = 10
"""A case has ten ids: its first key, the values of its batches from there on, other keys from the end."""
COMMIT_MILLIS = 1_700_000_000_123


@dataclass(frozen=True, slots=True)
class KafkaRecord:
    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Writer:
    """The schemas of one batch of one case. `tag` becomes a first key column `case`: cases share a table."""

    case: Case
    batch: int
    first_id: int
    tag: bool = False

    @property
    def key_id(self) -> int:
        """Of one schema until a column of the key gets another type."""
        key, columns = self.case.table.key, self.case.columns_of_batch(self.batch)
        is_first = all(columns[name] == self.case.table.columns[name] for name in key)
        return self.first_id if is_first else self.first_id + _KEY_IDS_DOWN_FROM - self.batch

    @property
    def value_id(self) -> int:
        return self.first_id + self.batch

    @property
    def key_schema(self) -> dict[str, Any]:
        columns = self.case.columns_of_batch(self.batch)
        fields = [field(name, _required(columns[name])) for name in self.case.table.key]
        return {"type": "record", "name": "Key", "namespace": self.case.topic, "fields": self._tagged(fields)}

    @property
    def value_schema(self) -> dict[str, Any]:
        columns = self.case.columns_of_batch(self.batch)
        keys = self.case.table.key
        fields = [
            field(name, _required(kind) if name in keys or kind.endswith("!") else _optional(kind))
            for name, kind in columns.items()
        ]
        return dict(envelope_schema(self._tagged(fields), topic=self.case.topic))

    @property
    def keys(self) -> dict[int, str]:
        """Nothing for a table without a key."""
        return {self.key_id: json.dumps(self.key_schema)} if self.case.table.key else {}

    @property
    def values(self) -> dict[int, str]:
        return {self.value_id: json.dumps(self.value_schema)}

    @property
    def schemas(self) -> dict[int, str]:
        return {**self.keys, **self.values}

    def record(self, event: CaseEvent) -> KafkaRecord:
        partition, offset = event.coordinate
        headers = tuple((name, text.encode()) for name, text in event.headers.items())
        key, value = self._key(event), self._value(event)
        return KafkaRecord(self.case.topic + event.topic, partition, offset, key, value, headers)

    def _key(self, event: CaseEvent) -> bytes | None:
        if event.key_hex is not None:
            return bytes.fromhex(event.key_hex)
        if event.key is None:
            return None
        columns = self.case.columns_of_batch(self.batch)
        key = self._row(event.key, {name: columns[name] for name in self.case.table.key})
        return bytes(framed(self.key_id, self.key_schema, key))

    def _value(self, event: CaseEvent) -> bytes | None:
        if event.value_hex is not None:
            return bytes.fromhex(event.value_hex)
        if event.op is None:
            return None
        columns = self.case.columns_of_batch(self.batch)
        place = event.position
        envelope = {
            "before": self._row(event.before, columns),
            "after": self._row(event.after, columns),
            "source": source(
                snapshot=place.snapshot,
                sequence=None if place.sequence is None else json.dumps([_text(n) for n in place.sequence]),
                lsn=place.lsn,
                txId=place.tx,
                ts_ms=COMMIT_MILLIS + place.ts,
                ts_us=None,
                ts_ns=None,
            ),
            "transaction": _transaction(place.tx, place.order),
            "op": event.op,
            "ts_ms": COMMIT_MILLIS,
            "ts_us": None,
            "ts_ns": None,
        }
        return bytes(framed(self.value_id, self.value_schema, envelope))

    def _row(self, row: Row | None, columns: Mapping[str, str]) -> Row | None:
        """Every column of the writer has to be written in the case: what is missing raises `KeyError`."""
        if row is None:
            return None
        encoded = {name: _avro(row[name], kind) for name, kind in columns.items()}
        return {"case": self.case.name, **encoded} if self.tag else encoded

    def _tagged(self, fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [field("case", "string"), *fields] if self.tag else fields


def writers(case: Case, *, first_id: int, tag: bool = False) -> dict[int, Writer]:
    """Batch -> its writer; ids from `first_id` on, one for the key and one per batch."""
    return {batch: Writer(case, batch, first_id=first_id, tag=tag) for batch in range(1, case.batches + 1)}


def records(case: Case, by_batch: Mapping[int, Writer], *, batch: int) -> list[KafkaRecord]:
    return [by_batch[batch].record(event) for event in case.events if event.batch == batch]


def _required(kind: str) -> Any:
    name, has_default, _ = kind.partition("=")
    if has_default:
        return {"type": _node(name), "default": default_of(kind)}
    return optional(_node(kind.removesuffix("?"))) if kind.endswith("?") else _node(kind)


def _optional(kind: str) -> Any:
    name, has_default, _ = kind.partition("=")
    if not has_default:
        return optional(_node(kind))
    return {"type": [_node(name), "null"], "default": default_of(kind)}


def default_of(kind: str) -> Any:
    name, _, text = kind.rstrip("!").partition("=")
    return int(text) if name in ("short", "int", "long") else text


def _node(kind: str) -> Any:
    if kind.startswith(_DECIMAL):
        precision, scale = kind.removeprefix(_DECIMAL).removesuffix(")").split(",")
        return decimal(int(precision), int(scale))
    if kind.startswith(_ENUM):
        allowed = kind.removeprefix(_ENUM).removesuffix(")")
        parameters = {"connect.parameters": {"allowed": allowed}}
        return semantic("string", "io.debezium.data.Enum", **parameters)
    try:
        return _NODES[kind.rstrip("?!")]
    except KeyError:
        raise ValueError(f"a case knows no type {kind!r}") from None


def _avro(value: Any, kind: str) -> Any:
    if value is None or not kind.startswith(_DECIMAL):
        return value
    scale = int(kind.removesuffix(")").split(",")[1])
    unscaled = int(Decimal(value).scaleb(scale))
    return unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)


def _transaction(tx: int | None, order: int | None) -> dict[str, Any] | None:
    return None if order is None else {"id": str(tx), "total_order": order, "data_collection_order": order}


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)
