"""Rows that a history has already: which of them go, and which end earlier than they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc_lakehouse.lake.names import quoted
from cdc_lakehouse.silver.folding.place import PLACE, is_after, place, place_of_row
from cdc_lakehouse.silver.folding.row_key import key_of
from cdc_lakehouse.silver.history.endings import ENDINGS, TS, first_ending
from cdc_lakehouse.silver.history.versions import UNCHANGED, in_time

GOES = "_cdc_goes"
"""Column of what is written: the row is none of the history any more."""
_SINCE, _END = "_cdc_since", "_cdc_end"
_OPEN = "_cdc_incomplete"
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

    def crossed(self, endings: DataFrame, silver: DataFrame) -> DataFrame:
        """Return keys with a version across one of `endings` that may have to end there.

        A row that silver took from that very snapshot was read unchanged: its version certainly continues.
        """
        at, end = F.col("current.at"), F.col(f"ending.{_END}")[PLACE]
        is_read = (at["position"]["phase"] == 0) & (at["position"]["epoch"] == end["position"]["epoch"])
        changed_since = F.col("ending._cdc_to").isNull() & is_after(at, end) & ~is_read
        across = self._join_endings(silver, endings)
        doubtful = across.where(F.col("ending._cdc_to").isNotNull() | changed_since)
        return doubtful.select(key_of(self.keys, table="ending"))

    def ended(self, endings: DataFrame, silver: DataFrame) -> DataFrame:
        """Return the versions that end at one of `endings`, with their new end.

        A version whose row `silver` has from after the ending does not end: a snapshot read it unchanged.
        """
        end = F.col(f"ending.{_END}")
        is_read = F.col("ending._cdc_to").isNull() & is_after(F.col("current.at"), end[PLACE])
        ending = self._join_endings(silver, endings).where(~is_read).select("ending.*")
        names = [*self.keys, *_IDENTITY]
        ending = ending.select(*(F.col(quoted(name)).alias(f"_cdc_same_{name}") for name in names), _END)
        return self._end_at(self.rows.join(ending, self._is_same_version()), F.col(_END))

    def _join_endings(self, silver: DataFrame, endings: DataFrame) -> DataFrame:
        """Return `ending`, the versions across an ending, beside `current.at`, the place of silver's row."""
        begun = place(F.col("_cdc_from"), F.col("_cdc_tx_id"))
        until = F.when(F.col("_cdc_to").isNotNull(), place(F.col("_cdc_to"), F.col("_cdc_to_tx_id")))
        narrow = [*(quoted(name) for name in self.keys), *_IDENTITY, "_cdc_to", "_cdc_to_tx_id"]
        versions = self.rows.select(*narrow).crossJoin(F.broadcast(endings))
        versions = versions.withColumn(_END, first_ending(begun, until)).drop(ENDINGS)
        # Without the checkpoint Spark repeats the expression at every use of its result: the plan explodes.
        across = versions.where(F.col(_END).isNotNull()).localCheckpoint().alias("ending")
        places = silver.alias("s").select(key_of(self.keys, table="s"), place_of_row("s").alias("at"))
        same = key_of(self.keys, table="ending").eqNullSafe(F.col("current.key"))
        return across.join(places.alias("current"), same, "left")

    def replaced(self, versions: DataFrame, events: DataFrame) -> DataFrame:
        """Rows of the keys of `events`, all that bronze holds of them, that are not among `versions`.

        What stands before the first of its key is from a time that bronze does not hold any more: it stays,
        and ends there at the latest.
        """
        known = self._join_first_events(events)
        begun = place(F.col("_cdc_from"), F.col("_cdc_tx_id"))
        is_older = is_after(F.col(_SINCE)[PLACE], begun)
        gone = known.where(~is_older).drop(_SINCE)
        gone = gone.join(self._identities(versions), self._is_same_version(), "left_anti")
        kept = self._end_at(known.where(is_older & self._reaches_beyond()), F.col(_SINCE))
        return kept.unionByName(gone.withColumn(GOES, F.lit(True)))

    def keep_told_values(self, versions: DataFrame, lacking: Sequence[str]) -> DataFrame:
        """Return `versions` with values that these rows have and that no event of bronze tells any more."""
        named = [F.col(quoted(name)).alias(f"_cdc_known_{name}") for name in (*lacking, _OPEN)]
        known = self.rows.select(*self._identity_columns(), *named)
        joined = versions.join(known, self._is_same_version(), "left")
        is_known = F.col("_cdc_same__cdc_from").isNotNull()

        def is_lost(name: str) -> Column:
            was_told = ~F.coalesce(F.array_contains(f"_cdc_known_{_OPEN}", name), F.lit(False))
            return F.coalesce(F.array_contains(_OPEN, name), F.lit(False)) & is_known & was_told

        values = {
            name: F.when(is_lost(name), F.col(quoted(f"_cdc_known_{name}"))).otherwise(F.col(quoted(name)))
            for name in lacking
        }
        told = F.array_compact(F.array(*(F.when(is_lost(name), F.lit(name)) for name in lacking)))
        still = F.array_except(_OPEN, told)
        values[_OPEN] = F.when(F.size(still) > 0, still)
        return joined.withColumns(values).select(*(F.col(quoted(name)) for name in versions.columns))

    def cut_short(self, events: DataFrame) -> DataFrame:
        """Return all rows; a version that crosses the first of its key's `events` ends there."""
        known = self._join_first_events(events, how="left")
        begun = place(F.col("_cdc_from"), F.col("_cdc_tx_id"))
        is_cut = is_after(F.col(_SINCE)[PLACE], begun) & self._reaches_beyond()
        cut = self._end_at(known.where(is_cut), F.col(_SINCE)).drop(GOES)
        return known.where(~is_cut).drop(_SINCE).unionByName(cut)

    def _join_first_events(self, events: DataFrame, *, how: str = "inner") -> DataFrame:
        """Return the rows of the keys of `events`, each beside the first event of its key."""
        firsts = events.groupBy("key").agg(F.min(F.struct(PLACE, F.col("source.ts").alias(TS))).alias(_SINCE))
        same = key_of(self.keys, table="known").eqNullSafe(F.col("cut.key"))
        return self.rows.alias("known").join(firsts.alias("cut"), same, how).select("known.*", _SINCE)

    def _reaches_beyond(self) -> Column:
        until = place(F.col("_cdc_to"), F.col("_cdc_to_tx_id"))
        return F.col("_cdc_to").isNull() | is_after(until, F.col(_SINCE)[PLACE])

    def _end_at(self, rows: DataFrame, end: Column) -> DataFrame:
        ended = {
            "_cdc_to": end[PLACE]["position"],
            "_cdc_to_tx_id": end[PLACE]["tx_id"],
            "_cdc_to_ts": F.greatest(F.col("_cdc_from_ts"), end[TS]),
            GOES: F.lit(False),
        }
        return rows.withColumns(ended).select(*(F.col(quoted(name)) for name in self.rows.columns), GOES)

    def _identities(self, versions: DataFrame) -> DataFrame:
        return versions.select(*self._identity_columns())

    def _identity_columns(self) -> list[Column]:
        return [F.col(quoted(name)).alias(f"_cdc_same_{name}") for name in (*self.keys, *_IDENTITY)]

    def _is_same_version(self) -> Column:
        same = F.lit(True)
        for name in (*self.keys, *_IDENTITY):
            same &= F.col(quoted(name)).eqNullSafe(F.col(quoted(f"_cdc_same_{name}")))
        return same


def as_rows(versions: DataFrame) -> DataFrame:
    """Return the versions that the history lacks or has with other values."""
    return versions.where(~F.col(UNCHANGED)).drop(UNCHANGED).withColumn(GOES, F.lit(False))


def with_corrected_times(history: DataFrame, keys: Sequence[str]) -> tuple[DataFrame, DataFrame]:
    """Return all rows with times that never run backwards within a key, and the rows that this changes.

    For a history that older rules made: bronze may have lost the events of its oldest versions.
    """
    was = {f"_cdc_was_{name}": F.col(f"_cdc_{name}_ts") for name in ("from", "to")}
    rows = in_time(history.withColumns(was), history.limit(0), keys).localCheckpoint()
    is_same = F.col("_cdc_was_from").eqNullSafe(F.col("_cdc_from_ts"))
    is_same &= F.col("_cdc_was_to").eqNullSafe(F.col("_cdc_to_ts"))
    return rows.drop(*was), rows.where(~is_same).drop(*was)
