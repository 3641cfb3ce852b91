"""Avro's own columnar converters give what the converters of single values give."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from twins import assert_twins  # type: ignore[import-not-found]

from cdc_lakehouse.avro.typed import fixed_bytes, values
from cdc_lakehouse.avro.typed.conversions import UTC, Micros, days
from cdc_lakehouse.avro.typed.meeting import fitting, fitting_column, widened
from cdc_lakehouse.avro.typed.nested import Members, Presence, members_of, presence

INTS = st.integers(-(2**31), 2**31 - 1)
FIXED_16, FIXED_12 = (st.binary(min_size=size, max_size=size) for size in (16, 12))


@settings(deadline=None)
@given(st.lists(st.none() | FIXED_16, min_size=1), st.lists(st.none() | FIXED_12, min_size=1))
def test_uuids_and_durations(uuids, durations):
    assert_twins(fixed_bytes.uuid_text, fixed_bytes.uuid_texts, uuids, (pa.binary(), pa.string()))
    types = (pa.binary(), fixed_bytes.DURATION)
    assert_twins(fixed_bytes.duration, fixed_bytes.durations, durations, types)


def test_a_uuid_has_its_canonical_text():
    guid = UUID("89791762-2336-4186-9674-299b90a802e2")
    assert fixed_bytes.uuid_texts(pa.array([guid.bytes], pa.binary()))[0].to_pylist() == [str(guid)]


@settings(deadline=None)
@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_timestamps_in_utc(raw):
    def twin(column: pa.Array) -> tuple[pa.Array, Any]:
        found, refused = Micros(1000, 1, UTC)(column)
        assert found.type == UTC
        return found.view(pa.int64()), refused

    assert_twins(values.millis_to_micros, twin, raw, (pa.int64(), pa.int64()))


ROWS = st.lists(
    st.none() | st.fixed_dictionaries({"a": st.none() | INTS, "b": st.text(max_size=2)}), min_size=1
)


@settings(deadline=None)
@given(ROWS)
def test_members_of_records(raw):
    was = pa.struct([("a", pa.int32()), ("b", pa.string())])
    now = pa.struct([("a", pa.date32()), ("b", pa.string())])
    assert_twins(members_of({"a": values.days}), Members((days, None)), raw, (was, now))


@settings(deadline=None)
@given(st.lists(st.none() | st.just({}), min_size=1))
def test_records_without_fields(raw):
    assert_twins(presence, Presence(), raw, (pa.struct([]), pa.bool_()))


def missing_is_null(convert: Any) -> Any:
    return lambda value: {"c": None, **convert(value)}


@settings(deadline=None)
@given(ROWS)
def test_structs_with_other_members(raw):
    was = pa.struct([("a", pa.int32()), ("b", pa.string())])
    wider = pa.struct([("c", pa.bool_()), ("b", pa.string()), ("a", pa.int64())])
    assert_twins(missing_is_null(fitting(was, wider)), fitting_column(was, wider), raw, (was, wider))
    other = pa.struct([("a", pa.string()), ("b", pa.string())])
    assert_twins(fitting(was, other), fitting_column(was, other), raw, (was, other))
    fewer = pa.struct([("b", pa.string())])
    assert_twins(fitting(was, fewer), fitting_column(was, fewer), raw, (was, fewer))


TEXT, INT, LONG = pa.string(), pa.int32(), pa.int64()


@pytest.mark.parametrize(
    ("was", "now", "both"),
    [
        (INT, LONG, LONG),
        (pa.float64(), pa.float32(), pa.float64()),
        (INT, TEXT, None),
        (pa.list_(INT), pa.list_(LONG), pa.list_(LONG)),
        (pa.map_(TEXT, LONG), pa.map_(TEXT, INT), pa.map_(TEXT, LONG)),
        (pa.list_(INT), pa.list_(TEXT), None),
        (pa.struct({"a": INT}), pa.struct({"b": TEXT, "a": LONG}), pa.struct({"a": LONG, "b": TEXT})),
        (pa.struct({"a": INT}), pa.struct({"a": TEXT}), None),
        (pa.decimal128(6, 2), pa.decimal128(5, 1), pa.decimal128(6, 2)),
        (pa.decimal128(6, 2), pa.decimal128(6, 3), None),
        (pa.list_(INT), INT, None),
    ],
)
def test_where_types_meet(was, now, both):
    assert widened(was, now) == both
    assert (both is None) or (fitting_column(was, both) is None) == (was == both)
