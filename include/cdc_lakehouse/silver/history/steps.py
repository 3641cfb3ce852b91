"""The steps of keys that versions are cut from (`versions`): events of bronze, and what silver has."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.debezium.operations import Operation
from cdc_lakehouse.lake.names import quoted
from cdc_lakehouse.silver.folding.carry import Carrier
from cdc_lakehouse.silver.folding.fold import IMAGE_AT, TOLD_AT, folded
from cdc_lakehouse.silver.folding.place import PLACE, is_after, place, place_of_row
from cdc_lakehouse.silver.history.versions import STEP, UNTOLD
from cdc_lakehouse.silver.schema.evolution import SYSTEM_PREFIX

_NUMBER, _AT = "_cdc_step_number", "_cdc_step_at"


@dataclass(frozen=True, slots=True)
class Steps:
    columns: TableColumns
    """Of bronze."""
    schema: StructType
    """Of the history."""

    def of_events(self, events: DataFrame) -> DataFrame:
        """One per place and key: what was sent again stands where it stood."""
        keys, told = ({column.name for column in side} for side in (self.columns.key, self.columns.row))

        def value(name: str) -> Column:
            if name in keys:
                return F.col("key").getField(name)
            return F.col("after").getField(name) if name in told else F.lit(None)

        begun = F.struct("op", F.col(PLACE).alias("place"), F.col("source.ts").alias("ts"))
        steps = events.select(
            *(value(each.name).cast(each.dataType).alias(each.name) for each in self._own()),
            _step(begun, is_base=False, is_known=F.lit(False)),
            F.coalesce("unavailable", F.array().cast("array<string>")).alias(UNTOLD),
            F.struct(F.col(f"{PLACE}.position"), F.col(f"{PLACE}.tx_id")).alias(_AT),
        )
        names = [column.name for column in self.columns.key]
        return steps.dropDuplicates([*names, _AT]).drop(_AT)

    def of_silver(self, silver: DataFrame, history: DataFrame, *, emptied: Collection[str] = ()) -> DataFrame:
        """Rows of silver, each begun as its version in `history`.

        `emptied` are columns whose values only the history still has.
        """
        keys = [column.name for column in self.columns.key]
        same = F.lit(True)
        for name in keys:
            same &= F.col(f"s.{quoted(name)}").eqNullSafe(F.col(f"h.{quoted(name)}"))
        begun_at, at = place(F.col("h._cdc_from"), F.col("h._cdc_tx_id")), place_of_row("s")
        until = place(F.col("h._cdc_to"), F.col("h._cdc_to_tx_id"))
        within = ~is_after(begun_at, at) & (F.col("h._cdc_to").isNull() | is_after(until, at))
        joined = silver.alias("s").join(history.alias("h"), same & within, "left")
        of_silver = F.struct(
            F.col("s._cdc_op").alias("op"), at.alias("place"), F.col("s._cdc_commit_ts").alias("ts")
        )
        of_history = F.struct(
            F.col("h._cdc_op").alias("op"), begun_at.alias("place"), F.col("h._cdc_from_ts").alias("ts")
        )
        is_known = F.col("h._cdc_from").isNotNull()
        begun = F.when(is_known, of_history).otherwise(of_silver)
        known = set(silver.columns)

        def value(name: str) -> Column:
            of_row = F.col(f"s.{quoted(name)}") if name in known else F.lit(None)
            if name not in emptied:
                return of_row
            return F.when(is_known, F.col(f"h.{quoted(name)}")).otherwise(of_row)

        return joined.select(
            *(value(field.name).cast(field.dataType).alias(field.name) for field in self._own()),
            _step(begun, is_base=True, now=of_silver, is_known=is_known),
            F.coalesce("s._cdc_incomplete", F.array().cast("array<string>")).alias(UNTOLD),
        )

    def with_moves(self, steps: DataFrame, events: DataFrame, carrier: Carrier) -> DataFrame:
        """The creates of changed keys among `events` with what their old keys had, as far as bronze tells."""
        keys = [column.name for column in self.columns.key]
        is_move = (F.col("op") == Operation.CREATE) & (F.size("unavailable") > 0)
        # A carrier looks for one place of a key at a time.
        ordered = Window.partitionBy("key").orderBy(f"{PLACE}.position")
        moves = events.where(is_move).withColumn(_NUMBER, F.dense_rank().over(ordered)).localCheckpoint()
        times = moves.agg(F.max(_NUMBER).alias("times")).collect()[0]["times"] or 0
        for number in range(1, times + 1):
            own = moves.where(F.col(_NUMBER) == number)
            found = carrier.filled(folded(own, self.columns, lacking=carrier.lacking, cleared=None))
            steps = _told_by(found, steps, keys=keys, lacking=carrier.lacking)
            # Of a key that moved often, or its plan would grow with every move.
            steps = steps.localCheckpoint() if number > 1 else steps
        return steps

    def _own(self) -> Sequence[Column]:
        return [each for each in self.schema if not each.name.startswith(SYSTEM_PREFIX)]


def _step(begun: Column, *, is_base: bool, is_known: Column, now: Column | None = None) -> Column:
    of = begun if now is None else now
    return F.struct(
        of["op"].alias("op"),
        of["place"].alias("place"),
        of["ts"].alias("ts"),
        F.lit(is_base).alias("is_base"),
        is_known.alias("is_known"),
        begun.alias("begun"),
    ).alias(STEP)


def _told_by(found: DataFrame, steps: DataFrame, *, keys: Sequence[str], lacking: Sequence[str]) -> DataFrame:
    same = F.col(f"step.{STEP}")["place"] == F.col(f"found.{IMAGE_AT}")
    for name in keys:
        same &= F.col(f"step.{quoted(name)}").eqNullSafe(F.col(f"found.{quoted(name)}"))
    joined = steps.alias("step").join(found.alias("found"), same, "left")
    is_found = F.col(f"found.{IMAGE_AT}").isNotNull()

    def value(name: str) -> Column:
        own = F.col(f"step.{quoted(name)}")
        if name not in lacking:
            return own
        return F.when(is_found, F.col(f"found.{quoted(name)}")).otherwise(own).alias(name)

    still = F.array_compact(
        F.array(*(F.when(F.col(f"found.{TOLD_AT}")[name].isNull(), F.lit(name)) for name in lacking))
    )
    untold = F.when(is_found, still).otherwise(F.col(f"step.{UNTOLD}")).alias(UNTOLD)
    return joined.select(*(value(name) for name in steps.columns if name != UNTOLD), untold)
