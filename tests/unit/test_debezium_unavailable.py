"""cdc-semantics §3: the placeholder in each spelling that connectors use."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cdc_lakehouse.debezium.headers import NEW_KEY, OLD_KEY
from cdc_lakehouse.debezium.unavailable import PLACEHOLDER, is_unavailable

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
    assert is_unavailable(pa.array([b"\x01\x02", b"\x01"]), placeholder="hex:0102").tolist() == [True, False]


def test_the_headers_of_a_key_change():
    assert (NEW_KEY, OLD_KEY) == ("__debezium.newkey", "__debezium.oldkey")
