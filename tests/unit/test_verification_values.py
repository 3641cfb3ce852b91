"""What PostgreSQL says of a value and what the lake holds of it are one cell, for each type that is compared.

The records are those of the real chain (`captured_records`).
"""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from captured_records import Topic, topics  # type: ignore[import-not-found]
from postgres_differs import differences, said_of  # type: ignore[import-not-found]

from cdc_lakehouse.debezium.decode import decode
from cdc_lakehouse.verification.cells import cells
from cdc_lakehouse.verification.json_form import json_form
from cdc_lakehouse.verification.source_values import Reader, reader_for

TYPES = {
    "smallint": "int2", "integer": "int4", "bigint": "int8", "boolean": "bool", "real": "float4",
    "double precision": "float8", "character varying": "varchar", "character": "bpchar",
    "timestamp without time zone": "timestamp", "timestamp with time zone": "timestamptz",
    "time without time zone": "time", "time with time zone": "timetz", "mood": "enum", "types.mood": "enum",
}  # fmt: skip
TOPICS = [topic for topic in topics() if topic.profile == "precise"]


def type_name(sql: str) -> str:
    plain = re.sub(r"\(.*?\)", "", sql)
    if plain.endswith("[]"):
        return "_" + type_name(plain[:-2])
    return TYPES.get(plain, plain)


def as_copied(text: str | None, sql: str) -> str | None:
    """The capture asked for a cast to text, which is another text for these two."""
    if text is None:
        return None
    if sql == "boolean":
        return text[0]
    return text.removesuffix("/32").removesuffix("/128") if sql == "inet" else text


def compared(topic: Topic) -> list[tuple[str, str | None, bytes | None, bytes | None]]:
    """Column, PostgreSQL's text, the cell of either side, for every value that has a reader.

    What the connector loses or sends as another value is told by `test_captured_types`.
    """
    rows = decode(topic.batch(), topic.plans(null_if_out_of_range=True))
    after = rows.column("after")
    columns = {field.name: after.field(field.name) for field in after.type}
    first = next(iter(columns))
    images = zip(*(rows.column(name).to_pylist() for name in ("op", "source", "unavailable")), strict=True)
    found, lost = [], {(each.column, each.said) for each in differences(topic)}
    for place, (op, source, unavailable) in enumerate(images):
        if op not in ("c", "u", "r"):
            continue
        said = said_of(topic, op, source, {first: columns[first][place].as_py()})
        for name in columns.keys() & said.new.keys() & topic.types.keys() - set(unavailable or ()):
            reader = reader_for(type_name(topic.types[name]), columns[name].type)
            if reader is None or (name, said.new[name]) in lost:
                continue
            text = as_copied(said.new[name], topic.types[name])
            theirs = cells(reader.settle(columns[name].slice(place, 1)))[0].as_py()
            found.append((name, text, cell_of(reader, text, columns[name].type), theirs))
    return found


def cell_of(reader: Reader, text: str | None, type_: pa.DataType) -> bytes | None:
    values, _ = reader.parse(pa.array([text], pa.string()), type_)
    found: bytes | None = cells(reader.settle(values))[0].as_py()
    return found


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name)
def test_what_was_sent_is_what_postgresql_says(topic):
    different = [each for each in compared(topic) if each[2] != each[3]]

    assert different == []


@pytest.mark.parametrize(
    ("text", "name", "type_"),
    [
        ("infinity", "date", pa.date32()),
        ("0044-03-15 BC", "date", pa.date32()),
        ("10000-01-01", "date", pa.date32()),
        ("-infinity", "timestamp", pa.timestamp("us")),
        ("294276-12-31 23:59:59.999999+00", "timestamptz", pa.timestamp("us", "UTC")),
        ("3000000000", "int8", pa.int32()),
        ("1.005", "numeric", pa.decimal128(10, 2)),
        ("{{1,2},{3,4}}", "_int4", pa.list_(pa.int32())),
        ("{1,3000000000}", "_int8", pa.list_(pa.int32())),
    ],
)
def test_what_no_column_of_the_lake_holds_is_beyond(text, name, type_):
    reader = reader_for(name, type_)
    assert reader is not None
    _, beyond = reader.parse(pa.array([None, text], pa.string()), type_)

    assert beyond.tolist() == [False, True]


def test_years_beyond_those_of_python_are_the_same_instants():
    reader = reader_for("timestamp", pa.timestamp("us"))
    assert reader is not None
    texts = pa.array(["0044-03-15 12:00:00 BC", "1970-01-01 00:00:00.000001", "infinity"])
    values, _ = reader.parse(texts, pa.timestamp("us"))

    assert values.view(pa.int64()).to_pylist() == [-63517780800000000, 1, None]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('{"a": 1, "b": 2}', '{"b":2,"a":1}', True),
        ('{"a": 1.0}', '{"a": 1.00}', False),
        ('{"a": 1}', '{"a": "1"}', False),
        ("[1, 2]", "[2, 1]", False),
        ("not json", "not json", True),
    ],
)
def test_a_json_document_is_its_members_and_its_digits(one, other, same):
    assert (json_form(one) == json_form(other)) is same


def test_a_number_without_a_scale_loses_its_last_zeros_and_none_before_the_point():
    reader = reader_for("numeric", pa.string())
    assert reader is not None
    texts = pa.array(["1.500", "1500", "1.0", "0.00", "-0.010", "NaN", None])

    assert reader.settle(texts).to_pylist() == ["1.5", "1500", "1", "0", "-0.01", None, None]


def test_padding_of_a_character_column_does_not_count():
    reader = reader_for("bpchar", pa.string())
    assert reader is not None

    assert reader.settle(pa.array(["ab  ", "ab"])).to_pylist() == ["ab", "ab"]
