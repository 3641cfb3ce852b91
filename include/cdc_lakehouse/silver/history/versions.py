"""Cut the steps of a key into versions, each from its own place to the next step's (`cdc-semantics` §9).

A step is an event, or what silver had of the row: all of its columns, and which of them it does not tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType
from pyspark.sql.window import WindowSpec

from cdc_lakehouse.debezium.operations import Operation
from cdc_lakehouse.lake.names import quoted
from cdc_lakehouse.silver.folding.place import PLACE, is_after, place
from cdc_lakehouse.silver.history.endings import TS, first_ending

STEP = "_cdc_step"
"""Column of a step: the event (`op`, `place`, `ts`), whether it is silver's row (`is_base`), whether the
history has its version (`is_known`), and the event that began that version (`begun`)."""
UNTOLD = "_cdc_step_untold"
"""Names of the columns that it does not tell; never null."""
UNCHANGED = "_cdc_version_unchanged"
"""Column of a version: whether the history has it unchanged."""
_CUT, _SEGMENT, _UNTIL, _VERSION = (f"_cdc_step_{name}" for name in ("cut", "segment", "until", "version"))
_FIRST, _LATEST = "_cdc_first_place", "_cdc_latest_time"
_EXACT = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "ignoreNullFields": "false",
}
"""JSON has milliseconds by default, and one text for a struct without values and for none."""


@dataclass(frozen=True, slots=True)
class Versions:
    keys: Sequence[str]
    names: Sequence[str]
    """Columns of the source, the keys among them."""
    lacking: Sequence[str]
    """Columns that some step does not tell."""
    tracked: Sequence[str] | None
    """A version begins where one of these changes. With None every image begins one, except a row that a
    snapshot read unchanged."""
    reads: bool
    """True if any step is a row that a snapshot read."""
    dropped: frozenset[str] = frozenset()
    """Columns that the source does not send any more: a version that lacks their values is not incomplete."""

    def of(self, steps: DataFrame, endings: DataFrame) -> DataFrame:
        """Rows of a history. No two steps of a key stand at one place; what silver had stands first."""
        cut = steps.crossJoin(F.broadcast(endings)).withColumn(_UNTIL, self._until())
        until = F.col(_UNTIL)
        ends = self._is_delete() | until["is_ending"] | (until["op"] == Operation.DELETE)
        told = self._told(cut.withColumn(_CUT, F.coalesce(ends, F.lit(False)))).where(~self._is_delete())
        return self._rows(self._joined(told) if self.reads or self.tracked is not None else told)

    def _until(self) -> Column:
        following = F.lead(STEP).over(self._in_order())
        created = following["op"] == Operation.CREATE
        ending = first_ending(F.col(STEP)["place"], following["place"], is_created=created)
        is_ending = ending.isNotNull()
        return F.struct(
            F.when(is_ending, ending[PLACE]).otherwise(following["place"]).alias("place"),
            F.when(is_ending, ending[TS]).otherwise(following["ts"]).alias("ts"),
            F.when(~is_ending, following["op"]).alias("op"),
            is_ending.alias("is_ending"),
        )

    def _told(self, steps: DataFrame) -> DataFrame:
        """What a step does not tell is what was told last, since the row began."""
        if not self.lacking:
            return steps
        begins = F.coalesce(F.lag(_CUT).over(self._in_order()), F.lit(True)) | self._came_from_another_key()
        begun = F.sum(begins.cast("int")).over(self._in_order().rowsBetween(Window.unboundedPreceding, 0))
        so_far = Window.partitionBy(*self._quoted_keys(), _SEGMENT).orderBy(*self._order())
        so_far = so_far.rowsBetween(Window.unboundedPreceding, Window.currentRow)

        def last_told(name: str) -> Column:
            tells = ~F.array_contains(UNTOLD, name) & ~self._is_delete()
            value = F.when(tells, F.struct(F.col(quoted(name)).alias("value")))
            return F.last(value, ignorenulls=True).over(so_far)

        found = {name: last_told(name) for name in self.lacking}
        open_ones = [
            F.when(value.isNull(), F.lit(name)) for name, value in found.items() if name not in self.dropped
        ]
        others = F.array_except(UNTOLD, F.array(*(F.lit(name) for name in self.lacking)))
        untold = F.concat(F.array_compact(F.array(*open_ones)), others)
        values = {name: value["value"] for name, value in found.items()}
        return steps.withColumn(_SEGMENT, begun).withColumns({**values, UNTOLD: untold})

    def _joined(self, images: DataFrame) -> DataFrame:
        """Merge images that change nothing into one version: the first one's begin, the last one's end."""
        before = self._in_order()
        begins = F.coalesce(F.lag(_CUT).over(before), F.lit(True)) | self._changes(images.schema)
        version = F.sum(begins.cast("int")).over(before.rowsBetween(Window.unboundedPreceding, 0))
        numbered = images.withColumn(_VERSION, version)
        order = F.struct(*self._order())
        others = [name for name in images.columns if name not in self.keys]
        return numbered.groupBy(*self._quoted_keys(), _VERSION).agg(
            *(F.max_by(quoted(name), order).alias(name) for name in others if name != STEP),
            F.min_by(STEP, order).alias(STEP),
        )

    def _changes(self, schema: StructType) -> Column:
        """Return whether an image begins a version: it differs from the image before it."""
        before = self._in_order()
        differs = [
            ~comparable(name, schema).eqNullSafe(F.lag(comparable(name, schema)).over(before))
            for name in (self.names if self.tracked is None else self.tracked)
        ]
        changes = reduce(or_, differs, F.lit(False))
        if self.tracked is not None:
            return changes
        was_open = F.lag(F.size(UNTOLD)).over(before) > 0
        return (F.col(STEP)["op"] != Operation.READ) | F.col(STEP)["is_base"] | was_open | changes

    def _rows(self, versions: DataFrame) -> DataFrame:
        begun, end = F.col(STEP)["begun"], F.col(_UNTIL)
        is_unchanged = F.lit(False)
        if self.tracked is None:
            is_unchanged = F.col(STEP)["is_known"] & end["place"].isNull()
        return versions.select(
            *(F.col(quoted(name)) for name in self.names),
            begun["op"].alias("_cdc_op"),
            begun["place"]["position"].alias("_cdc_from"),
            end["place"]["position"].alias("_cdc_to"),
            begun["ts"].alias("_cdc_from_ts"),
            end["ts"].alias("_cdc_to_ts"),
            begun["place"]["tx_id"].alias("_cdc_tx_id"),
            end["place"]["tx_id"].alias("_cdc_to_tx_id"),
            F.when(F.size(UNTOLD) > 0, F.col(UNTOLD)).alias("_cdc_incomplete"),
            is_unchanged.alias(UNCHANGED),
        )

    def _is_delete(self) -> Column:
        return F.col(STEP)["op"] == Operation.DELETE

    def _came_from_another_key(self) -> Column:
        return (F.col(STEP)["op"] == Operation.CREATE) & (F.size(UNTOLD) > 0)

    def _in_order(self) -> WindowSpec:
        return Window.partitionBy(*self._quoted_keys()).orderBy(*self._order())

    def _order(self) -> Sequence[Column]:
        return [~F.col(STEP)["is_base"], F.col(STEP)["place"]["position"]]

    def _quoted_keys(self) -> Sequence[Column]:
        return [F.col(quoted(name)) for name in self.keys]


def in_time(versions: DataFrame, known: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return `versions` with times that never run backwards within a key, nor behind its `known` versions.

    Times of events do run backwards: commit times between transactions, and snapshot rows have the
    connector's clock.
    """
    names = [quoted(name) for name in keys]
    begun = place(F.col("_cdc_from"), F.col("_cdc_tx_id"))
    firsts = versions.groupBy(*names).agg(F.min_by(begun, "_cdc_from").alias(_FIRST))
    same = reduce(and_, (F.col(f"known.{name}").eqNullSafe(F.col(f"cut.{name}")) for name in names))
    older = (
        known.alias("known").join(firsts.alias("cut"), same).where(is_after(F.col(_FIRST), begun_of("known")))
    )
    has_ended = ~is_after(ended_of("known"), F.col(_FIRST))
    ended_at = F.when(F.col("known._cdc_to").isNotNull() & has_ended, F.col("known._cdc_to_ts"))
    latest = F.max(F.greatest(F.col("known._cdc_from_ts"), ended_at)).alias(_LATEST)
    floors = older.groupBy(*(F.col(f"cut.{name}") for name in names)).agg(latest)
    same = reduce(and_, (F.col(f"version.{name}").eqNullSafe(F.col(f"floor.{name}")) for name in names))
    joined = versions.alias("version").join(floors.alias("floor"), same, "left").select("version.*", _LATEST)
    before = Window.partitionBy(*names).orderBy("_cdc_from").rowsBetween(Window.unboundedPreceding, -1)
    so_far = F.max(F.greatest("_cdc_from_ts", "_cdc_to_ts")).over(before)
    since = F.greatest(F.col(_LATEST), so_far, F.col("_cdc_from_ts"))
    until = F.when(F.col("_cdc_to").isNotNull(), F.greatest(since, F.col("_cdc_to_ts")))
    return joined.withColumns({"_cdc_from_ts": since, "_cdc_to_ts": until}).drop(_LATEST)


def begun_of(table: str) -> Column:
    """Return the place where a version of this table alias begins."""
    return place(F.col(f"{table}._cdc_from"), F.col(f"{table}._cdc_tx_id"))


def ended_of(table: str) -> Column:
    """Return the place where a version of this table alias ends."""
    return place(F.col(f"{table}._cdc_to"), F.col(f"{table}._cdc_to_tx_id"))


def is_same_value(kind: DataType, one: Column, other: Column) -> Column:
    """Return whether two values of a column of this type are the same. NULL is a value."""
    return _comparable(one, kind).eqNullSafe(_comparable(other, kind))


def comparable(name: str, schema: StructType) -> Column:
    """Return the column in a form that Spark can compare."""
    return _comparable(F.col(quoted(name)), schema[name].dataType)


def _comparable(value: Column, kind: DataType) -> Column:
    """Maps have no equality in Spark: what contains them is compared as JSON text."""
    if "map<" not in kind.simpleString():
        return value
    return F.to_json(F.struct(value.cast(kind).alias("value")), _EXACT)
