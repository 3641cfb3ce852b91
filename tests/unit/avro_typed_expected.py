"""What fastavro reads of records, in the form of `decode_frames`."""

from __future__ import annotations

import base64
import io
import json
import struct
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal
from math import isfinite
from typing import Any
from uuid import UUID

import fastavro

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_by_fastavro(schema: Any, payload: bytes) -> Any:
    parsed = fastavro.parse_schema(schema)
    return fastavro.schemaless_reader(io.BytesIO(payload), parsed, return_named_type=True)


class Expected:
    """What fastavro read, as the final column has it."""

    def __init__(self, schema: Any) -> None:
        self.root = schema
        self.named: dict[str, Any] = {}
        fastavro.parse_schema(schema, named_schemas=self.named)

    def of(self, value: Any, *, wanted: Mapping[str, Any] | None = None) -> Any:
        """`wanted`: all fields of the column, of a record with fewer."""
        found = self.value(self.root, value, top=True)
        return found if wanted is None else {name: found.get(name) for name in wanted}

    def value(self, schema: Any, value: Any, *, top: bool = False) -> Any:  # noqa: PLR0911
        if isinstance(schema, str) and schema in self.named:
            schema = self.named[schema]
        if isinstance(schema, list):
            return self.union(schema, value)
        if value is None or isinstance(schema, str):
            return value
        if self.is_recursive(schema) and not top:
            return self.plain(schema, value)
        match schema["type"]:
            case "record":
                if not schema["fields"] and not top:
                    return True
                return {
                    each["name"]: self.value(each["type"], value[each["name"]]) for each in schema["fields"]
                }
            case "array":
                return [self.value(schema["items"], each) for each in value]
            case "map":
                return [(key, self.value(schema["values"], each)) for key, each in value.items()]
        return final(schema, value)

    def union(self, branches: list[Any], value: Any) -> Any:
        kept = [branch for branch in branches if branch != "null"]
        if value is None:
            return None
        (place,) = (place for place, branch in enumerate(kept) if self.is_branch(branch, value))
        found = self.value(kept[place], value[1] if self.is_named(kept[place]) else value)
        if len(kept) == 1:
            return found
        return {f"member{other}": found if other == place else None for other in range(len(kept))}

    def is_named(self, schema: Any) -> bool:
        return schema in self.named if isinstance(schema, str) else "name" in schema

    def is_branch(self, schema: Any, value: Any) -> bool:
        if self.is_named(schema):
            name = schema if isinstance(schema, str) else schema["name"]
            return isinstance(value, tuple) and value[0] == name
        kind = schema if isinstance(schema, str) else schema["type"]
        return isinstance(value, PYTHON[kind]) and (isinstance(value, bool) == (kind == "boolean"))

    def is_recursive(self, schema: Any) -> bool:
        return "kids" in [field["name"] for field in schema.get("fields", ())]

    def plain(self, schema: Any, value: Any) -> Any:
        """As JSON has it."""
        return json.loads(json.dumps(self.raw(schema, value)))

    def raw(self, schema: Any, value: Any) -> Any:
        kids = [self.raw(schema, each) for each in value["kids"]]
        more = {}
        for key, each in value["more"].items():
            inner = None if not isinstance(each, tuple) else self.raw(schema, each[1])
            text = each if isinstance(each, str) else None
            more[key] = None if each is None else {"member0": inner, "member1": text}
        follower = None if value["next"] is None else self.raw(schema, value["next"][1])
        (kind,) = (field["type"] for field in schema["fields"] if field["name"] == "value")
        return {"value": undone(kind, value["value"]), "next": follower, "kids": kids, "more": more}


PYTHON: dict[str, Any] = {
    "boolean": bool,
    "int": (int, date, time),
    "long": (int, date, time),
    "float": float,
    "double": float,
    "string": (str, UUID),
    "bytes": (bytes, Decimal),
    "array": list,
    "map": dict,
}


def final(schema: Any, value: Any) -> Any:  # noqa: PLR0911
    match value, schema.get("logicalType"):
        case (time(), _):
            return undone(schema, value) * (1000 if schema["type"] == "int" else 1)
        case (Decimal(), _) if schema["precision"] > 38:
            return format(value, "f")
        case (UUID(), _):
            return str(value)
        case (bytes(), "uuid"):
            return str(UUID(bytes=value))
        case (bytes(), "duration"):
            return dict(zip(("months", "days", "millis"), struct.unpack("<III", value), strict=True))
        case (int(), "timestamp-nanos" | "local-timestamp-nanos"):
            moment = EPOCH + (datetime.resolution * (value // 1000))
            return moment if schema["logicalType"] == "timestamp-nanos" else moment.replace(tzinfo=None)
    return value


def undone(schema: Any, value: Any) -> Any:
    """The raw value below a logical type, as JSON has it."""
    kind = schema if isinstance(schema, str) else schema["logicalType"]
    unit = 1000 if kind.endswith("millis") else 1
    if isinstance(value, time):
        micros = ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
        return micros // unit
    if isinstance(value, datetime):
        since = value.replace(tzinfo=UTC) - EPOCH
        return since // datetime.resolution // unit
    if isinstance(value, date):
        return value.toordinal() - 719_163
    if isinstance(value, Decimal):
        number = int(value.scaleb(schema["scale"], Context(prec=100)))
        value = number.to_bytes((number.bit_length() + 8) // 8, "big", signed=True)
    if isinstance(value, float) and not isfinite(value):
        return "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value) if isinstance(value, UUID) else value
