"""The shape of a change event and of its key, found in their writer schemas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from cdc_lakehouse.avro.admission import SchemaRefusedError
from cdc_lakehouse.avro.typed.plans import ValuePlan
from cdc_lakehouse.avro.wire import Wire, without_text
from cdc_lakehouse.avro.writer import WriterSchema, writer_schema
from cdc_lakehouse.debezium.types import Place, plan_value
from cdc_lakehouse.errors import NotSupportedYetError, UnsupportedTypeError

SIDES = ("before", "after")


@dataclass(frozen=True, eq=False, slots=True)
class Field:
    """One column of a row or of a key, as this writer sends it."""

    name: str
    value: ValuePlan
    unknown: tuple[str, ...] = ()
    """Semantic names that this release does not know: such values are stored as they came."""


@dataclass(frozen=True, eq=False, slots=True)
class Record:
    """A key: its bytes and its fields."""

    schema: WriterSchema
    fields: tuple[Field, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Envelope:
    """A change event: its bytes and the fields of the row before and after."""

    schema: WriterSchema
    before: tuple[Field, ...]
    after: tuple[Field, ...]


def plan_key(text: str, *, table: str) -> Record:
    """Raises a `ConfigError` when the schema is not the one of a key that we can store."""
    schema = _compiled(text, table=table)
    fields = _fields(schema.resolve(schema.root), schema, table=table)
    if not fields:
        raise NotSupportedYetError(feature=f"a key of {table} that is not a record with fields")
    return Record(schema=schema, fields=fields)


def plan_envelope(text: str, *, table: str, dropped: frozenset[str] = frozenset()) -> Envelope:
    """Raises a `ConfigError` when the schema is not the one of a Debezium change event.

    Columns that are `dropped` are passed over in the bytes, whatever their types are.
    """
    schema = _compiled(text, table=table)
    root = schema.resolve(schema.root)
    members = {field["name"]: field["type"] for field in root["fields"]} if _is_record(root) else {}
    before, after = (_row(members.get(side), schema, table=table, dropped=dropped) for side in SIDES)
    if not (after and _is_text(members.get("op"), schema) and "source" in members):
        raise NotSupportedYetError(
            feature=f"a value of {table} without the fields op, source, before and after"
            " (flattened by a transform such as ExtractNewRecordState?)"
        )
    if dropped:
        schema = schema.reading(_passing_over(schema.wire, dropped))
    return Envelope(schema=schema, before=before, after=after)


def describes_key(text: str, *, table: str) -> bool:
    """Return whether a schema can be read and is a record with fields, of any types."""
    return _can_be(partial(plan_key, table=table), text)


def describes_event(text: str, *, table: str, dropped: frozenset[str] = frozenset()) -> bool:
    """Return whether a schema can be read and is that of a change event, with any columns."""
    return _can_be(partial(plan_envelope, table=table, dropped=dropped), text)


def _can_be(plan: Callable[[str], Record | Envelope], text: str) -> bool:
    try:
        plan(text)
    except NotSupportedYetError:
        return False
    except UnsupportedTypeError:  # of one column, which the table may leave out
        return True
    return True


def _passing_over(wire: Wire, dropped: frozenset[str]) -> Wire:
    """The root's plan without texts in the dropped columns of its rows."""

    def row(part: Wire) -> Wire:
        if part.kind != "record":
            return replace(part, parts=tuple(map(row, part.parts)))
        return _with_parts(part, dropped, without_text)

    return _with_parts(wire, frozenset(SIDES), row)


def _with_parts(record: Wire, names: frozenset[str], change: Callable[[Wire], Wire]) -> Wire:
    fields = zip(record.names, record.parts, strict=True)
    return replace(record, parts=tuple(change(part) if name in names else part for name, part in fields))


def _compiled(text: str, *, table: str) -> WriterSchema:
    try:
        return writer_schema(text)
    except SchemaRefusedError as exc:
        raise NotSupportedYetError(feature=f"an Avro schema of {table} ({exc})") from exc


def _row(node: Any, schema: WriterSchema, *, table: str, dropped: frozenset[str]) -> tuple[Field, ...]:
    node = schema.resolve(node) if node is not None else None
    branches = node if isinstance(node, list) else [node]
    values = [branch for branch in map(schema.resolve, branches) if branch != "null"]
    records = [value for value in values if _is_record(value) and not schema.types.is_recursive(value)]
    if len(values) > 1:
        return ()
    return _fields(records[0], schema, table=table, dropped=dropped) if len(records) == 1 else ()


def _fields(
    node: Any, schema: WriterSchema, *, table: str, dropped: frozenset[str] = frozenset()
) -> tuple[Field, ...]:
    if not _is_record(node):
        return ()
    return tuple(
        _field(field, schema, table=table) for field in node["fields"] if field["name"] not in dropped
    )


def _field(field: Any, schema: WriterSchema, *, table: str) -> Field:
    unknown: list[str] = []
    plan = plan_value(field["type"], schema, Place(table, field["name"]), unknown=unknown)
    return Field(field["name"], plan, tuple(dict.fromkeys(unknown)))


def _is_record(node: Any) -> bool:
    return isinstance(node, dict) and node["type"] == "record"


def _is_text(node: Any, schema: WriterSchema) -> bool:
    node = schema.resolve(node) if node is not None else None
    branches = [schema.resolve(branch) for branch in (node if isinstance(node, list) else [node])]
    kinds = {branch["type"] if isinstance(branch, dict) else branch for branch in branches}
    return kinds - {"null"} == {"string"}
