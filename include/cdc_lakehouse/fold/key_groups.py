"""Numbers for keys: rows with equal keys get the same number, whatever columns a key has."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pyarrow as pa

from cdc_lakehouse.fold.arrays import Int64s


def number_keys(*parts: pa.StructArray) -> tuple[list[Int64s], int]:
    """Return the number of each row's key, part by part, and how many keys there are.

    The parts are structs with the columns of the key, in one order and of the same types. NULL is a value:
    two keys that have it in the same column, and are otherwise equal, are one key.
    """
    names = [field.name for field in parts[0].type]
    codes = [_encode_column([part.field(name) for part in parts]) for name in names]
    numbers, count = reduce(_combine_codes, codes)
    ends = np.cumsum([len(part) for part in parts])
    return np.split(numbers, ends[:-1]), count


def _encode_column(columns: list[pa.Array]) -> tuple[Int64s, int]:
    encoded = pa.chunked_array(columns).combine_chunks().dictionary_encode(null_encoding="encode")
    codes: Int64s = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, max(1, len(encoded.dictionary))


def _combine_codes(one: tuple[Int64s, int], other: tuple[Int64s, int]) -> tuple[Int64s, int]:
    """Number the pairs that occur. The numbers stay below the number of rows, so no product overflows."""
    pairs, numbers = np.unique(one[0] * other[1] + other[0], return_inverse=True)
    return numbers.astype(np.int64), len(pairs)
