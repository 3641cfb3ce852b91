"""Rows that a history has already: which of them go, and which end earlier than they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc_lakehouse.lake.names import quoted
from cdc_lakehouse.silver.folding.place import PLACE, is_after, place
from cdc_lakehouse.silver.folding.row_key import key_of
from cdc_lakehouse.silver.history.endings import TS, first_ending

GOES = "_cdc_goes"
"""Column of what is written: the row is none of the history any more."""
_SINCE = "_cdc_since"
_IDENTITY = ("_cdc_from", "_cdc_tx_id")
"""With the key."""


@dataclass(frozen=True, slots=True)
class KnownRows:
    rows: DataFrame
    keys: Sequence[str]

    def but_of(self, versions: DataFrame, events: DataFrame | None) -> KnownRows:
        """Without `versions`, and without the keys of `events`."""
        left = self.rows.join(self._identities(versions), self._is_same_version(), "left_anti")
        if events is not None:
            same = key_of(self.keys, table="known").eqNullSafe(F.col("cut.key"))
            left = left.alias("known").join(events.select("key").distinct().alias("cut"), same, "left_anti")
        return KnownRows(left, self.keys)

    def ended(self, endings: DataFrame) -> DataFrame:
        """Those that end at one of `endings`, with their new end."""
        begun = place(F.col("_cdc_from"), F.col("_cdc_tx_id"))
        until = F.when(F.col("_cdc_to").isNotNull(), place(F.col("_cdc_to"), F.col("_cdc_to_tx_id")))
        found = self.rows.crossJoin(F.broadcast(endings)).withColumn("_cdc_end", first_ending(begun, until))
        return self._ending_at(found.where(F.col("_cdc_end").isNotNull()), F.col("_cdc_end"))

    def replaced(self, versions: DataFrame, events: DataFrame) -> DataFrame:
        """Rows of the keys of `events`, all that bronze holds of them, that are not among `versions`.

        What stands before the first of its key is from a time that bronze does not hold any more: it stays,
        and ends there at the latest.
        """
        since = events.groupBy("key").agg(F.min(F.struct(PLACE, F.col("source.ts").alias(TS))).alias(_SINCE))
        same = key_of(self.keys, table="known").eqNullSafe(F.col("cut.key"))
        known = self.rows.alias("known").join(since.alias("cut"), same)
        known = known.select("known.*", _SINCE)
        begun = place(F.col("_cdc_from"), F.col("_cdc_tx_id"))
        is_older = is_after(F.col(_SINCE)[PLACE], begun)
        gone = known.where(~is_older).drop(_SINCE)
        gone = gone.join(self._identities(versions), self._is_same_version(), "left_anti")
        until = place(F.col("_cdc_to"), F.col("_cdc_to_tx_id"))
        overlaps = F.col("_cdc_to").isNull() | is_after(until, F.col(_SINCE)[PLACE])
        kept = self._ending_at(known.where(is_older & overlaps), F.col(_SINCE))
        return kept.unionByName(gone.withColumn(GOES, F.lit(True)))

    def _ending_at(self, rows: DataFrame, end: Column) -> DataFrame:
        ended = {
            "_cdc_to": end[PLACE]["position"],
            "_cdc_to_tx_id": end[PLACE]["tx_id"],
            "_cdc_to_ts": end[TS],
            GOES: F.lit(False),
        }
        return rows.withColumns(ended).select(*(F.col(quoted(name)) for name in self.rows.columns), GOES)

    def _identities(self, versions: DataFrame) -> DataFrame:
        names = [*self.keys, *_IDENTITY]
        return versions.select(*(F.col(quoted(name)).alias(f"_cdc_same_{name}") for name in names))

    def _is_same_version(self) -> Column:
        same = F.lit(True)
        for name in (*self.keys, *_IDENTITY):
            same &= F.col(quoted(name)).eqNullSafe(F.col(quoted(f"_cdc_same_{name}")))
        return same


def as_rows(versions: DataFrame) -> DataFrame:
    return versions.withColumn(GOES, F.lit(False))
