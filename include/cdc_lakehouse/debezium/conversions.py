"""Raw columns of Debezium's semantic types into final ones: the columnar twins of `values`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lakehouse.avro.typed.columns import (
    Refused,
    numbers_of,
    numbers_of_offsets,
    refused_of,
    with_numbers,
)
from cdc_lakehouse.avro.typed.decimal_texts import decimal_texts


def small(column: pa.Array) -> tuple[pa.Array, Refused]:
    found = numbers_of(column, np.int32)
    fitting = found.astype(np.int16)
    return with_numbers(column, fitting, pa.int16()), refused_of(column, fitting != found)


def time_nanos(column: pa.Array) -> tuple[pa.Array, Refused]:
    return with_numbers(column, numbers_of(column, np.int64) // 1000, pa.int64()), None


def variable_scale(column: pa.Array) -> tuple[pa.Array, Refused]:
    """Twin of `values.variable_scale`."""
    scale, value = column.field("scale"), column.field("value")
    missing = pc.is_null(column) if column.null_count else None
    if missing is not None:
        value = pc.if_else(missing, pa.scalar(None, value.type), value)
    return decimal_texts(value, numbers_of(scale, np.int32).astype(np.int64))


def same_text(column: pa.Array) -> str | None:
    """The text that all values are, as with most of `source`; None also where there is a null."""
    if column.null_count or not len(column):
        return None
    offsets = numbers_of_offsets(column)
    size = int(offsets[1] - offsets[0])
    if int(offsets[-1] - offsets[0]) != size * len(column) or (size and (np.diff(offsets) != size).any()):
        return None
    data = np.frombuffer(column.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    # Each text against the one before it: two long pieces of memory.
    return str(column[0]) if (data[size:] == data[: len(data) - size]).all() else None
