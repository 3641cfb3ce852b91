"""Read the rows of bronze that a merge is to apply, with their source epochs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_lakehouse.fold.arrays import Bools, Int64s, as_mask
from cdc_lakehouse.fold.inputs import EPOCH
from cdc_lakehouse.lake.filesystem import filesystem_of
from cdc_lakehouse.lake.ledger import Ledger, Ranges, first_incarnations, incarnation_of, topic_of
from cdc_lakehouse.lake.progress import Progress, Span
from cdc_lakehouse.lake.rows import conform, naming_damage, nullable_schema, read_deleted
from cdc_lakehouse.lake.snapshot import DataFile, Snapshot

_COLUMNS = (
    *("topic", "partition", "offset", "topic_id", "value_schema_id", "op", "position"),
    *("key", "after", "unavailable", "source", "decode_error"),
)


def read_work(snapshot: Snapshot, work: Ranges, *, held: Ledger) -> pa.Table:
    """Return the rows whose coordinates lie in `work`. `held` is the ledger of that version of bronze."""
    whole = nullable_schema(snapshot)
    schema = pa.schema([whole.field(name) for name in _COLUMNS if name in whole.names])
    names = first_incarnations(held)
    ranges = [
        _Range(source, partition, span, held.sources[source][partition], is_unnamed=source in names)
        for source, partitions in work.items()
        for partition, span in partitions.items()
    ]
    parts = [
        part
        for file in snapshot.files
        if any(each.may_be_in(file) for each in ranges)
        for part in _read_file(snapshot, file, ranges, schema)
    ]
    empty = schema.empty_table().append_column(EPOCH, pa.array([], pa.int64()))
    return pa.concat_tables([empty, *parts])


class _Range:
    """Offsets of one partition of one incarnation of a topic."""

    def __init__(
        self, source: str, partition: int, span: Span, progress: Progress, *, is_unnamed: bool
    ) -> None:
        self._topic, self._incarnation = topic_of(source), incarnation_of(source)
        self._partition, self._span = partition, span
        self._epochs = progress.epochs
        self._is_unnamed = is_unnamed
        """True if rows without a topic id, of the first release, belong to this incarnation."""

    def may_be_in(self, file: DataFile) -> bool:
        """Return False where the statistics of a file exclude all of the offsets."""
        sought = {"topic": (self._topic, self._topic), "partition": (self._partition, self._partition)}
        sought["offset"] = (self._span[0], self._span[1] - 1)
        for name, (first, last) in sought.items():
            lowest, highest = file.oldest.get(name), file.newest.get(name)
            if lowest is not None and highest is not None and not (lowest <= last and first <= highest):
                return False
        return True

    def covers(self, lowest: int, highest: int) -> bool:
        return lowest < self._span[1] and self._span[0] <= highest

    def contains(self, rows: pa.Table) -> Bools:
        offsets = rows["offset"].to_numpy()
        mask: Bools = (offsets >= self._span[0]) & (offsets < self._span[1])
        mask &= rows["partition"].to_numpy() == self._partition
        mask &= as_mask(pc.equal(rows["topic"], self._topic))
        if "topic_id" in rows.column_names:
            is_named = as_mask(pc.equal(rows["topic_id"], self._incarnation))
            mask &= is_named | as_mask(rows["topic_id"].is_null()) if self._is_unnamed else is_named
        elif not self._is_unnamed:
            mask[:] = False
        return mask

    def find_epochs(self, offsets: Int64s) -> Int64s:
        """Return the source epoch of each offset (`cdc-semantics` rule 2.5)."""
        starts = np.array([start for start, _ in self._epochs], np.int64)
        epochs = np.array([0, *(epoch for _, epoch in self._epochs)], np.int64)
        found: Int64s = epochs[np.searchsorted(starts, offsets, side="right")]
        return found


def _read_file(
    snapshot: Snapshot, file: DataFile, ranges: list[_Range], schema: pa.Schema
) -> Iterator[pa.Table]:
    filesystem, folder = filesystem_of(snapshot.uri)
    with naming_damage(snapshot.uri, file), filesystem.open_input_file(f"{folder}/{file.path}") as stream:
        parquet = pq.ParquetFile(stream, coerce_int96_timestamp_unit="us", page_checksum_verification=True)
        deleted, start = read_deleted(file, filesystem=filesystem, folder=folder), 0
        present = [name for name in schema.names if name in parquet.schema_arrow.names]
        for group in range(parquet.metadata.num_row_groups):
            count = parquet.metadata.row_group(group).num_rows
            if _may_have_offsets(parquet, group, ranges):
                rows = conform(parquet.read_row_group(group, columns=present), schema)
                yield from _select_rows(rows, ranges, ~np.isin(np.arange(start, start + count), deleted))
            start += count


def _may_have_offsets(parquet: pq.ParquetFile, group: int, ranges: list[_Range]) -> bool:
    column = [column.path for column in parquet.schema].index("offset")
    facts = parquet.metadata.row_group(group).column(column).statistics
    if facts is None or not facts.has_min_max:
        return True
    return any(each.covers(facts.min, facts.max) for each in ranges)


def _select_rows(rows: pa.Table, ranges: list[_Range], is_live: Bools) -> Iterator[pa.Table]:
    for each in ranges:
        mask = each.contains(rows) & is_live
        if mask.any():
            found = rows.filter(pa.array(mask))
            yield found.append_column(EPOCH, pa.array(each.find_epochs(found["offset"].to_numpy())))
