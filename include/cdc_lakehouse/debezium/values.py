"""Raw values of Debezium's semantic types into final ones, one value at a time (`cdc-semantics` §7).

What Avro itself gives a meaning to stands in `avro.typed.values`, texts of dates and times in `iso`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cdc_lakehouse.avro.typed.values import out_of_range, plain_text, unscaled


def small(value: int) -> int:
    """A number that its source declared to have 16 bits."""
    if not -(2**15) <= value < 2**15:
        raise out_of_range("int of more than 16 bits")
    return value


def time_nanos_to_micros(value: int) -> int:
    return value // 1000


def variable_scale(value: Mapping[str, Any]) -> str:
    return plain_text(unscaled(value["value"]), value["scale"])
