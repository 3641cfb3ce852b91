"""Raw columns of Debezium's semantic types into final ones: the columnar twins of `values`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lakehouse.avro.typed.columns import (
    Refused,
    numbers_of,
    numbers_of_offsets,
    present,
    refused_of,
    with_numbers,
)
from cdc_lakehouse.avro.typed.conversions import Cast, Each
from cdc_lakehouse.debezium import values

_ZONED_SIZES = np.array([20, *range(22, 28)])
"""`2024-02-29T23:59:59Z`, and the same with up to six digits of a fraction."""


def small(column: pa.Array) -> tuple[pa.Array, Refused]:
    found = numbers_of(column, np.int32)
    fitting = found.astype(np.int16)
    return with_numbers(column, fitting, pa.int16()), refused_of(column, fitting != found)


def time_nanos(column: pa.Array) -> tuple[pa.Array, Refused]:
    return with_numbers(column, numbers_of(column, np.int64) // 1000, pa.int64()), None


def zoned(column: pa.Array) -> tuple[pa.Array, Refused]:
    """Texts of the usual shape by Arrow's parser, others (infinity, far years, offsets) one by one."""
    type_ = pa.timestamp("us", tz="UTC")
    offsets = numbers_of_offsets(column)
    size = np.diff(offsets)
    data = np.frombuffer(column.buffers()[2] or bytes(1), np.uint8)
    usual = np.isin(size, _ZONED_SIZES)
    at = np.where(usual, offsets[:-1], 0)
    last = np.where(usual, offsets[1:] - 1, 0)
    if len(data) > 10:
        usual &= (data.take(np.minimum(at + 10, len(data) - 1)) == ord("T")) & (data.take(last) == ord("Z"))
    odd = ~usual & present(column)
    cast = Cast(type_, values.zoned_to_micros)
    if not odd.any():
        return cast(column)
    final, refused = cast(pc.if_else(pa.array(odd), pa.scalar(None, column.type), column))
    rows = np.flatnonzero(odd)
    single, wrong = Each(type_, values.zoned_to_micros)(column.take(pa.array(rows)))
    merged = pc.replace_with_mask(final, pa.array(odd), single)
    all_refused = np.zeros(len(column), bool) if refused is None else refused
    if wrong is not None:
        all_refused[rows[wrong]] = True
    return merged, all_refused if all_refused.any() else None


def same_text(column: pa.Array) -> str | None:
    """The text that all values are, as with most of `source`; None also where there is a null."""
    if column.null_count or not len(column):
        return None
    offsets = numbers_of_offsets(column)
    size = int(offsets[1] - offsets[0])
    if int(offsets[-1] - offsets[0]) != size * len(column) or (size and (np.diff(offsets) != size).any()):
        return None
    data = np.frombuffer(column.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    rows = data.reshape(len(column), size)
    return str(column[0]) if (rows == rows[0]).all() else None
