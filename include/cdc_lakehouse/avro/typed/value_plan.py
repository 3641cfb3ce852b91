"""What becomes of a type of a writer schema."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from cdc_lakehouse.avro.typed import values
from cdc_lakehouse.avro.typed.columns import ConvertColumn
from cdc_lakehouse.avro.typed.conversions import Each
from cdc_lakehouse.avro.typed.decimal_texts import DecimalTextColumn
from cdc_lakehouse.avro.typed.decimals import DecimalColumn
from cdc_lakehouse.avro.typed.text_sizes import DecimalTextSize, TextSize
from cdc_lakehouse.avro.typed.values import Convert

_MAX_PRECISION = 38


@dataclass(frozen=True, eq=False, slots=True)
class ValuePlan:
    """How one field becomes final."""

    type: pa.DataType
    convert: Convert | None = None
    """None: the raw value is the final one."""
    column: ConvertColumn | None = None
    """The same for a column of raw values; None: the raw column is the final one."""
    text_size: TextSize | None = None
    """Length of the texts that are made of its numbers; None where none are made."""


class TypeRefusedError(Exception):
    """The text names the type; the caller says whose it is."""


def one_by_one(type_: pa.DataType, convert: Convert) -> ValuePlan:
    """For what is rare: the column is converted value by value too."""
    return ValuePlan(type_, convert, Each(type_, convert))


def decimal_plan(precision: int, scale: int) -> ValuePlan:
    """Text for what no decimal type of Spark holds."""
    if precision > _MAX_PRECISION or not 0 <= scale <= precision:
        convert, column = values.wide_decimal_of(scale), DecimalTextColumn(scale)
        return ValuePlan(pa.string(), convert, column, DecimalTextSize(scale))
    type_ = pa.decimal128(precision, scale)
    return ValuePlan(type_, values.decimal_of(precision, scale), DecimalColumn(precision, scale))
