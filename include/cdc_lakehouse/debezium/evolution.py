"""Types of one column over time: those that meet in Avro (`avro.typed.meeting`), and MySQL's flags.

One MySQL column, TINYINT(1), is a boolean and a small number, depending on snapshot or stream
(`cdc-semantics` §4).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cdc_lakehouse.avro.faults import RecordFault, ValueFault
from cdc_lakehouse.avro.typed import meeting
from cdc_lakehouse.avro.typed.columns import ConvertColumn, Refused, numbers_of, refused_of
from cdc_lakehouse.avro.typed.conversions import Cast
from cdc_lakehouse.avro.typed.values import Convert

_FLAGS = (pa.bool_(), pa.int16())


def widened(was: pa.DataType, now: pa.DataType) -> pa.DataType | None:
    """The type that a column of `was` gets so that it holds `now` too; None when there is none."""
    if was in _FLAGS and now in _FLAGS:
        return was
    if pa.types.is_nested(was) and was != now:
        return None  # a stored struct or list that grows inside is more than a merge of ours can do
    return meeting.widened(was, now)


def fitting(value: pa.DataType, column: pa.DataType) -> Convert | None:
    """From a final value of the one type to one of the other; None when it can stay as it is.

    Where types do not meet, the conversion faults: null still fits, a value does not.
    """
    if value == pa.bool_() and column == pa.int16():
        return int
    if value == pa.int16() and column == pa.bool_():
        return _flag
    return meeting.fitting(value, column)


def fitting_column(value: pa.DataType, column: pa.DataType) -> ConvertColumn | None:
    """`fitting` for a column of final values."""
    if value == pa.bool_() and column == pa.int16():
        return Cast(column, int)
    if value == pa.int16() and column == pa.bool_():
        return Flag()
    return meeting.fitting_column(value, column)


@dataclass(frozen=True, slots=True)
class Flag:
    """Twin of the fit of a number to a boolean column."""

    def __call__(self, column: pa.Array) -> tuple[pa.Array, Refused]:
        found = numbers_of(column, np.int16)
        return column.cast(pa.bool_()), refused_of(column, (found < 0) | (found > 1))


def _flag(value: int) -> bool:
    if value not in (0, 1):
        raise RecordFault(ValueFault.INCOMPATIBLE_SCHEMA, "number other than 0 and 1, the column is boolean")
    return value == 1
