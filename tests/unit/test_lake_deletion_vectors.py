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
    write_vectors,
    z85_decoded,
    z85_encoded,
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


@pytest.mark.parametrize("text", ["HelloWorld", "0" * 10, "%nSc0"])
def test_z85_of_what_was_decoded_is_the_same_text(text):
    assert z85_encoded(z85_decoded(text)) == text


def test_bytes_are_filled_up_to_a_multiple_of_four():
    assert z85_decoded(z85_encoded(b"abcde")) == b"abcde\0\0\0"


FEW = np.array([1, 5, 65535, 2**32 + 7], np.uint64)
SCATTERED = np.arange(0, 300_000, 3, dtype=np.uint64)
CONNECTED = np.arange(10, 200_000, dtype=np.uint64)


@pytest.mark.parametrize(
    "written", [[FEW], [SCATTERED, FEW, CONNECTED, SCATTERED[7:]]], ids=["short", "mixed"]
)
def test_vectors_that_were_written_are_read_as_the_same_rows(written):
    files: dict[str, bytes] = {}

    vectors = write_vectors(written, write=files.__setitem__)
    told = [DeletionVector.from_action(vector.to_action()) for vector in vectors]

    for rows, vector in zip(written, told, strict=True):
        assert np.array_equal(deleted_rows(vector, read=files.__getitem__), rows)
    assert len(files) == (len(written) > 1)


def test_only_long_vectors_are_in_a_file():
    vectors = write_vectors([FEW, SCATTERED, CONNECTED], write=lambda _path, _data: None)

    assert [vector.storage for vector in vectors] == ["i", "u", "i"]


@pytest.mark.parametrize("data", [b"", b"\xff" * 12, bitmap_array((0, ARRAY))[:-1]])
def test_what_is_no_bitmap_is_refused(data):
    with pytest.raises(UnreadableVectorError):
        rows(data, cardinality=3)


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
