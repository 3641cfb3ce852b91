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
from cdc_lakehouse.silver.folding.refold import but_of_keys, of_keys
from cdc_lakehouse.silver.folding.row_key import key_of
from cdc_lakehouse.silver.history.endings import endings_in, no_endings
from cdc_lakehouse.silver.history.rows import GOES, KnownRows, as_rows
from cdc_lakehouse.silver.history.steps import Steps
from cdc_lakehouse.silver.history.versions import Versions
from cdc_lakehouse.silver.late.keys import unfinished_keys
from cdc_lakehouse.silver.read import events
from cdc_lakehouse.silver.schema.table_schema import source_types
from cdc_lakehouse.silver.writing.merge_plan import DELETED

_WANTED = "_cdc_wanted"


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

    @property
    def keys(self) -> Sequence[str]:
        return [column.name for column in self.changes.columns.key]

    def rows(self) -> DataFrame:
        """What the history gets: its own columns, and whether the row goes."""
        anew, goes_on = self._events()
        lacking = {*self.changes.facts.unavailable, *(() if anew is None else unavailable_in(anew))}
        endings = self._endings(is_anew=anew is not None)
        names = [*source_types(self.schema)]
        dropped = frozenset(self.changes.work.dropped.treated)
        cut = Versions(self.keys, names, sorted(lacking), self.tracked, dropped)
        versions = cut.of(self._steps(anew, goes_on, lacking=sorted(lacking)), endings).localCheckpoint()
        known, found = KnownRows(self.history, self.keys), [as_rows(versions)]
        if anew is not None:
            found.append(known.replaced(versions, anew))
        if self._may_end(is_anew=anew is not None):
            found.append(known.but_of(versions, anew).ended(endings))
        return reduce(DataFrame.unionByName, found)

    def removal(self, rows: DataFrame) -> Removal:
        """Return how many keys would have no open version any more, if the history gets `rows`."""
        keys = [quoted(name) for name in self.keys]
        is_open = F.col("_cdc_to").isNull()
        were_open = self.history.where(is_open).select(*keys, "_cdc_from", "_cdc_tx_id")
        goes_on = rows.where(is_open & ~F.col(GOES)).select(*keys)
        ends = rows.where(~is_open | F.col(GOES)).select(*keys, "_cdc_from", "_cdc_tx_id")
        ended = _without(_those_in(were_open, ends), goes_on)
        return Removal(ended.count(), of=were_open.count(), where="the history", causes=("it is cut anew",))

    def _events(self) -> tuple[DataFrame | None, DataFrame | None]:
        """Of keys that are cut anew, and of those that go on."""
        looked = self.changes.work
        held = events(looked.rows)
        if self.whole:
            return with_one_commit(held, recommitted(held)), None
        keys = self._keys_to_cut_anew()
        if keys.isEmpty():
            return None, looked.events
        own = of_keys(held, keys).localCheckpoint()
        return with_one_commit(own, recommitted(own)), but_of_keys(looked.events, keys)

    def _keys_to_cut_anew(self) -> DataFrame:
        found, looked = unfinished_keys(self.history, self.keys), self.changes.work
        found = found if looked.keys is None else found.unionByName(looked.keys)
        return found.distinct().localCheckpoint()

    def _steps(
        self, anew: DataFrame | None, goes_on: DataFrame | None, *, lacking: Sequence[str]
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
        return found.unionByName(steps.of_silver(base, self.history))

    def _alive(self) -> DataFrame:
        if DELETED not in self.silver.columns:
            return self.silver
        return self.silver.where(~F.coalesce(F.col(DELETED), F.lit(False)))

    def _endings(self, *, is_anew: bool) -> DataFrame:
        rows, cleared = self.changes.work.rows, self.changes.applied.cleared
        if cleared is None or not self._may_end(is_anew=is_anew):
            return no_endings(rows.sparkSession)
        return endings_in(rows, cleared=cleared)

    def _may_end(self, *, is_anew: bool) -> bool:
        """Whether the work, or what is cut anew, may tell of one."""
        facts = self.changes.facts
        told = bool(facts.truncates) or facts.ended is not None
        return is_anew or told or self.before.complete is not None


def _those_in(rows: DataFrame, others: DataFrame) -> DataFrame:
    """Rows that `others` have too, NULL in a key being a value."""
    return rows.alias("one").join(others.alias("other"), _is_same(others.columns), "left_semi")


def _without(rows: DataFrame, others: DataFrame) -> DataFrame:
    return rows.alias("one").join(others.alias("other"), _is_same(others.columns), "left_anti")


def _is_same(names: Sequence[str]) -> Column:
    return reduce(and_, (F.col(f"one.{quoted(n)}").eqNullSafe(F.col(f"other.{quoted(n)}")) for n in names))
