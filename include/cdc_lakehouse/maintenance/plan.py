"""Decide what maintenance does with one table. Pure: values in, a frozen plan out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from cdc_lakehouse.lake.delta_transaction import WRITABLE_FEATURES
from cdc_lakehouse.lake.health import small_file_size, target_file_size
from cdc_lakehouse.lake.snapshot import DataFile, Snapshot

PURGE_ABOVE = 0.1
"""Share of the rows that deletion vectors hide, of the files that have one: a purge writes all of these."""
LEAST_HIDDEN = 1_000
"""Rows of a table; fewer cost a reader less than the commit that takes them out."""
LEAST_SAVED = 4
"""Files; fewer are not worth a commit."""
_BINS_OF_A_BATCH = 8
Bin = tuple[DataFile, ...]
"""Files whose rows become one file."""
FULL_EVERY = timedelta(days=7)
_HALF_A_NIGHT = timedelta(hours=12)


@dataclass(frozen=True, slots=True)
class OptimizePlan:
    """The files of a table that are written again, and the size of the new ones."""

    target_bytes: int
    small_bytes: int
    small_files: int
    """Files below `small_bytes`."""
    saved_files: int
    """Files that the table has less afterwards."""
    hidden_files: int
    """Files of which a deletion vector hides rows."""
    hidden_rows: int
    rows_beside: int
    """All rows of those files, hidden ones included."""
    bins: tuple[Bin, ...] = ()
    """The files that are written again, if that pays."""
    left_to_delta: str | None = None
    """What the table has that only Delta's own OPTIMIZE keeps; None where ours keeps everything."""

    @property
    def packs(self) -> bool:
        """Return whether packing small files saves enough files."""
        return self.saved_files >= LEAST_SAVED

    @property
    def purges(self) -> bool:
        """Return whether files with deletion vectors hide enough rows to be written again."""
        return self.hidden_rows >= max(LEAST_HIDDEN, PURGE_ABOVE * self.rows_beside)

    @property
    def pays(self) -> bool:
        return (self.packs or self.purges) and self.left_to_delta is None

    @property
    def batches(self) -> tuple[tuple[Bin, ...], ...]:
        """Return the bins that one commit replaces together, in the order of the commits."""
        return tuple(
            self.bins[start : start + _BINS_OF_A_BATCH]
            for start in range(0, len(self.bins), _BINS_OF_A_BATCH)
        )

    @property
    def reason(self) -> str:
        """Why the table is optimized, or why it is left as it is."""
        share = self.hidden_rows / self.rows_beside if self.rows_beside else 0.0
        facts = (
            f"{self.small_files} files below {self.small_bytes >> 20} MiB"
            f" can become {self.small_files - self.saved_files},"
            f" {self.hidden_files} files hide {self.hidden_rows} rows ({share:.1%})"
        )
        if self.left_to_delta is not None:
            return f"left alone: {self.left_to_delta} needs Delta's own OPTIMIZE; {facts}"
        return facts if self.pays else f"not worth it: {facts}"


def plan_optimize(files: Sequence[DataFile], *, left_to_delta: str | None = None) -> OptimizePlan:
    """Return what OPTIMIZE has to do for the files of one version."""
    table_bytes = sum(file.size for file in files)
    target, small = target_file_size(table_bytes), small_file_size(table_bytes)
    small_sizes = [file.size for file in files if file.size < small]
    left = -(-sum(small_sizes) // target)
    hiding = [(file.rows or 0, file.hidden_rows) for file in files if file.deleted is not None]
    plan = OptimizePlan(
        target_bytes=target,
        small_bytes=small,
        small_files=len(small_sizes),
        saved_files=max(len(small_sizes) - left, 0),
        hidden_files=len(hiding),
        hidden_rows=sum(hidden for _, hidden in hiding),
        rows_beside=sum(rows for rows, _ in hiding),
        left_to_delta=left_to_delta,
    )
    is_small = {file.path: plan.packs and file.size < small for file in files}
    small_ones = [file for file in files if is_small[file.path]]
    hiding_ones = [
        file for file in files if plan.purges and file.deleted is not None and not is_small[file.path]
    ]
    bins = [*fill_bins(small_ones, target_bytes=target), *fill_bins(hiding_ones, target_bytes=target)]
    return replace(plan, bins=tuple(bins))


def what_only_delta_keeps(snapshot: Snapshot) -> str | None:
    """Return what of a table our files would lose: ids of rows, their clustering, or an unknown feature."""
    if snapshot.properties.get("delta.enableRowTracking", "").lower() == "true":
        return "delta.enableRowTracking"
    features = snapshot.writer_features - (WRITABLE_FEATURES - {"clustering"})
    return ", ".join(sorted(features)) or None


def fill_bins(files: Sequence[DataFile], *, target_bytes: int) -> tuple[Bin, ...]:
    """Put files into bins of up to `target_bytes`, in their order, and drop bins without work."""
    bins: list[list[DataFile]] = []
    size = 0
    for file in files:
        if not bins or size + file.size > target_bytes:
            bins.append([])
            size = 0
        bins[-1].append(file)
        size += file.size
    return tuple(tuple(each) for each in bins if len(each) > 1 or each[0].deleted is not None)


class VacuumKind(StrEnum):
    """How VACUUM finds files that no version needs."""

    FULL = "full"
    """It lists the folder: files that no commit ever named go, too."""
    LITE = "lite"
    """It reads the log: only files that a commit removed go."""


def vacuum_kind(last_full: datetime | None, *, now: datetime) -> VacuumKind:
    """Return `FULL` once a week; a night may begin some hours earlier than the one a week before."""
    if last_full is None or now - last_full >= FULL_EVERY - _HALF_A_NIGHT:
        return VacuumKind.FULL
    return VacuumKind.LITE
