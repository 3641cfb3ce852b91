"""Values as bytes that no other value of their type has, and rows of them as digests."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Digests = np.ndarray
"""One line of two 64-bit numbers per row."""
_DIGEST_BYTES = 16
_NAN = float("nan")


def cells(values: pa.Array) -> pa.Array:
    """One binary value for each; NULL stays NULL, which is not the empty text."""
    type_ = values.type
    if pa.types.is_list(type_):
        return _of_lists(values)
    if pa.types.is_floating(type_):
        values = _bits(values)
    elif pa.types.is_timestamp(type_):
        values = values.view(pa.int64())
    if not (pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type)):
        values = pc.cast(values, pa.string())
    return pc.cast(values, pa.binary())


def marked(found: pa.Array) -> pa.Array:
    """Cells with their lengths before them, so that ("ab", "c") and ("a", "bc") stay apart."""
    lengths = pc.cast(pc.cast(pc.binary_length(found), pa.string()), pa.binary())
    whole = pc.binary_join_element_wise(lengths, found, b":")
    return pc.fill_null(whole, b"N")


def digests(columns: Sequence[pa.Array]) -> Digests:
    """Of the rows that these columns of cells make."""
    rows = pc.binary_join_element_wise(*(marked(column) for column in columns), b"")
    whole = b"".join(blake2b(row, digest_size=_DIGEST_BYTES).digest() for row in rows.to_pylist())
    return np.frombuffer(whole, dtype=np.uint64).reshape(-1, 2)


def _bits(values: pa.Array) -> pa.Array:
    """Of the same width on both sides; every NaN is the same."""
    wide = pc.cast(values, pa.float64())
    numbers = pc.fill_null(wide, 0.0).to_numpy(zero_copy_only=False)
    numbers = np.where(np.isnan(numbers), _NAN, numbers)
    return pc.if_else(wide.is_valid(), pa.array(numbers.view(np.int64)), pa.scalar(None, pa.int64()))


def _of_lists(values: pa.Array) -> pa.Array:
    whole = pa.concat_arrays([values])
    items = marked(cells(whole.values))
    mask = whole.is_null()
    lists = pa.ListArray.from_arrays(pc.fill_null(whole.offsets, 0), items, mask=mask)
    return pc.binary_join(lists, pa.scalar(b"", pa.binary()))
