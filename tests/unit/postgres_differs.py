"""Where a decoded row is not what PostgreSQL said of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cdc_lakehouse.debezium.decode import decode
from unit.captured_records import Said, Texts, Topic  # type: ignore[import-not-found]
from unit.postgres_says import expected, plain  # type: ignore[import-not-found]

NO_FIELD = "no field in the schema"
"""What is found in a column that no event of the table has."""


@dataclass(frozen=True)
class Difference:
    profile: str
    relation: str
    column: str
    sql: str
    op: str
    said: str | None
    found: Any
    out_of_range: bool = False

    @property
    def place(self) -> str:
        return f"{self.relation}.{self.column}"


def differences(topic: Topic) -> Iterator[Difference]:
    """Of all columns of all images and keys; an undecodable row is a failure of its own."""
    rows = decode(topic.batch(), topic.plans(null_if_out_of_range=True))
    assert rows.column("decode_error").null_count == len(rows), topic.name
    sides = [name for name in ("key", "before", "after") if name in rows.schema.names]
    images = {name: rows.column(name) for name in sides}
    values = {
        name: {field.name: plain(image.field(field.name)) for field in image.type}
        for name, image in images.items()
    }
    yield from _absent(topic, {field.name for field in images["after"].type})
    for place, (op, source) in enumerate(
        zip(*(rows.column(name).to_pylist() for name in ("op", "source")), strict=True)
    ):
        if op not in ("c", "u", "r", "d"):
            continue
        row = {
            image: {name: held[place] for name, held in columns.items()} for image, columns in values.items()
        }
        said = said_of(topic, op, source, row["after"])
        marked = {name: rows.column(name)[place].as_py() or [] for name in ("out_of_range", "unavailable")}
        for image, texts in _images(topic, op, said):
            for name, value in row[image].items():
                if image == "after" and name in marked["unavailable"]:
                    continue
                sql, text = type_of(topic, name), texts.get(original_name(topic, name))
                if repr(value) != repr(wanted(text, sql, images[image].type.field(name).type, topic.profile)):
                    out = name in marked["out_of_range"]
                    yield Difference(topic.profile, topic.relation, name, sql, op, text, value, out)


def wanted(text: str | None, sql: str, type_: pa.DataType, profile: str) -> Any:
    """The one value that equals what PostgreSQL holds."""
    if text is None:
        return None
    try:
        return expected(text, sql, type_, profile)
    except (ValueError, AttributeError, ArithmeticError):
        return f"nothing that {type_} holds"


def said_of(topic: Topic, op: str, source: dict[str, Any], row: dict[str, Any]) -> Said:
    """Other events are of the statement's transaction; a snapshot reads what the last one before it left."""
    if op != "r":
        image = "old" if op == "d" else "new"
        (said,) = [
            each for each in topic.said if each.tx == source["tx_id"] and getattr(each, image) is not None
        ]
        return said
    first, number = next(iter(row.items()))
    name = original_name(topic, first)
    return [
        each
        for each in topic.said
        if each.new and each.tx < source["tx_id"] and each.new[name] == str(number)
    ][-1]


def original_name(topic: Topic, name: str) -> str:
    """Field names are adjusted to what Avro takes (`cdc-semantics` §6)."""
    adjusted = {"Col_1": "Col-1", "_2nd_col": "2nd col", "_": "ü"}
    return adjusted.get(name, name) if topic.relation == "Weird Name" else name


def type_of(topic: Topic, name: str) -> str:
    return str(topic.types.get(original_name(topic, name), "dropped"))


def _absent(topic: Topic, fields: set[str]) -> Iterator[Difference]:
    originals = {original_name(topic, name) for name in fields}
    for name, sql in topic.types.items():
        if name not in originals:
            yield Difference(topic.profile, topic.relation, name, sql, "", None, NO_FIELD)


def _images(topic: Topic, op: str, said: Said) -> Iterator[tuple[str, Texts]]:
    """Which images of an event hold a whole row, and that row in PostgreSQL's words."""
    row = said.new if op != "d" else said.old
    if row is not None and topic.plans().columns.key:
        yield "key", row
    if op != "d" and said.new is not None:
        yield "after", said.new
    if topic.relation in _FULL and op in ("u", "d") and said.old is not None:
        yield "before", said.old


_FULL = ("toasted_full", "keyless")
"""Their REPLICA IDENTITY is FULL: events have the whole row before."""
