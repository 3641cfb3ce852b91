"""cdc-semantics §7: what arrives and what it must become."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from debezium_records import decimal, semantic  # type: ignore[import-not-found]

from cdc_lakehouse.avro.faults import RecordFault
from cdc_lakehouse.avro.typed import values as avro_values
from cdc_lakehouse.avro.typed.plans import ValuePlan
from cdc_lakehouse.avro.writer import writer_schema
from cdc_lakehouse.debezium import iso, values
from cdc_lakehouse.debezium.types import Place, plan_value
from cdc_lakehouse.errors import UnsupportedTypeError

CONNECT = "org.apache.kafka.connect.data."
VARIABLE = {
    "type": "record",
    "name": "VariableScaleDecimal",
    "connect.name": "io.debezium.data.VariableScaleDecimal",
    "fields": [{"name": "scale", "type": "int"}, {"name": "value", "type": "bytes"}],
}
NTZ, UTC = pa.timestamp("us"), pa.timestamp("us", tz="UTC")


def planned(node: Any) -> ValuePlan:
    schema = writer_schema(
        json.dumps({"type": "record", "name": "R", "fields": [{"name": "x", "type": node}]})
    )
    return plan_value(schema.root["fields"][0]["type"], schema, Place("orders", "x"))


@pytest.mark.parametrize(
    ("node", "type_", "raw", "final"),
    [
        ("boolean", pa.bool_(), True, True),
        ({"type": "int", "connect.type": "int8"}, pa.int16(), -5, -5),
        ("int", pa.int32(), 7, 7),
        (["long", "null"], pa.int64(), 7, 7),
        ("float", pa.float32(), 0.5, 0.5),
        ("double", pa.float64(), 0.5, 0.5),
        ("bytes", pa.binary(), b"\x00", b"\x00"),
        (decimal(10, 2), pa.decimal128(10, 2), b"\xff", Decimal("-0.01")),
        (decimal(38, 0), pa.decimal128(38, 0), (10**38 - 1).to_bytes(16, "big"), Decimal(10**38 - 1)),
        (decimal(39, 2), pa.string(), b"\x30\x39", "123.45"),
        (decimal(64, 2), pa.string(), b"\xff", "-0.01"),
        (VARIABLE, pa.string(), {"scale": 3, "value": b"\x04\xd2"}, "1.234"),
        (VARIABLE, pa.string(), {"scale": -2, "value": b"\x05"}, "500"),
        (semantic("int", "io.debezium.time.Date"), pa.date32(), -719162, -719162),
        (semantic("int", "io.debezium.time.Time"), pa.int64(), 5, 5_000),
        (semantic("long", "io.debezium.time.MicroTime"), pa.int64(), -5, -5),
        (semantic("long", "io.debezium.time.NanoTime"), pa.int64(), 5_999, 5),
        (semantic("long", "io.debezium.time.Timestamp"), NTZ, -1, -1_000),
        (
            semantic("long", "io.debezium.time.MicroTimestamp"),
            NTZ,
            -63_500_000_000_000_000,
            -63_500_000_000_000_000,
        ),
        (semantic("long", "io.debezium.time.NanoTimestamp"), NTZ, -1, -1),
        (semantic("string", "io.debezium.time.ZonedTimestamp"), UTC, "1970-01-02T00:00:00Z", 86_400_000_000),
        (semantic("string", "io.debezium.time.ZonedTime"), pa.string(), "10:00+01", "10:00+01"),
        (semantic("long", "io.debezium.time.MicroDuration"), pa.int64(), 9, 9),
        (semantic("int", "io.debezium.time.Year"), pa.int32(), 2024, 2024),
        (semantic("string", "io.debezium.data.Json"), pa.string(), "{}", "{}"),
        (semantic("int", CONNECT + "Date", logicalType="date"), pa.date32(), 1, 1),
        (semantic("int", CONNECT + "Time", logicalType="time-millis"), pa.int64(), 1, 1_000),
        (semantic("long", CONNECT + "Timestamp", logicalType="timestamp-millis"), NTZ, 1, 1_000),
        ({"type": "enum", "name": "E", "symbols": ["a"]}, pa.string(), "a", "a"),
        (
            {"type": "array", "items": ["null", decimal(4, 1)]},
            pa.list_(pa.decimal128(4, 1)),
            [b"\x0f", None],
            [Decimal("1.5"), None],
        ),
        (
            {"type": "map", "values": ["null", "string"]},
            pa.map_(pa.string(), pa.string()),
            {"a": None},
            [("a", None)],
        ),
    ],
)
def test_a_value_becomes_its_final_one(node, type_, raw, final):
    plan = planned(node)
    assert plan.type == type_
    assert (raw if plan.convert is None else plan.convert(raw)) == final


@pytest.mark.parametrize(
    ("node", "what"),
    [
        (semantic("string", CONNECT + "Decimal"), "decimal (string)"),
        (
            semantic("bytes", CONNECT + "Decimal", **{"connect.parameters": {"scale": "two"}}),
            "decimal without a scale or precision that is a number",
        ),
    ],
)
def test_a_type_that_cannot_be_stored_is_refused_by_name(node, what):
    with pytest.raises(UnsupportedTypeError) as caught:
        planned(node)
    assert (caught.value.table, caught.value.column, caught.value.type) == ("orders", "x", what)


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("2024-02-29T12:00:00.5+05:30", 1_709_188_200_500_000),
        ("1969-12-31T23:59:59.999999Z", -1),
        ("+10000-01-01T00:00:00Z", 253_402_300_800_000_000),
        ("-0043-03-15T00:00:00Z", -63_517_824_000_000_000),
        ("2024-01-01T00:00Z", 1_704_067_200_000_000),
    ],
)
def test_a_zoned_timestamp_of_any_year_is_microseconds(text, micros):
    assert iso.zoned_to_micros(text) == micros


@pytest.mark.parametrize(
    ("convert", "raw", "code"),
    [
        (iso.zoned_to_micros, "-infinity", "value_out_of_range"),
        (iso.zoned_to_micros, "2023-02-29T00:00:00Z", "bad_value"),
        (iso.zoned_to_micros, "yesterday", "bad_value"),
        (avro_values.scaled_micros, 9223372036854775807, "value_out_of_range"),
        (avro_values.scaled_micros, 9223372036825200000, "value_out_of_range"),
        (avro_values.scaled_micros, -9223372036832400000, "value_out_of_range"),
        (avro_values.millis_to_micros, 9223372036825200000, "value_out_of_range"),
        (avro_values.nanos_to_micros, -(2**63), "value_out_of_range"),
        (avro_values.days, 2146033979, "value_out_of_range"),
        (avro_values.decimal_of(3, 1), b"\x03\xe8", "value_out_of_range"),
        (avro_values.decimal_of(3, 1), b"\x7f" * 400_000, "value_out_of_range"),
        (avro_values.decimal_of(3, 1), b"", "bad_value"),
        (values.variable_scale, {"scale": 2**31 - 1, "value": b"\x01"}, "value_out_of_range"),
    ],
)
def test_a_value_that_no_final_type_holds_is_a_fault(convert, raw, code):
    with pytest.raises(RecordFault) as caught:
        convert(raw)
    assert caught.value.code == code
