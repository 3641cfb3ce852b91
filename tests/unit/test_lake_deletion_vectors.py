"""Deletion vectors: every container of the format, and nothing that is not the format."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest

from cdc_lakehouse.lake.deletion_vectors import (
    DeletionVector,
    UnreadableVectorError,
    deleted_rows,
    z85_decoded,
)

ARRAY = struct.pack("<IIHHI", 12346, 1, 0, 2, 16) + struct.pack("<HHH", 1, 5, 65535)
RUNS = struct.pack("<IB", 12347, 1) + struct.pack("<HH", 1, 4) + struct.pack("<HHHHH", 2, 3, 1, 10, 2)
BITS = (
    struct.pack("<IIHHI", 12346, 1, 0, 4999, 16)
    + np.packbits(np.arange(65536) < 5000, bitorder="little").tobytes()
)


def bitmap_array(*bitmaps: tuple[int, bytes]) -> bytes:
    parts = [struct.pack("<I", high) + bitmap for high, bitmap in bitmaps]
    return struct.pack("<iq", 1681511377, len(bitmaps)) + b"".join(parts)


def stored(data: bytes, *, cardinality: int, offset: int = 1) -> tuple[DeletionVector, bytes]:
    file = b"\x01" * offset + struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    return DeletionVector("u", "ab0123456789abcdefghij", offset, len(data), cardinality), file


def rows(data: bytes, *, cardinality: int) -> list[int]:
    vector, file = stored(data, cardinality=cardinality)
    return list(deleted_rows(vector, read=lambda _path: file).tolist())


def test_an_array_of_positions():
    assert rows(bitmap_array((0, ARRAY)), cardinality=3) == [1, 5, 65535]


def test_runs_of_positions():
    base = 1 << 16

    assert rows(bitmap_array((0, RUNS)), cardinality=5) == [
        base + 3,
        base + 4,
        base + 10,
        base + 11,
        base + 12,
    ]


def test_a_bit_per_position():
    assert rows(bitmap_array((0, BITS)), cardinality=5000) == list(range(5000))


def test_positions_beyond_32_bits():
    assert rows(bitmap_array((0, ARRAY), (1, ARRAY)), cardinality=6)[3:] == [
        (1 << 32) + 1,
        (1 << 32) + 5,
        (1 << 32) + 65535,
    ]


def test_nothing_deleted():
    assert rows(bitmap_array(), cardinality=0) == []


def test_its_file_is_named_by_a_uuid_below_its_prefix():
    vector = DeletionVector("u", "ab^-aqEH.-t@S}K{vb[*k^", 4, 40, 6)

    assert vector.path == "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"


def test_z85_is_the_one_of_its_specification():
    assert z85_decoded("HelloWorld") == bytes.fromhex("864fd26fb559f75b")


def test_another_number_of_rows_than_the_log_says_is_refused():
    with pytest.raises(UnreadableVectorError):
        rows(bitmap_array((0, ARRAY)), cardinality=4)


def test_a_damaged_file_is_refused():
    vector, file = stored(bitmap_array((0, ARRAY)), cardinality=3)

    with pytest.raises(UnreadableVectorError):
        deleted_rows(vector, read=lambda _path: file[:-6] + b"\x00" + file[-5:])


def test_an_unknown_storage_type_is_refused():
    with pytest.raises(UnreadableVectorError):
        deleted_rows(DeletionVector("x", "", 0, 0, 0), read=lambda _path: b"")
