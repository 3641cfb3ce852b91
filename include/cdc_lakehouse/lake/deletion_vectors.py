"""Deletion vectors of Delta files: which rows of a data file are gone.

A vector is a RoaringBitmapArray (Delta's protocol, "Deletion Vector Format"), inside the log or in a
file beside the data: a magic number, then what Roaring calls the portable format of 64 bits.
"""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap64

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_UUID_CHARACTERS = 20
_MAGIC = struct.pack("<i", 1681511377)
_VERSION = b"\x01"
"""First byte of a file of vectors."""
_MOST_INLINE_BYTES = 512
"""A longer vector goes to a file: everybody who reads the table reads its log."""

Rows = NDArray[np.uint64]
ReadBytes = Callable[[str], bytes]
WriteBytes = Callable[[str, bytes], None]


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
        file = _file_name(uuid.UUID(bytes=z85_decoded(name)))
        return f"{prefix}/{file}" if prefix else file

    def to_action(self) -> dict[str, Any]:
        """Return the vector as an `add` action says it."""
        document = {
            "storageType": self.storage,
            "pathOrInlineDv": self.place,
            "sizeInBytes": self.size,
            "cardinality": self.cardinality,
        }
        return document if self.storage == "i" else {**document, "offset": self.offset}


def deleted_rows(vector: DeletionVector, *, read: ReadBytes) -> Rows:
    """Positions in the data file, ascending; `read` gets a path relative to the table."""
    path = vector.path
    data = z85_decoded(vector.place) if path is None else _stored(read(path), vector)
    rows = _decode_bitmap(data[: vector.size])
    if len(rows) != vector.cardinality:
        raise UnreadableVectorError(f"{len(rows)} deleted rows, the log says {vector.cardinality}")
    return rows


def write_vectors(deleted: Sequence[Rows], *, write: WriteBytes) -> list[DeletionVector]:
    """Return a vector for each of `deleted`, the rows that are gone from one data file.

    `write` gets a path relative to the table, at most once, with all vectors that are too long for the log.
    A second call writes another file.
    """
    name, file, vectors = uuid.uuid4(), bytearray(_VERSION), []
    for rows in deleted:
        data, place, offset = _encode_bitmap(rows), z85_encoded(name.bytes), len(file)
        if len(data) <= _MOST_INLINE_BYTES:
            vectors.append(DeletionVector("i", z85_encoded(data), 0, len(data), len(rows)))
            continue
        file += struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
        vectors.append(DeletionVector("u", place, offset, len(data), len(rows)))
    if len(file) > len(_VERSION):
        write(_file_name(name), bytes(file))
    return vectors


def z85_encoded(data: bytes) -> str:
    """Return the text of some bytes, which are filled up with zeros to a multiple of four."""
    characters = []
    for start in range(0, len(data), 4):
        number = int.from_bytes(data[start : start + 4].ljust(4, b"\0"), "big")
        characters += [_Z85[number // 85**power % 85] for power in (4, 3, 2, 1, 0)]
    return "".join(characters)


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


def _file_name(name: uuid.UUID) -> str:
    return f"deletion_vector_{name}.bin"


def _encode_bitmap(rows: Rows) -> bytes:
    bitmap = BitMap64(rows)
    bitmap.run_optimize()
    data: bytes = bitmap.serialize()
    return _MAGIC + data


def _decode_bitmap(data: bytes) -> Rows:
    if data[: len(_MAGIC)] != _MAGIC:
        raise UnreadableVectorError(f"magic number {data[: len(_MAGIC)].hex()}")
    try:
        bitmap = BitMap64.deserialize(data[len(_MAGIC) :])
    except (ValueError, IndexError) as exc:
        raise UnreadableVectorError(f"no bitmap of Roaring: {exc}") from exc
    return np.asarray(bitmap.to_array(), np.uint64)
