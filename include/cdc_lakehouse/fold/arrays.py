"""Columns of Arrow as numpy arrays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cdc_lakehouse.debezium.operations import Operation

Bools = NDArray[np.bool_]
Int64s = NDArray[np.int64]


def as_array(column: pa.ChunkedArray) -> pa.Array:
    """Return a column of a table as one array."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def as_mask(column: pa.Array | pa.ChunkedArray) -> Bools:
    """Return which rows are true; NULL is not."""
    mask: Bools = column.fill_null(False).to_numpy(zero_copy_only=False)
    return mask


def as_numbers(column: pa.Array | pa.ChunkedArray) -> Int64s:
    """Return integers, with 0 for NULL."""
    numbers: Int64s = column.fill_null(0).to_numpy(zero_copy_only=False)
    return numbers.astype(np.int64, copy=False)


def has_operation(operations: pa.Array | pa.ChunkedArray, operation: Operation) -> Bools:
    return as_mask(pc.equal(operations, operation.value))
