"""cdc-semantics §3: the placeholder in each spelling that connectors use."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from debezium_records import (  # type: ignore[import-not-found]
    KEY_ID,
    VALUE_ID,
    columns,
    envelope_schema,
    event,
    field,
    framed,
    kafka_batch,
    key_bytes,
    key_schema,
    optional,
    plans,
    semantic,
)

from cdc_lakehouse.config.values import DEFAULT_PLACEHOLDER
from cdc_lakehouse.debezium.decode import decode
from cdc_lakehouse.debezium.headers import NEW_KEY, OLD_KEY
from cdc_lakehouse.debezium.unavailable import PLACEHOLDER, is_unavailable, placeholder_bytes

NUMBERS = [
    95,
    95,
    100,
    101,
    98,
    101,
    122,
    105,
    117,
    109,
    95,
    117,
    110,
    97,
    118,
    97,
    105,
    108,
    97,
    98,
    108,
    101,
]
NUMBERS += [95, 118, 97, 108, 117, 101]


@pytest.mark.parametrize(
    ("type_", "placeholder", "other"),
    [
        (pa.string(), PLACEHOLDER, PLACEHOLDER + "x"),
        (pa.string(), '{"__debezium_unavailable_value":"__debezium_unavailable_value"}', "{}"),
        (pa.binary(), b"__debezium_unavailable_value", b"_"),
        (pa.list_(pa.string()), [PLACEHOLDER], [PLACEHOLDER, "a"]),
        (pa.list_(pa.string()), ["b68a35a7-17ad-35b3-af2a-ae46edb4545a"], ["a"]),
        (pa.list_(pa.binary()), [PLACEHOLDER.encode()], []),
        (pa.list_(pa.int32()), NUMBERS, [*NUMBERS[:-1], None]),
        (pa.list_(pa.int64()), NUMBERS, NUMBERS[:-1]),
        (pa.list_(pa.date32()), NUMBERS, [1]),
        (pa.map_(pa.string(), pa.string()), [(PLACEHOLDER, PLACEHOLDER)], [("a", PLACEHOLDER)]),
    ],
)
def test_the_placeholder_is_found_and_nothing_else(type_, placeholder, other):
    column = pa.array([placeholder, other, None], type_)
    assert is_unavailable(column).tolist() == [True, False, False]


@pytest.mark.parametrize("type_", [pa.int64(), pa.bool_(), pa.struct([("x", pa.string())])])
def test_other_types_have_no_placeholder(type_):
    assert is_unavailable(pa.nulls(2, type_)).tolist() == [False, False]


def test_a_placeholder_may_be_given_as_hex():
    assert is_unavailable(pa.array([b"\x01\x02", b"\x01"]), placeholders=["hex:0102"]).tolist() == [
        True,
        False,
    ]


def test_the_headers_of_a_key_change():
    assert (NEW_KEY, OLD_KEY) == ("__debezium.newkey", "__debezium.oldkey")


NAMED = {"text": "nicht gesendet …", "bytes": "hex:00ff80f0"}
"""Placeholders of a person's choice. The bytes are no UTF-8: Java writes a replacement character for each."""
SENT = {
    "text": (
        "nicht gesendet …",
        '{"nicht gesendet …":"nicht gesendet …"}',
        [110, 105, 99, 104, 116, 32, 103, 101, 115, 101, 110, 100, 101, 116, 32, -30, -128, -90],
        "1dc60b07-fec1-3322-9425-b9dc722625aa",
    ),
    "bytes": (
        "\x00���",
        '{"\\u0000���":"\\u0000���"}',
        [0, -1, -128, -16],
        "354b920c-1dfb-3750-9e8e-b91db946b6c5",
    ),
}
"""As Java has them: text, hstore in JSON, numbers (a byte has a sign), name-UUID."""
LIST_OF_TEXT = {"type": "array", "items": ["null", "string"]}
SPELLINGS = {
    "text": "string",
    "hstore_json": "string",
    "raw": "bytes",
    "texts": LIST_OF_TEXT,
    "uuids": LIST_OF_TEXT,
    "blobs": {"type": "array", "items": ["null", "bytes"]},
    "ints": {"type": "array", "items": ["null", "int"]},
    "longs": {"type": "array", "items": ["null", "long"]},
    "days": {"type": "array", "items": ["null", semantic("int", "io.debezium.time.Date")]},
    "hstore": {"type": "map", "values": ["null", "string"]},
}
"""Every spelling of `cdc-semantics` §3, in the column type in which the connector sends it."""


def untouched(named: str) -> dict[str, Any]:
    """A row in which nothing but the key changed, as a connector with this placeholder sends it."""
    text, hstore_json, numbers, ident = SENT[named]
    data = placeholder_bytes(NAMED[named])
    return {
        "id": 1,
        "text": text,
        "hstore_json": hstore_json,
        "raw": data,
        "texts": [text],
        "uuids": [ident],
        "blobs": [data],
        "ints": numbers,
        "longs": numbers,
        "days": numbers,
        "hstore": {text: text},
    }


def decoded(values: dict[str, Any], **options: Any) -> dict[str, Any]:
    schema = envelope_schema(
        [field("id", "long"), *(field(name, optional(node)) for name, node in SPELLINGS.items())]
    )
    texts = {KEY_ID: json.dumps(key_schema()), VALUE_ID: json.dumps(schema)}
    known = plans(columns=columns(schema), schemas=texts, **options)
    batch = kafka_batch((key_bytes(), framed(VALUE_ID, schema, event(after=values))))
    (found,) = decode(batch, known).to_pylist()
    return dict(found)


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("named", NAMED)
def test_a_placeholder_of_ones_own_is_no_value_in_any_spelling(named):
    found = decoded(untouched(named), placeholders=(NAMED[named],))

    assert found["unavailable"] == list(SPELLINGS)
    assert {name: found["after"][name] for name in SPELLINGS} == dict.fromkeys(SPELLINGS)


@pytest.mark.usefixtures("both_ways")
def test_the_default_placeholder_is_a_value_where_the_connector_has_another():
    values = dict.fromkeys(untouched("text")) | {"id": 1, "text": PLACEHOLDER}

    assert decoded(values, placeholders=(NAMED["text"],))["after"]["text"] == PLACEHOLDER
    assert decoded(values)["unavailable"] == ["text"]


def test_the_pipeline_expects_what_debezium_sends_by_default():
    assert DEFAULT_PLACEHOLDER == PLACEHOLDER


@pytest.mark.parametrize("named", NAMED)
def test_each_of_several_placeholders_is_found_in_every_spelling(named):
    """A connector whose placeholder was changed while records waited sends both."""
    found = decoded(untouched(named), placeholders=tuple(NAMED.values()))

    assert found["unavailable"] == list(SPELLINGS)
