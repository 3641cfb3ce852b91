"""Columns of decimals that no decimal type of Spark holds, as exact plain text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lakehouse.avro.faults import RecordFault
from cdc_lakehouse.avro.typed.columns import Refused, present, sizes_of
from cdc_lakehouse.avro.typed.decimals import LONGEST, words_of
from cdc_lakehouse.avro.typed.values import MAX_SCALE, wide_decimal_of

_SCALES = 64
"""So many scales in one column are worth an operation each; sound columns have a few."""
_INTEGER = pa.decimal128(38, 0)


@dataclass(frozen=True, slots=True)
class DecimalTextColumn:
    """Twin of `values.wide_decimal_of`: one scale for all values."""

    scale: int

    def __call__(self, column: pa.Array) -> tuple[pa.Array, Refused]:
        # A schema may say any number; beyond the bound all are as bad, and some do not fit 64 bits.
        scale = max(-MAX_SCALE - 1, min(self.scale, MAX_SCALE + 1))
        return decimal_texts(column, np.full(len(column), scale, np.int64))


def decimal_texts(column: pa.Array, scale: np.ndarray) -> tuple[pa.Array, Refused]:
    """Big-endian two's complement, each with a scale of its own; nulls stay."""
    there = present(column)
    size = sizes_of(column)
    usual = there & (size > 0) & (size <= LONGEST) & (np.abs(scale) <= MAX_SCALE)
    scales = np.unique(scale[usual])[:_SCALES]
    usual &= np.isin(scale, scales)
    rows = [np.flatnonzero(usual & (scale == each)) for each in scales.tolist()]
    digits = _integers(column)
    parts = [
        _scaled(digits.take(pa.array(own)), each) for own, each in zip(rows, scales.tolist(), strict=True)
    ]
    odd = np.flatnonzero(there & ~usual)
    refused = np.zeros(len(column), bool)
    parts.append(
        pa.array([_single(column, place, int(scale[place]), refused) for place in odd.tolist()], pa.string())
    )
    place_of = np.full(len(column), -1, np.int64)
    order = np.concatenate([*rows, odd]).astype(np.int64)
    place_of[order] = np.arange(len(order))
    return pa.concat_arrays(parts).take(
        pa.array(place_of, mask=place_of < 0)
    ), refused if refused.any() else None


def _single(column: pa.Array, place: int, scale: int, refused: np.ndarray) -> str | None:
    try:
        return str(wide_decimal_of(scale)(column[place].as_py()))
    except RecordFault:
        refused[place] = True
        return None


def _integers(column: pa.Array) -> pa.Array:
    """The unscaled values as text; whatever at those that are null or longer than 16 bytes."""
    low, high = words_of(column)
    words = np.stack([low, high], axis=1)
    return pa.Array.from_buffers(_INTEGER, len(column), [None, pa.py_buffer(words)], 0).cast(pa.string())


def _scaled(integers: pa.Array, scale: int) -> pa.Array:
    if scale == 0:
        return integers
    if scale < 0:
        longer = pc.binary_join_element_wise(integers, "0" * -scale, "")
        return pc.if_else(pc.equal(integers, "0"), integers, longer)
    sign = pc.if_else(pc.starts_with(integers, "-"), "-", "")
    digits = pc.utf8_lpad(pc.utf8_ltrim(integers, "-"), scale + 1, "0")
    whole = pc.utf8_slice_codeunits(digits, 0, -scale)
    part = pc.utf8_slice_codeunits(digits, -scale, None)
    return pc.binary_join_element_wise(sign, whole, pc.binary_join_element_wise(".", part, ""), "")
