"""Which keys differ, how, and in which columns: from the rows of chunks that differ."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import blake2b

import numpy as np

from cdc_lakehouse.verification.cells import digests
from cdc_lakehouse.verification.chunks import Opened, chunks_of
from cdc_lakehouse.verification.sides import RowBatch

Key = tuple[str, ...]
_HASH_BYTES = 8
NO_VALUE = "NULL"
"""Stands where a value has its hash."""


class Kind(StrEnum):
    MISSING = "missing"
    """In the source only."""
    SURPLUS = "surplus"
    """In silver only."""
    CHANGED = "changed"
    DOUBLED = "doubled"
    """More than once in silver: no event that is still to come explains it."""


@dataclass(frozen=True, slots=True)
class Difference:
    key: Key
    kind: Kind
    token: str
    """Who wrote the source's row last; where it has none, who wrote silver's."""
    columns: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Column that differs -> hashes of the source's value and of silver's, of use within one report."""


@dataclass(frozen=True, slots=True)
class _Row:
    hashes: tuple[bytes, ...]
    token: str


Rows = Mapping[tuple[bytes, ...], Sequence[_Row]]
"""By the cells of their keys."""


class ChunkReader:
    """Collects rows of the opened chunks. Values become hashes, with a secret that nobody keeps."""

    def __init__(self, opened: Opened, *, keys: int) -> None:
        self._opened = opened.chunks
        self._keys = keys
        self._secret = secrets.token_bytes(16)

    def rows(self, batches: Iterable[RowBatch]) -> Rows:
        found: dict[tuple[bytes, ...], list[_Row]] = defaultdict(list)
        for batch in batches:
            key_digests = digests(batch.cells[: self._keys])
            wanted = np.flatnonzero(self._opened[chunks_of(key_digests, count=len(self._opened))])
            if not len(wanted):
                continue
            columns = [column.take(wanted).to_pylist() for column in batch.cells]
            tokens = batch.tokens.take(wanted).to_pylist()
            for *row, token in zip(*columns, tokens, strict=True):
                hashes = tuple(self._hash(cell) for cell in row)
                found[tuple(row[: self._keys])].append(_Row(hashes, str(token)))
        return found

    def _hash(self, cell: bytes | None) -> bytes:
        if cell is None:
            return b""
        return blake2b(cell, digest_size=_HASH_BYTES, key=self._secret).digest()


def differences(source: Rows, silver: Rows, *, columns: Sequence[str]) -> list[Difference]:
    """By key. `columns` are those of the rows, in their order."""
    keys = sorted(source.keys() | silver.keys())
    found = (_difference(key, source.get(key, ()), silver.get(key, ()), columns) for key in keys)
    return [each for each in found if each is not None]


def _difference(
    key: tuple[bytes, ...], ours: Sequence[_Row], theirs: Sequence[_Row], columns: Sequence[str]
) -> Difference | None:
    told = tuple(part.decode("utf-8", "backslashreplace") for part in key)
    token = f"written by {ours[0].token}" if ours else f"absent, silver at {theirs[0].token}"
    if len(theirs) > 1:
        return Difference(told, Kind.DOUBLED, token)
    if not theirs:
        return Difference(told, Kind.MISSING, token)
    if not ours:
        return Difference(told, Kind.SURPLUS, token)
    both = zip(columns, ours[0].hashes, theirs[0].hashes, strict=True)
    changed = {
        name: (one.hex() or NO_VALUE, other.hex() or NO_VALUE) for name, one, other in both if one != other
    }
    return Difference(told, Kind.CHANGED, token, changed) if changed else None
