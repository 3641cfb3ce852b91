"""Rows of silver that a snapshot of the whole table did not send: the source has none of them, or it has and
the snapshot was not whole.

Every row that the source has stands behind the place where such a snapshot began (decision 0060).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lakehouse.lake.place import Place
from cdc_lakehouse.lake.rows import batches_of
from cdc_lakehouse.lake.snapshot import Snapshot
from cdc_lakehouse.verification.cells import cells, digests
from cdc_lakehouse.verification.columns import ColumnPlan
from cdc_lakehouse.verification.sides import RowBatch

_POSITION, _DELETED = "_cdc_position", "_cdc_deleted"
_ROWS_AT_ONCE = 10_000
_FEW = 3


@dataclass(frozen=True, slots=True)
class Unsent:
    """Living rows of silver that stand before a place."""

    keys: frozenset[bytes]
    """Digests of their keys, of some of them where there are more than were asked for."""
    rows: int
    examples: tuple[str, ...] = ()
    """MD5 of some keys: payload values enter no log."""


def keys_only(plan: ColumnPlan) -> ColumnPlan:
    return replace(plan, compared=plan.compared[: plan.keys])


def find_unsent(plan: ColumnPlan, silver: Snapshot, *, before: Place, most: int) -> Unsent:
    """Return the living rows that stand before `before`, and about `most` of their keys.

    `plan` has the columns of the key.
    """
    keys: set[bytes] = set()
    examples: list[str] = []
    rows = 0
    for columns in _old_rows(plan, silver, before=before):
        rows += len(columns[0])
        if len(keys) <= most:
            keys.update(row.tobytes() for row in digests(columns))
        if len(examples) < _FEW:
            examples += _hash_keys(columns)[: _FEW - len(examples)]
    return Unsent(frozenset(keys), rows, tuple(examples))


def count_at_source(unsent: Unsent, batches: Iterable[RowBatch]) -> int:
    """Return how many of these keys are among `batches`, rows of the source with the columns of the key."""
    if not unsent.keys:
        return 0
    known = np.frombuffer(b"".join(unsent.keys), np.uint64).reshape(-1, 2)[:, 0]
    count = 0
    for batch in batches:
        found = digests(batch.cells)
        # One number of the two is compared at once; only few rows are left for the other.
        candidates = found[np.isin(found[:, 0], known)]
        count += sum(row.tobytes() in unsent.keys for row in candidates)
    return count


def _old_rows(plan: ColumnPlan, silver: Snapshot, *, before: Place) -> Iterator[tuple[pa.Array, ...]]:
    names = [column.silver for column in plan.compared]
    system = [name for name in (_POSITION, _DELETED) if name in silver.schema.names]
    for table in batches_of(silver, [*names, *system], most=_ROWS_AT_ONCE):
        is_old = pa.array(_stands_before(table[_POSITION], before))
        if _DELETED in table.column_names:
            is_old = pc.and_(is_old, pc.invert(pc.fill_null(table[_DELETED], False)))
        old = table.filter(is_old).combine_chunks()
        if old.num_rows:
            yield tuple(
                cells(column.reader.settle(old[column.silver].combine_chunks())) for column in plan.compared
            )


def _stands_before(positions: pa.ChunkedArray, place: Place) -> np.ndarray:
    """Compare positions as they are compared everywhere: field by field, the first that differs decides."""
    whole = positions.combine_chunks()
    is_before, is_equal = np.zeros(len(whole), bool), np.ones(len(whole), bool)
    for values, limit in zip(whole.flatten(), place.position, strict=True):
        numbers = pc.fill_null(values, 0).to_numpy(zero_copy_only=False)
        is_before |= is_equal & (numbers < limit)
        is_equal &= numbers == limit
    return is_before


def _hash_keys(columns: tuple[pa.Array, ...]) -> list[str]:
    parts = [column.slice(0, _FEW).to_pylist() for column in columns]
    return [_hash(key) for key in zip(*parts, strict=True)]


def _hash(key: tuple[bytes | None, ...]) -> str:
    return hashlib.md5(b"|".join(part or b"" for part in key), usedforsecurity=False).hexdigest()
