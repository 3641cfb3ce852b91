"""Where a decoded row is not what PostgreSQL said of it, and which of these differences are known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from captured_records import Said, Texts, Topic  # type: ignore[import-not-found]
from postgres_says import expected, plain  # type: ignore[import-not-found]

from cdc_lakehouse.debezium.decode import decode


@dataclass(frozen=True)
class Difference:
    profile: str
    relation: str
    column: str
    sql: str
    op: str
    said: str | None
    found: Any
    out_of_range: bool


@dataclass(frozen=True)
class Known:
    """Covers differences of these columns (by PostgreSQL's type) or relations; None covers all."""

    why: str
    sql: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    profiles: tuple[str, ...] | None = None
    said: tuple[str | None, ...] | None = None
    op: str | None = None
    out_of_range: bool = False
    found: Any = ...
    """`...` covers whatever came."""

    def covers(self, difference: Difference) -> bool:
        place = f"{difference.relation}.{difference.column}"
        return (
            difference.out_of_range is self.out_of_range
            and (self.sql is None or difference.sql.startswith(self.sql))
            and (self.columns is None or place in self.columns)
            and (self.profiles is None or difference.profile in self.profiles)
            and (self.said is None or difference.said in self.said)
            and (self.op is None or difference.op == self.op)
            and (self.found is ... or repr(difference.found) == repr(self.found))
        )


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
    for place, (op, source) in enumerate(
        zip(*(rows.column(name).to_pylist() for name in ("op", "source")), strict=True)
    ):
        if op not in ("c", "u", "r", "d"):
            continue
        row = {
            image: {name: held[place] for name, held in columns.items()} for image, columns in values.items()
        }
        said = _said_of(topic, op, source, row["after"])
        marked = {name: rows.column(name)[place].as_py() or [] for name in ("out_of_range", "unavailable")}
        for image, texts in _images(topic, op, said):
            for name, value in row[image].items():
                if image == "after" and name in marked["unavailable"]:
                    continue
                sql, text = (
                    topic.types.get(_original(topic, name), "dropped"),
                    texts.get(_original(topic, name)),
                )
                type_ = images[image].type.field(name).type
                wanted = None if text is None else _wanted(text, sql, type_, topic.profile)
                if repr(value) != repr(wanted):
                    out = name in marked["out_of_range"]
                    yield Difference(topic.profile, topic.relation, name, sql, op, text, value, out)


def _images(topic: Topic, op: str, said: Said) -> Iterator[tuple[str, Texts]]:
    """Which images of an event hold a whole row, and that row in PostgreSQL's words."""
    row = said.new if op != "d" else said.old
    if row is not None and topic.plans().columns.key:
        yield "key", row
    if op != "d" and said.new is not None:
        yield "after", said.new
    if topic.relation in _FULL and op in ("u", "d") and said.old is not None:
        yield "before", said.old


def _wanted(text: str, sql: str, type_: pa.DataType, profile: str) -> Any:
    try:
        return expected(text, sql, type_, profile)
    except (ValueError, AttributeError, ArithmeticError):
        return f"nothing that {type_} holds"


def _said_of(topic: Topic, op: str, source: dict[str, Any], row: dict[str, Any]) -> Said:
    """A snapshot reads what was inserted before; other events are of the statement's transaction."""
    if op == "r":
        first = next(iter(row))
        return next(each for each in topic.said if each.new[_original(topic, first)] == str(row[first]))
    image = "old" if op == "d" else "new"
    (said,) = [each for each in topic.said if each.tx == source["tx_id"] and getattr(each, image) is not None]
    return said


def _original(topic: Topic, name: str) -> str:
    """Field names are adjusted to what Avro takes (`cdc-semantics` §6)."""
    adjusted = {"Col_1": "Col-1", "_2nd_col": "2nd col", "_": "ü"}
    return adjusted.get(name, name) if topic.relation == "Weird Name" else name


_FULL = ("toasted_full", "keyless")
"""Their REPLICA IDENTITY is FULL: events have the whole row before."""
_BEYOND = ("294275-12-31 23:59:59.999999", "294275-12-31 23:59:59.999999+00")
_PRECISE = ("precise", "connect", "micros", "nanos")
_MOMENTS = ("timestamp(0) without", "timestamp(3) without", "timestamp without")
_INSTANTS = ("timestamp(0) with time", "timestamp(3) with time", "timestamp with time")

KNOWN = (
    # What no column of the lake holds: named in `out_of_range`.
    Known("infinity", sql=("date", *_MOMENTS, *_INSTANTS), said=("infinity", "-infinity"), out_of_range=True),
    Known("dates end with the years 1 and 9999", sql=("date",), out_of_range=True),
    Known(
        "64 bits of microseconds end in 294247", sql=(*_MOMENTS, *_INSTANTS), said=_BEYOND, out_of_range=True
    ),
    Known("numbers of more than 4,090 digits", columns=("toasted.free_number",), op="c", out_of_range=True),
    # What the connector does not send: nobody can tell from the record.
    Known(
        "numeric NaN and infinity", sql=("numeric",), said=("NaN", "Infinity", "-Infinity"), profiles=_PRECISE
    ),
    Known(
        "trailing zeros of a numeric without scale",
        columns=("numbers.free", "arrays.free"),
        profiles=_PRECISE,
    ),
    Known("NULL becomes DEFAULT", columns=("defaults.number", "defaults.word", "defaults.day"), said=(None,)),
    Known("generated columns are only in snapshots", columns=("made.twice",), found=None),
    Known("untouched TOAST without a placeholder: numeric", columns=("toasted.free_number",), found=None),
    Known("untouched TOAST without a placeholder: timestamp[]", columns=("toasted.moments",), found=None),
    Known(
        "untouched TOAST without a placeholder: date[] that is not adaptive",
        columns=("toasted.days",),
        profiles=("iso", "structured", "connect"),
        found=None,
    ),
    Known(
        "untouched TOAST without a placeholder: bytea as text",
        columns=("toasted.raw", "toasted.blobs"),
        profiles=("iso", "structured"),
        found=None,
    ),
    Known("a column of type name is NULL in a stream", columns=("texts.named",), op="u", found=None),
    Known("items of time[] have milliseconds", columns=("arrays.times",)),
    Known("an interval beyond 64 bits of microseconds", columns=("times.span",), found=-(2**63)),
    Known("24:00 is 00:00 as ISO text", sql=("time",), said=("24:00:00",), profiles=("iso",), found=0),
    Known(
        "24:00 is NULL as a structure",
        sql=("time",),
        said=("24:00:00",),
        profiles=("structured",),
        found=None,
    ),
    Known("beyond 64 bits of nanoseconds", sql=_MOMENTS, profiles=("nanos",), found=None),
)
