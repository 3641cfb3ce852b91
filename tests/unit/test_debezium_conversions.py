"""Columnar twins give what the converters of single values give, and refuse what those refuse."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st
from twins import assert_twins  # type: ignore[import-not-found]

from cdc_lakehouse.avro.typed import conversions as avro_conversions
from cdc_lakehouse.avro.typed import values as avro_values
from cdc_lakehouse.avro.typed.conversions import Cast, Micros
from cdc_lakehouse.avro.typed.decimal_texts import DecimalTextColumn
from cdc_lakehouse.avro.typed.decimals import DecimalColumn
from cdc_lakehouse.avro.typed.nested import Entries, Items, entries_of, items_of
from cdc_lakehouse.debezium import conversions, iso, iso_columns, values
from cdc_lakehouse.debezium.evolution import fitting, fitting_column
from cdc_lakehouse.debezium.position import position_of
from cdc_lakehouse.debezium.positions import position_columns
from cdc_lakehouse.debezium.source import SOURCE_TYPE, Source

INTS = st.integers(-(2**31), 2**31 - 1) | st.sampled_from(
    [-719163, -719162, 2932896, 2932897, 2**15, -(2**15) - 1]
)
EDGES = [avro_values.MINUS_INFINITY, avro_values.INFINITY, 2**63 - 1, -(2**63)]
NEAR_EDGES = [edge // part + step for edge in EDGES for part in (1, 1000) for step in (-1, 0, 1)]
LONGS = st.integers(-(2**63), 2**63 - 1) | st.sampled_from(
    [each for each in NEAR_EDGES if -(2**63) <= each < 2**63]
)


@settings(deadline=None)
@given(st.lists(st.none() | INTS, min_size=1))
def test_numbers_of_32_bits(raw):
    assert_twins(avro_values.days, avro_conversions.days, raw, (pa.int32(), pa.date32()))
    assert_twins(values.small, conversions.small, raw, (pa.int32(), pa.int16()))
    assert_twins(
        avro_values.time_millis_to_micros, avro_conversions.time_millis, raw, (pa.int32(), pa.int64())
    )


@settings(deadline=None)
@given(st.lists(st.none() | LONGS, min_size=1))
@example([None, *[each for each in NEAR_EDGES if -(2**63) <= each < 2**63]])
def test_numbers_of_64_bits(raw):
    assert_twins(values.time_nanos_to_micros, conversions.time_nanos, raw, (pa.int64(), pa.int64()))
    for convert, twin in (
        (avro_values.scaled_micros, Micros()),
        (avro_values.millis_to_micros, Micros(numerator=1000)),
        (avro_values.nanos_to_micros, Micros(denominator=1000)),
    ):
        assert_twins(
            convert, lambda column, twin=twin: as_longs(*twin(column)), raw, (pa.int64(), pa.int64())
        )


def as_longs(column: pa.Array, refused: Any) -> tuple[pa.Array, Any]:
    return column.view(pa.int64()), refused


@st.composite
def zoned(draw: st.DrawFn) -> str:
    text = draw(st.datetimes()).isoformat()
    cut = draw(st.integers(10, 26))
    return text[:cut] + draw(st.sampled_from(["Z", "", "+02:00", "-00:30", "789Z", ".5Z"]))


ODD_TEXTS = [
    "infinity", "-infinity", "", "Z", "2024-02-30T00:00:00Z", "2024-02-29T24:00:00Z", "2024-02-29T23:59:60Z",
    "2024-02-29 23:59:59Z", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00.1Z", "+10000-01-01T00:00:00Z",
    "2024-02-29T23:59:59,5Z", "2024-02-29T23:59:5 Z", "２024-02-29T23:59:59Z", "-0043-03-15T00:00:00Z",
    "2024-02-29T21:59:59+01Z", "2024-02-29T21:59Z", "2024-02-29T21:59:59.Z",
]  # fmt: skip


@settings(deadline=None)
@given(st.lists(st.none() | zoned() | st.sampled_from(ODD_TEXTS) | st.text(max_size=27), min_size=1))
@example([*ODD_TEXTS, None] * 3)
def test_timestamps_with_zone(raw):
    def twin(column: pa.Array) -> tuple[pa.Array, Any]:
        return as_longs(*iso_columns.zoned(column))

    assert_twins(iso.zoned_to_micros, twin, raw, (pa.string(), pa.int64()))


@st.composite
def local_texts(draw: st.DrawFn) -> str:
    text = draw(st.datetimes()).isoformat()
    part = draw(st.sampled_from([text, text[:10], text[11:], text[:19], text[11:19]]))
    return part + draw(st.sampled_from(["Z", "", "+02:00", "789Z", ".5Z", ".123Z"]))


ODD_DATES = [
    *ODD_TEXTS, "2024-02-29Z", "2023-02-29Z", "2024-02-29", "0000-01-01Z", "0001-01-01Z", "9999-12-31Z",
    "+10000-01-01Z", "-0043-03-15Z", "2024-13-01Z", "2024-00-01Z", "2024-01-00Z", "2024-01-32Z",
    "2024-1-01ZZ", "2024/02/29Z", "+5877611-06-21Z", "-5877611-06-22Z", "1900-02-29Z", "2000-02-29Z",
    "2024-02-29+02",
]  # fmt: skip
ODD_TIMES = [
    *ODD_TEXTS, "23:59:59Z", "24:00:00Z", "24:00:00.000001Z", "23:59:60Z", "23:60:59Z", "00:00Z", "00:00",
    "12:34:56.Z", "12:34:56.7Z", "12:34:56.123456Z", "12:34:56.1234567Z", "12:34:56:7Z", "1:34:56.7Z",
    "12:34:5/Z", "12:34:56.12 4Z", "-1:34:56Z", "99:00:00Z",
]  # fmt: skip


@settings(deadline=None)
@given(st.lists(st.none() | local_texts() | st.sampled_from(ODD_DATES) | st.text(max_size=12), min_size=1))
@example([*ODD_DATES, None] * 3)
def test_iso_dates(raw):
    assert_twins(iso.date_to_days, iso_columns.dates, raw, (pa.string(), pa.date32()))


@settings(deadline=None)
@given(st.lists(st.none() | local_texts() | st.sampled_from(ODD_TIMES) | st.text(max_size=17), min_size=1))
@example([*ODD_TIMES, None] * 3)
def test_iso_times(raw):
    assert_twins(iso.time_to_micros, iso_columns.times, raw, (pa.string(), pa.int64()))


@settings(deadline=None)
@given(st.lists(st.none() | local_texts() | st.sampled_from(ODD_TEXTS) | st.text(max_size=27), min_size=1))
@example([*ODD_TEXTS, None] * 3)
def test_iso_timestamps(raw):
    def twin(column: pa.Array) -> tuple[pa.Array, Any]:
        return as_longs(*iso_columns.local(column))

    assert_twins(iso.local_to_micros, twin, raw, (pa.string(), pa.int64()))


def big_endian(value: int, extra: int) -> bytes:
    return value.to_bytes((value.bit_length() + 8) // 8 + extra, "big", signed=True)


UNSCALED = st.builds(
    big_endian,
    st.integers(-(2**127), 2**127 - 1)
    | st.builds(lambda digits, step: 10**digits + step, st.integers(0, 38), st.integers(-1, 1))
    | st.builds(lambda digits, step: -(10**digits) + step, st.integers(0, 38), st.integers(-1, 1)),
    st.just(0),
)


@settings(deadline=None)
@given(
    st.lists(st.none() | UNSCALED | st.binary(max_size=16), min_size=1), st.integers(1, 38), st.integers(0, 4)
)
def test_decimals(raw, precision, scale):
    scale = min(scale, precision)
    type_ = pa.decimal128(precision, scale)
    assert_twins(
        avro_values.decimal_of(precision, scale), DecimalColumn(precision, scale), raw, (pa.binary(), type_)
    )


SCALES = st.integers(-3, 45) | st.sampled_from([-(2**31), -16_384, -16_383, 16_383, 16_384, 2**31 - 1])


@settings(deadline=None)
@given(st.lists(st.none() | UNSCALED | st.binary(max_size=19), min_size=1), SCALES)
def test_decimals_as_text(raw, scale):
    assert_twins(
        avro_values.wide_decimal_of(scale), DecimalTextColumn(scale), raw, (pa.binary(), pa.string())
    )


@settings(deadline=None)
@given(
    st.lists(
        st.none() | st.fixed_dictionaries({"scale": SCALES, "value": UNSCALED | st.binary(max_size=19)}),
        min_size=1,
    )
)
@example([{"scale": scale, "value": b"\x05"} for scale in range(100)])
def test_decimals_of_any_scale(raw):
    type_ = pa.struct([("scale", pa.int32()), ("value", pa.binary())])
    assert_twins(values.variable_scale, conversions.variable_scale, raw, (type_, pa.string()))


@settings(deadline=None)
@given(st.lists(st.none() | st.lists(st.none() | INTS, max_size=3), min_size=1))
def test_items_of_arrays(raw):
    types = (pa.list_(pa.int32()), pa.list_(pa.int16()))
    assert_twins(items_of(values.small), Items(conversions.small), raw, types)


@settings(deadline=None)
@given(
    st.lists(st.none() | st.lists(st.tuples(st.sampled_from("ab"), st.none() | INTS), max_size=3), min_size=1)
)
def test_entries_of_maps(raw):
    types = (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int16()))
    assert_twins(entries_of(values.small), Entries(conversions.small), raw, types)


@given(st.lists(st.none() | st.decimals(-99999, 99999, places=2), min_size=1, max_size=40))
@settings(deadline=None)
def test_decimals_of_another_scale(raw):
    was = pa.decimal128(7, 2)
    for now in (pa.decimal128(9, 4), pa.decimal128(5, 2), pa.decimal128(6, 1), pa.decimal128(38, 2)):
        assert_twins(fitting(was, now), fitting_column(was, now), raw, (was, now))


@settings(deadline=None)
@given(st.lists(st.none() | st.integers(-2, 2), min_size=1))
def test_flags_and_numbers_that_do_not_fit(raw):
    assert_twins(
        fitting(pa.int16(), pa.bool_()), fitting_column(pa.int16(), pa.bool_()), raw, (pa.int16(), pa.bool_())
    )
    assert_twins(
        fitting(pa.int16(), pa.string()),
        fitting_column(pa.int16(), pa.string()),
        raw,
        (pa.int16(), pa.string()),
    )
    wider = fitting_column(pa.int16(), pa.int64())
    assert isinstance(wider, Cast)
    assert wider(pa.array(raw, pa.int16()))[0].to_pylist() == raw


NUMBER = st.integers(0, 2**63) | st.integers(0, 30) | st.sampled_from([10**16 - 1, 10**16, 10**8, 10**8 - 1])
QUOTED = NUMBER.map(lambda number: f'"{number}"') | st.sampled_from(
    ["null", '""', '"0012"', '"１"', "5", '"-1"', '" 1"']
)
SEQUENCES = st.builds(lambda one, other: f"[{one},{other}]", QUOTED, QUOTED) | st.sampled_from(
    ["", "[]", "[null]", '["1","2"] ', '["1", "2"]', '{"1":"2"}', '["1","2","3"]', "[null,null]", '["1""2"]]']
)
SOURCES = st.none() | st.builds(
    Source,
    connector=st.sampled_from([None, "postgresql", "postgresql", "mysql", "mariadb", "oracle"]),
    snapshot=st.sampled_from([None, "false", "first", "true", "last", "incremental"]),
    sequence=st.none() | SEQUENCES,
    lsn=st.none() | st.integers(-5, 2**63 - 1),
    file=st.sampled_from([None, "", "binlog", "binlog.000012", "b.1\n", "b.123456789012345678"]),
    pos=st.none() | st.integers(0, 9),
    row=st.none() | st.integers(0, 9),
)
PLACES = st.tuples(
    SOURCES, st.sampled_from([None, "c", "d", "zz"]), st.none() | st.integers(-(2**63), 2**63 - 1)
)
NAMES = ("phase", "commit", "streamed", "row", "order_in_tx", "kind")


@given(st.lists(PLACES, min_size=1))
@settings(max_examples=200, deadline=None)
def test_positions(places):
    source = pa.array(
        [
            None if one is None else {field.name: getattr(one, field.name) for field in SOURCE_TYPE}
            for one, _, _ in places
        ],
        SOURCE_TYPE,
    )
    ops, orders = (
        pa.array([each[place] for each in places], type_)
        for place, type_ in ((1, pa.string()), (2, pa.int64()))
    )
    offsets = pa.array(range(40, 40 + len(places)), pa.int64()).to_numpy()
    struct = pa.StructArray.from_arrays(source.flatten(), fields=list(SOURCE_TYPE), mask=source.is_null())
    numbers, known = position_columns(struct, ops, orders, offsets)
    found = [
        {name: int(column[row]) for name, column in zip(NAMES, numbers, strict=True)} if known[row] else None
        for row in range(len(places))
    ]
    expected = [
        position_of(one, op=op, total_order=order, kafka_offset=40 + row)
        for row, (one, op, order) in enumerate(places)
    ]
    assert found == [each and {name: getattr(each, name) for name in NAMES} for each in expected]
