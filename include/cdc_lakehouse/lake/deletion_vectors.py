"""Deletion vectors of Delta files: which rows of a data file are gone.

A vector is a RoaringBitmapArray (Delta's protocol, "Deletion Vector Format"), inside the log or in a
file beside the data.
"""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_UUID_CHARACTERS = 20
_MAGIC = 1681511377
_WITH_RUNS, _WITHOUT_RUNS = 12347, 12346
_OFFSETS_FROM = 4
"""From this many containers on a bitmap with runs lists their offsets too."""
_MOST_IN_AN_ARRAY = 4096
_BITMAP_BYTES = 8192

Rows = NDArray[np.uint64]
ReadBytes = Callable[[str], bytes]


class UnreadableVectorError(ValueError):
    """Not the format that the protocol describes: better no rows than wrong rows."""


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """What an `add` action says about it."""

    storage: str
    place: str
    """A path, or the vector itself, in the words of `storage`."""
    offset: int
    size: int
    cardinality: int

    @classmethod
    def from_action(cls, document: Mapping[str, Any]) -> DeletionVector:
        return cls(
            storage=document["storageType"],
            place=document["pathOrInlineDv"],
            offset=document.get("offset") or 0,
            size=document["sizeInBytes"],
            cardinality=document["cardinality"],
        )

    @property
    def path(self) -> str | None:
        """Relative to the table for `u`; None when the vector is in the log."""
        if self.storage == "i":
            return None
        if self.storage != "u":
            raise UnreadableVectorError(f"a deletion vector of storage type {self.storage!r}")
        prefix, name = self.place[:-_UUID_CHARACTERS], self.place[-_UUID_CHARACTERS:]
        file = f"deletion_vector_{uuid.UUID(bytes=z85_decoded(name))}.bin"
        return f"{prefix}/{file}" if prefix else file


def deleted_rows(vector: DeletionVector, *, read: ReadBytes) -> Rows:
    """Positions in the data file, ascending; `read` gets a path relative to the table."""
    path = vector.path
    data = z85_decoded(vector.place) if path is None else _stored(read(path), vector)
    rows = _bitmap_array(data[: vector.size])
    if len(rows) != vector.cardinality:
        raise UnreadableVectorError(f"{len(rows)} deleted rows, the log says {vector.cardinality}")
    return rows


def z85_decoded(text: str) -> bytes:
    """Five characters are four bytes."""
    found = bytearray()
    for start in range(0, len(text), 5):
        number = 0
        for character in text[start : start + 5]:
            number = number * 85 + _Z85.index(character)
        found += number.to_bytes(4, "big")
    return bytes(found)


def _stored(file: bytes, vector: DeletionVector) -> bytes:
    size, start = struct.unpack_from(">i", file, vector.offset)[0], vector.offset + 4
    data = file[start : start + size]
    if size != vector.size or struct.unpack_from(">I", file, start + size)[0] != zlib.crc32(data):
        raise UnreadableVectorError("its size or checksum is wrong")
    return data


def _bitmap_array(data: bytes) -> Rows:
    magic, count = struct.unpack_from("<iq", data, 0)
    if magic != _MAGIC:
        raise UnreadableVectorError(f"magic number {magic}")
    position, parts = 12, [np.empty(0, np.uint64)]
    for _ in range(count):
        high = np.uint64(struct.unpack_from("<I", data, position)[0]) << np.uint64(32)
        values, position = _bitmap(data, position + 4)
        parts.append(high | values)
    return np.concatenate(parts)


def _bitmap(data: bytes, position: int) -> tuple[Rows, int]:
    """One 32-bit Roaring bitmap in its portable format, and where it ends."""
    cookie = struct.unpack_from("<I", data, position)[0]
    position += 4
    is_run = b""
    if cookie & 0xFFFF == _WITH_RUNS:
        count = (cookie >> 16) + 1
        is_run = data[position : position + (count + 7) // 8]
        position += len(is_run)
    elif cookie == _WITHOUT_RUNS:
        count = struct.unpack_from("<I", data, position)[0]
        position += 4
    else:
        raise UnreadableVectorError(f"cookie {cookie}")
    heads = np.frombuffer(data, "<u2", 2 * count, position).reshape(-1, 2).astype(np.uint64)
    position += 4 * count
    if not is_run or count >= _OFFSETS_FROM:
        position += 4 * count
    parts = [np.empty(0, np.uint64)]
    for index, (key, last) in enumerate(heads):
        runs = bool(is_run) and bool(is_run[index // 8] >> index % 8 & 1)
        values, position = _container(data, position, size=int(last) + 1, runs=runs)
        parts.append((key << np.uint64(16)) | values)
    return np.concatenate(parts), position


def _container(data: bytes, position: int, *, size: int, runs: bool) -> tuple[Rows, int]:
    if runs:
        count = struct.unpack_from("<H", data, position)[0]
        pairs = np.frombuffer(data, "<u2", 2 * count, position + 2).reshape(-1, 2)
        return np.concatenate([*_expanded(pairs)]), position + 2 + 4 * count
    if size <= _MOST_IN_AN_ARRAY:
        return np.frombuffer(data, "<u2", size, position).astype(np.uint64), position + 2 * size
    bits = np.unpackbits(np.frombuffer(data, np.uint8, _BITMAP_BYTES, position), bitorder="little")
    return np.flatnonzero(bits).astype(np.uint64), position + _BITMAP_BYTES


def _expanded(pairs: NDArray[np.uint16]) -> Iterator[Rows]:
    yield np.empty(0, np.uint64)
    for start, more in pairs:
        yield np.arange(int(start), int(start) + int(more) + 1, dtype=np.uint64)
