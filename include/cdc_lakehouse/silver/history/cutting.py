"""Which rows of a history a merge changes (`cdc-semantics` §9).

Keys whose new events all stand behind what silver has of them go on from silver's row. The others are cut
anew from all that bronze holds, which makes the same of them whatever came first.
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
"""Columns of a version that say from where to where it stands."""


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
    """Whether all keys are cut anew."""
    mended: DataFrame | None = None
    """Rows of the history whose times were mended, as they are in `history` and not on disk."""

    @property
    def keys(self) -> Sequence[str]:
        return [column.name for column in self.changes.columns.key]

    def rows(self) -> DataFrame:
        """What the history gets: its own columns, and whether the row goes."""
        known = KnownRows(self.history, self.keys)
        keys = self._keys_to_cut_anew(known)
        anew, goes_on = self._events(keys)
        lacking = {*self.changes.facts.unavailable, *(() if anew is None else unavailable_in(anew))}
        endings = self._endings(is_anew=anew is not None)
        names = [*source_types(self.schema)]
        dropped = frozenset(self.changes.work.dropped.treated)
        reads = anew is not None or self.changes.facts.reads > 0
        cut = Versions(self.keys, names, sorted(lacking), self.tracked, reads, dropped)
        spans = self._spans(anew, goes_on)
        steps = self._steps(anew, goes_on, spans, lacking=sorted(lacking))
        versions = in_time(cut.of(steps, endings), spans, self.keys).localCheckpoint()
        found = [as_rows(versions)]
        if anew is not None:
            found.append(known.replaced(versions, anew))
        if self._may_end():
            fresh = new_endings(endings, before=self.before.cleared)
            found.append(known.but_of(versions, anew).ended(fresh, self._alive()))
        rows = reduce(DataFrame.unionByName, found)
        if self.mended is None:
            return rows
        rows = rows.localCheckpoint()
        left = KnownRows(self.mended, self.keys).but_of(rows, None).rows
        return rows.unionByName(left.withColumn(GOES, F.lit(False)))

    def removal(self, rows: DataFrame) -> Removal:
        """Return how many keys would have no open version any more, if the history gets `rows`."""
        keys = [quoted(name) for name in self.keys]
        is_open = F.col("_cdc_to").isNull()
        were_open = self.history.where(is_open).select(*keys, "_cdc_from", "_cdc_tx_id")
        goes_on = rows.where(is_open & ~F.col(GOES)).select(*keys)
        ends = rows.where(~is_open | F.col(GOES)).select(*keys, "_cdc_from", "_cdc_tx_id")
        ended = _without(_those_in(were_open, ends), goes_on)
        return Removal(ended.count(), of=were_open.count(), where="the history", causes=("it is cut anew",))

    def _events(self, keys: DataFrame | None) -> tuple[DataFrame | None, DataFrame | None]:
        """Of `keys`, which are cut anew, and of those that go on. With `whole` all are cut anew."""
        looked = self.changes.work
        held = events(looked.rows)
        if self.whole:
            return with_one_commit(held, recommitted(held)), None
        if keys is None or keys.isEmpty():
            return None, looked.events
        own = of_keys(held, keys).localCheckpoint()
        return with_one_commit(own, recommitted(own)), but_of_keys(looked.events, keys)

    def _keys_to_cut_anew(self, known: KnownRows) -> DataFrame | None:
        """Those whose past has changed, and those whose versions cross a snapshot that is complete by now."""
        if self.whole:
            return None
        looked, facts, cleared = self.changes.work, self.changes.facts, self.before.cleared
        found = [unfinished_keys(self.history, self.keys)]
        if looked.keys is not None:
            found.append(looked.keys)
        if facts.snapshot_rows and cleared is not None and cleared.position[0] > 0:
            found.append(_late_reads(looked.events, epoch=cleared.position[0]))
        if facts.ended is not None or self.before.complete is not None:
            fresh = new_endings(self._endings(is_anew=True), before=cleared)
            found.append(known.crossed(fresh, self._alive()))
        return reduce(DataFrame.unionByName, found).distinct().localCheckpoint()

    def _spans(self, anew: DataFrame | None, goes_on: DataFrame | None) -> DataFrame:
        """From where to where the known versions stand of the keys that change: narrow rows, read once.

        Of keys that are cut anew one ends at the first event that bronze holds, at the latest.
        """
        columns = (*_SPAN, *(quoted(name) for name in self.keys))
        rows = self.history.select(*columns).alias("known")
        same = key_of(self.keys, table="known").eqNullSafe(F.col("cut.key"))
        if not self.whole:
            both = [each.select("key") for each in (anew, goes_on) if each is not None]
            wanted = reduce(DataFrame.unionByName, both).distinct().alias("cut")
            rows = rows.join(wanted, same, "left_semi").localCheckpoint().alias("known")
        return rows if anew is None else KnownRows(rows, self.keys).cut_short(anew)

    def _steps(
        self,
        anew: DataFrame | None,
        goes_on: DataFrame | None,
        spans: DataFrame,
        *,
        lacking: Sequence[str],
    ) -> DataFrame:
        own = reduce(DataFrame.unionByName, [each for each in (anew, goes_on) if each is not None])
        steps = Steps(self.changes.columns, self.schema)
        found = steps.of_events(own)
        if lacking and (anew is not None or self.changes.facts.moves):
            held = events(self.changes.work.rows)
            carrier = Carrier(held, self.changes.columns, lacking=lacking, cleared=None)
            found = steps.with_moves(found, own, carrier)
        if goes_on is None:
            return found
        wanted = goes_on.select(F.col("key").alias(_WANTED)).distinct()
        base = self._alive().join(wanted, key_of(self.keys).eqNullSafe(F.col(_WANTED)), "left_semi")
        return found.unionByName(steps.of_silver(base, spans))

    def _alive(self) -> DataFrame:
        if DELETED not in self.silver.columns:
            return self.silver
        return self.silver.where(~F.coalesce(F.col(DELETED), F.lit(False)))

    def _endings(self, *, is_anew: bool) -> DataFrame:
        rows, cleared = self.changes.work.rows, self.changes.applied.cleared
        if cleared is None or not (is_anew or self._may_end()):
            return no_endings(rows.sparkSession)
        return endings_in(rows, cleared=cleared)

    def _may_end(self) -> bool:
        """Whether the work may tell of one."""
        facts = self.changes.facts
        return bool(facts.truncates) or facts.ended is not None or self.before.complete is not None


def _late_reads(work: DataFrame, *, epoch: int) -> DataFrame:
    """Keys of rows that come when their full snapshot is complete: their versions may have ended with it."""
    position = F.col(f"{PLACE}.position")
    return work.where((position["phase"] == 0) & (position["epoch"] <= epoch)).select("key")


def _those_in(rows: DataFrame, others: DataFrame) -> DataFrame:
    """Rows that `others` have too, NULL in a key being a value."""
    return rows.alias("one").join(others.alias("other"), _is_same(others.columns), "left_semi")


def _without(rows: DataFrame, others: DataFrame) -> DataFrame:
    return rows.alias("one").join(others.alias("other"), _is_same(others.columns), "left_anti")


def _is_same(names: Sequence[str]) -> Column:
    return reduce(and_, (F.col(f"one.{quoted(n)}").eqNullSafe(F.col(f"other.{quoted(n)}")) for n in names))
