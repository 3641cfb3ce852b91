"""The block `source`, one by one and as a column."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cdc_lakehouse.debezium.source import source_of
from cdc_lakehouse.debezium.source_columns import source_columns


@pytest.mark.parametrize(
    ("millis", "micros"),
    [
        (9_223_372_036_854_775, 9_223_372_036_854_775_000),
        (9_223_372_036_854_776, None),
        (-9_223_372_036_854_775, -9_223_372_036_854_775_000),
        (-9_223_372_036_854_776, None),
        (-(2**63), None),
    ],
)
def test_a_commit_time_that_64_bits_of_microseconds_do_not_hold_is_not_known(millis, micros):
    block = {"ts_ms": millis}

    column = source_columns(pa.array([block], pa.struct([("ts_ms", pa.int64())])))

    assert column.field("ts").view(pa.int64()).to_pylist() == [micros]
    source = source_of(block)
    assert source is not None
    assert source.ts == micros
