"""Avro's own logical types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from cdc_lakehouse.avro.typed import conversions, fixed_bytes, values
from cdc_lakehouse.avro.typed.conversions import NTZ, UTC, Micros
from cdc_lakehouse.avro.typed.value_plan import TypeRefusedError, ValuePlan, decimal_plan

DATE = ValuePlan(pa.date32(), values.days, conversions.days)
TIME_MILLIS = ValuePlan(pa.int64(), values.time_millis_to_micros, conversions.time_millis)
_UUID, _DURATION = 16, 12

_OF_NUMBERS: Mapping[tuple[str, str], ValuePlan] = {
    ("int", "date"): DATE,
    ("int", "time-millis"): TIME_MILLIS,
    ("long", "time-micros"): ValuePlan(pa.int64()),
    ("long", "timestamp-millis"): ValuePlan(UTC, values.millis_to_micros, Micros(1000, 1, UTC)),
    ("long", "timestamp-micros"): ValuePlan(UTC, values.scaled_micros, Micros(1, 1, UTC)),
    ("long", "timestamp-nanos"): ValuePlan(UTC, values.nanos_to_micros, Micros(1, 1000, UTC)),
    ("long", "local-timestamp-millis"): ValuePlan(NTZ, values.millis_to_micros, Micros(1000, 1)),
    ("long", "local-timestamp-micros"): ValuePlan(NTZ, values.scaled_micros, Micros(1, 1)),
    ("long", "local-timestamp-nanos"): ValuePlan(NTZ, values.nanos_to_micros, Micros(1, 1000)),
}
_OF_FIXED: Mapping[tuple[int, str], ValuePlan] = {
    (_UUID, "uuid"): ValuePlan(pa.string(), fixed_bytes.uuid_text, fixed_bytes.uuid_texts),
    (_DURATION, "duration"): ValuePlan(fixed_bytes.DURATION, fixed_bytes.duration, fixed_bytes.durations),
}


def logical_plan(attributes: Mapping[str, Any], kind: str) -> ValuePlan | None:
    """None for no logical type, an unknown one, or one that may not stand here: the type below it counts,
    as the Avro specification says. Raises `TypeRefusedError` for a decimal of negative scale."""
    logical = attributes.get("logical")
    if not isinstance(logical, str):
        return None
    if logical == "decimal" and kind in ("bytes", "fixed"):
        return _decimal(attributes)
    if kind == "fixed":
        return _OF_FIXED.get((int(attributes["size"]), logical))
    return _OF_NUMBERS.get((kind, logical))


def _decimal(attributes: Mapping[str, Any]) -> ValuePlan | None:
    precision, scale = _number(attributes.get("precision")), _number(attributes.get("scale", 0))
    if precision is None or scale is None:
        return None
    if scale < 0:
        raise TypeRefusedError(f"decimal of the negative scale {scale}")
    return decimal_plan(precision, scale) if precision > 0 and scale <= precision else None


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
