"""Raw Avro values into final ones, one value at a time.

What an Arrow column of the final type takes: ints for dates and timestamps, Decimal, text. Nothing
here goes through `datetime`, whose years end at 9999, or a decimal context that rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import lru_cache
from typing import Any

from cdc_lakehouse.avro.faults import RecordFault, ValueFault

Convert = Callable[[Any], Any]

FIRST_DAY, LAST_DAY = date.min.toordinal() - 719163, date.max.toordinal() - 719163
MINUS_INFINITY, INFINITY = -9223372036832400000, 9223372036825200000
"""How the PostgreSQL driver writes infinity; everything beyond is another spelling of it, and no more
than half a minute of a year that has six digits (`cdc-semantics` §7)."""
_MAX_DECIMAL_BYTES = 1_700
"""About 4,090 digits: what Python turns into text without complaint, in microseconds."""
MAX_SCALE = 16_383


def out_of_range(detail: str) -> RecordFault:
    return RecordFault(ValueFault.VALUE_OUT_OF_RANGE, detail)


def bad_value(detail: str) -> RecordFault:
    return RecordFault(ValueFault.BAD_VALUE, detail)


def days(value: int) -> int:
    if not FIRST_DAY <= value <= LAST_DAY:
        raise out_of_range("date outside the years 1 to 9999, or infinity")
    return value


def scaled_micros(value: int, *, numerator: int = 1, denominator: int = 1) -> int:
    """Micros of a timestamp in another unit; smaller parts than a microsecond are cut off."""
    micros = value * numerator // denominator
    longest = 2**63 - 1
    if value in (longest, -longest - 1) or not MINUS_INFINITY < micros < INFINITY:
        raise out_of_range("timestamp too far away, or infinity")
    return micros


def millis_to_micros(value: int) -> int:
    return scaled_micros(value, numerator=1000)


def nanos_to_micros(value: int) -> int:
    return scaled_micros(value, denominator=1000)


def time_millis_to_micros(value: int) -> int:
    return value * 1000


def decimal_of(precision: int, scale: int) -> Convert:
    """Big-endian two's complement into an exact Decimal of at most `precision` digits."""
    limit = 10**precision

    def convert(value: bytes) -> Decimal:
        number = unscaled(value)
        if not -limit < number < limit:
            raise out_of_range(f"decimal of more than {precision} digits")
        return Decimal(number).scaleb(-scale, _WIDE)

    return convert


@lru_cache(maxsize=4096)
def wide_decimal_of(scale: int) -> Convert:
    """A decimal that no Spark type holds, as exact plain text."""

    def convert(value: bytes) -> str:
        return plain_text(unscaled(value), scale)

    return convert


def plain_text(unscaled: int, scale: int) -> str:
    """`12345` with scale 2 is `123.45`, with scale -2 `1234500`; trailing zeros stay."""
    if abs(scale) > MAX_SCALE:
        raise out_of_range("decimal with a scale beyond 16383")
    sign, digits = "-" if unscaled < 0 else "", str(abs(unscaled))
    if scale <= 0:
        return sign + (digits + "0" * -scale if unscaled else "0")
    digits = digits.rjust(scale + 1, "0")
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}"


def unscaled(value: bytes) -> int:
    """Length first: a decimal of 400 KB takes Python seconds (`guarantees` §4)."""
    if not value:
        raise bad_value("decimal without bytes")
    if len(value) > _MAX_DECIMAL_BYTES:
        raise out_of_range(f"decimal of {len(value)} bytes")
    return int.from_bytes(value, "big", signed=True)


@lru_cache(maxsize=4096)
def rescaled(precision: int, scale: int) -> Convert:
    """A Decimal in another precision and scale, or a fault where digits would be lost."""
    context, unit = Context(prec=precision, traps=[Inexact, InvalidOperation]), Decimal(1).scaleb(-scale)

    def convert(value: Decimal) -> Decimal:
        try:
            return value.quantize(unit, context=context)
        except (Inexact, InvalidOperation):
            raise RecordFault(
                ValueFault.INCOMPATIBLE_SCHEMA, f"value does not fit decimal({precision},{scale}) exactly"
            ) from None

    return convert


_WIDE = Context(prec=100)
