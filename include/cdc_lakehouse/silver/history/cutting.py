"""Which rows of a history a merge changes (`cdc-semantics` §9).

A key whose new events are all newer than silver's row of it continues from that row. Any other key is recut
from all of its events in bronze, which gives the same versions whatever arrived first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from cdc_lakehouse.lake.applied import Applied
from cdc_lakehouse.lake.names import quoted
from cdc_lakehouse.silver.changes import Changes
from cdc_lakehouse.silver.deletes_limit import Removal
from cdc_lakehouse.silver.examine import unavailable_in
from cdc_lakehouse.silver.folding.carry import Carrier
from cdc_lakehouse.silver.folding.commits import recommitted, with_one_commit
from cdc_lakehouse.silver.folding.place import PLACE
from cdc_lakehouse.silver.folding.refold import but_of_keys, of_keys
from cdc_lakehouse.silver.folding.row_key import key_of
from cdc_lakehouse.silver.history.endings import endings_in, new_endings, no_endings
from cdc_lakehouse.silver.history.rows import GOES, KnownRows, as_rows
from cdc_lakehouse.silver.history.steps import Steps
from cdc_lakehouse.silver.history.versions import Versions, in_time
from cdc_lakehouse.silver.late.keys import unfinished_keys
from cdc_lakehouse.silver.read import events
from cdc_lakehouse.silver.schema.table_schema import source_types
from cdc_lakehouse.silver.writing.merge_plan import DELETED

_WANTED = "_cdc_wanted"
_SPAN = (
    "_cdc_op",
    "_cdc_from",
    "_cdc_to",
    "_cdc_from_ts",
    "_cdc_to_ts",
    "_cdc_tx_id",
    "_cdc_to_tx_id",
)
"""Columns of a version with its beginning and its end."""


@dataclass(frozen=True, slots=True)
class Cutting:
    changes: Changes
    before: Applied
    schema: StructType
    """Of the history."""
    tracked: Sequence[str] | None
    history: DataFrame
    silver: DataFrame
    """Before the merge."""
    whole: bool
    """True if all keys are recut."""
    corrected: DataFrame | None = None
    """Rows of the history whose times were corrected: as they are in `history`, which differs from disk."""
    keeps_told: bool = False
    """True if bronze may have lost events of the keys that are recut: versions keep values they told."""

    @property
    def keys(self) -> Sequence[str]:
        return [column.name for column in self.changes.columns.key]

    def rows(self) -> DataFrame:
        """What the history gets: its own columns, and whether the row goes."""
        known = KnownRows(self.history, self.keys)
        recut, continued = self._split_events(self._keys_to_recut(known))
        lacking = {*self.changes.facts.unavailable, *(() if recut is None else unavailable_in(recut))}
        endings = self._endings(recuts=recut is not None)
        names = [*source_types(self.schema)]
        dropped = frozenset(self.changes.work.dropped.treated)
        reads = recut is not None or self.changes.facts.reads > 0
        cut = Versions(self.keys, names, sorted(lacking), self.tracked, reads, dropped)
        spans = self._spans(recut, continued)
        steps = self._steps(recut, continued, spans, lacking=sorted(lacking))
        versions = cut.of(steps, endings)
        if self.keeps_told and lacking:
            versions = known.keep_told_values(versions, sorted(lacking))
        versions = in_time(versions, spans, self.keys).localCheckpoint()
        parts = [as_rows(versions)]
        if recut is not None:
            parts.append(known.replaced(versions, recut))
        if self._may_end():
            fresh = new_endings(endings, before=self.before)
            parts.append(known.but_of(versions, recut).ended(fresh, self._alive()))
        rows = reduce(DataFrame.unionByName, parts)
        if self.corrected is None:
            return rows
        rows = rows.localCheckpoint()
        left = KnownRows(self.corrected, self.keys).but_of(rows, None).rows
        return rows.unionByName(left.withColumn(GOES, F.lit(False)))

    def removal(self, rows: DataFrame) -> Removal:
        """Return how many keys would lose their open version if the history got `rows`."""
        keys = [quoted(name) for name in self.keys]
        is_open = F.col("_cdc_to").isNull()
        were_open = self.history.where(is_open).select(*keys, "_cdc_from", "_cdc_tx_id")
        still_open = rows.where(is_open & ~F.col(GOES)).select(*keys)
        closed = rows.where(~is_open | F.col(GOES)).select(*keys, "_cdc_from", "_cdc_tx_id")
        ended = _rows_not_in(_rows_in(were_open, closed), still_open)
        return Removal(ended.count(), of=were_open.count(), where="the history", causes=("it is cut anew",))

    def _split_events(self, keys: DataFrame | None) -> tuple[DataFrame | None, DataFrame | None]:
        """Return all events of `keys`, which are recut, and the new events of all other keys.

        With `whole` every key is recut.
        """
        work = self.changes.work
        of_bronze = events(work.rows)
        if self.whole:
            return with_one_commit(of_bronze, recommitted(of_bronze)), None
        if keys is None or keys.isEmpty():
            return None, work.events
        recut = of_keys(of_bronze, keys).localCheckpoint()
        return with_one_commit(recut, recommitted(recut)), but_of_keys(work.events, keys)

    def _keys_to_recut(self, known: KnownRows) -> DataFrame | None:
        """Return keys whose past has changed, and keys with a version across a snapshot that is now complete.

        None where every key is recut.
        """
        if self.whole:
            return None
        work, facts, cleared = self.changes.work, self.changes.facts, self.before.cleared
        parts = [unfinished_keys(self.history, self.keys)]
        if work.keys is not None:
            parts.append(work.keys)
        if facts.snapshot_rows and cleared is not None and cleared.position[0] > 0:
            parts.append(_keys_of_late_reads(work.events, epoch=cleared.position[0]))
        if facts.ended is not None or self.before.complete is not None:
            fresh = new_endings(self._endings(recuts=True), before=self.before)
            parts.append(known.crossed(fresh, self._alive()))
        return reduce(DataFrame.unionByName, parts).distinct().localCheckpoint()

    def _spans(self, recut: DataFrame | None, continued: DataFrame | None) -> DataFrame:
        """Return the place and times of each known version of the keys that change: narrow rows, read once.

        A version of a recut key ends at the first event of that key in bronze, at the latest. With them come
        the values that silver has lost (`on_dropped_column: as_null`).
        """
        columns = (*_SPAN, *map(quoted, self.keys), *map(quoted, self._emptied))
        rows = self.history.select(*columns).alias("known")
        same = key_of(self.keys, table="known").eqNullSafe(F.col("cut.key"))
        if not self.whole:
            both = [part.select("key") for part in (recut, continued) if part is not None]
            changed = reduce(DataFrame.unionByName, both).distinct().alias("cut")
            rows = rows.join(changed, same, "left_semi").localCheckpoint().alias("known")
        return rows if recut is None else KnownRows(rows, self.keys).cut_short(recut)

    @property
    def _emptied(self) -> Sequence[str]:
        """Columns that are NULL in silver because the source dropped them; versions keep their values."""
        return [name for name in self.changes.work.dropped.nulls if name not in self.keys]

    def _steps(
        self,
        recut: DataFrame | None,
        continued: DataFrame | None,
        spans: DataFrame,
        *,
        lacking: Sequence[str],
    ) -> DataFrame:
        both = reduce(DataFrame.unionByName, [part for part in (recut, continued) if part is not None])
        steps = Steps(self.changes.columns, self.schema)
        of_events = steps.of_events(both)
        if lacking and (recut is not None or self.changes.facts.moves):
            of_bronze = events(self.changes.work.rows)
            carrier = Carrier(of_bronze, self.changes.columns, lacking=lacking, cleared=None)
            of_events = steps.with_moves(of_events, both, carrier)
        if continued is None:
            return of_events
        wanted = continued.select(F.col("key").alias(_WANTED)).distinct()
        base = self._alive().join(wanted, key_of(self.keys).eqNullSafe(F.col(_WANTED)), "left_semi")
        return of_events.unionByName(steps.of_silver(base, spans, emptied=self._emptied))

    def _alive(self) -> DataFrame:
        if DELETED not in self.silver.columns:
            return self.silver
        return self.silver.where(~F.coalesce(F.col(DELETED), F.lit(False)))

    def _endings(self, *, recuts: bool) -> DataFrame:
        rows, applied = self.changes.work.rows, self.changes.applied
        if applied.gone_before is None or not (recuts or self._may_end()):
            return no_endings(rows.sparkSession)
        return endings_in(rows, cleared=applied.cleared, sweeps=applied.sweeps)

    def _may_end(self) -> bool:
        """Return whether the merge may apply an ending."""
        facts, is_swept = self.changes.facts, self.changes.applied.sweeps != self.before.sweeps
        return (
            is_swept or bool(facts.truncates) or facts.ended is not None or self.before.complete is not None
        )


def _keys_of_late_reads(work: DataFrame, *, epoch: int) -> DataFrame:
    """Return keys of rows that arrive after their full snapshot was complete.

    Their versions may have ended with that snapshot.
    """
    position = F.col(f"{PLACE}.position")
    return work.where((position["phase"] == 0) & (position["epoch"] <= epoch)).select("key")


def _rows_in(rows: DataFrame, others: DataFrame) -> DataFrame:
    """Return the rows that `others` contain too. NULL in a key is a value."""
    return rows.alias("one").join(others.alias("other"), _is_same(others.columns), "left_semi")


def _rows_not_in(rows: DataFrame, others: DataFrame) -> DataFrame:
    return rows.alias("one").join(others.alias("other"), _is_same(others.columns), "left_anti")


def _is_same(names: Sequence[str]) -> Column:
    return reduce(and_, (F.col(f"one.{quoted(n)}").eqNullSafe(F.col(f"other.{quoted(n)}")) for n in names))
