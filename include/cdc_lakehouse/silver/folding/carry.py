"""Values that a row brought along from another key: what bronze says of them (`cdc-semantics` §3).

The create of a changed key lacks what the update did not touch. It stands where the delete of the old key
stands, so the value is the last that the old key had before that delete, and so on through all its changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.debezium.operations import Operation
from cdc_lakehouse.lake.names import quoted
from cdc_lakehouse.lake.place import Place
from cdc_lakehouse.silver.folding.commits import recommitted, with_one_commit
from cdc_lakehouse.silver.folding.fold import GONE, MOVED_AT, TOLD_AT, folded
from cdc_lakehouse.silver.folding.place import PLACE, is_after, is_same_in_log
from cdc_lakehouse.silver.folding.row_key import key_of

_ROOT = "_cdc_carry_root"
"""The key that wants values."""
_KEY = "_cdc_carry_key"
"""Under which they are looked for: that of the root, or one that its row had before."""
_BELOW = "_cdc_carry_below"
"""The place before which they are looked for."""
_HOP = "_cdc_carry_hop"
"""How many changes of its key lie between."""


@dataclass(frozen=True, slots=True)
class Carrier:
    """What finds them for the changes of one merge."""

    history: DataFrame
    """All events of bronze."""
    columns: TableColumns
    lacking: Sequence[str]
    cleared: Place | None

    def filled(self, changes: DataFrame) -> DataFrame:
        """`changes` with what history tells of the open values of changed keys."""
        told: list[DataFrame] = []
        needs = self._moved(self.unfilled(changes).withColumn(_KEY, self._key("key")))
        while not needs.isEmpty():
            images = self._images(needs).localCheckpoint()
            told.append(images.withColumn(_HOP, F.lit(len(told))))
            needs = self._moved(
                images.where(self._is_open()).join(needs.select(_ROOT, _KEY), self._is_of_need())
            )
            needs = needs.localCheckpoint()
        return self._with(changes, reduce(DataFrame.unionByName, told)) if told else changes

    def unfilled(self, changes: DataFrame) -> DataFrame:
        """Those that came from another key and lack a value of it."""
        return changes.where(self._is_open() & ~F.col(GONE) & F.col(MOVED_AT).isNotNull())

    def _images(self, needs: DataFrame) -> DataFrame:
        """One row per root: what the key that it looks at was before the place."""
        same = F.col("event.key").eqNullSafe(F.col(f"need.{_KEY}"))
        earlier = is_after(F.col(f"need.{_BELOW}"), F.col(f"event.{PLACE}"))
        found = self.history.alias("event").join(needs.alias("need"), same & earlier)
        own = found.select(
            F.col(f"need.{_ROOT}").alias("key"),
            *(F.col(f"event.{name}") for name in ("topic", "op", "after", "unavailable", "source", PLACE)),
        )
        own = with_one_commit(own, recommitted(own))
        images = folded(own, self.columns, lacking=self.lacking, cleared=self.cleared)
        return images.where(~F.col(GONE))

    def _moved(self, rows: DataFrame) -> DataFrame:
        """The needs of rows whose `key` came from another one: that which was deleted at the same place.

        Where columns of the row are the key, the message key may have changed and left that one as it was.
        """
        deletes = self.history.where(F.col("op") == Operation.DELETE).alias("deleted")
        moved, left = F.col(f"moved.{MOVED_AT}"), F.col(f"deleted.{PLACE}")
        came = rows.where(F.col(MOVED_AT).isNotNull()).select(self._key(_ROOT), _KEY, MOVED_AT).alias("moved")
        found = came.join(deletes, is_same_in_log(moved, left) & self._is_of_one_topic()).select(
            f"moved.{_ROOT}", F.struct(F.col("deleted.key").alias(_KEY), left.alias(_BELOW)).alias("need")
        )
        # A block that was sent again has the delete twice.
        return (
            found.groupBy(_ROOT).agg(F.max_by("need", f"need.{_BELOW}").alias("need")).select(_ROOT, "need.*")
        )

    def _is_of_one_topic(self) -> Column:
        """Return whether both events are of one topic: places in the logs of two servers do not compare."""
        name = self.columns.topic
        if name is None:
            return F.lit(True)
        return F.col(f"moved.{_KEY}").getField(name) == F.col("deleted.key").getField(name)

    def _with(self, changes: DataFrame, told: DataFrame) -> DataFrame:
        """The nearest row that tells a value has it."""
        values = {
            name: F.min_by(
                F.struct(F.col(quoted(name)).alias("value")), F.when(self._tells(name), F.col(_HOP))
            )
            for name in self.lacking
        }
        nearest = told.groupBy(self._key(_ROOT)).agg(*(value.alias(name) for name, value in values.items()))
        joined = changes.alias("change").join(
            nearest.alias("near"),
            key_of(self._keys, table="change").eqNullSafe(F.col(f"near.{_ROOT}")),
            "left",
        )
        return joined.select(*(self._column(name) for name in changes.columns))

    def _column(self, name: str) -> Column:
        own, near = F.col(f"change.{quoted(name)}"), F.col(f"near.{quoted(name)}")
        if name in self.lacking:
            is_open = F.col(f"change.{TOLD_AT}")[name].isNull()
            return F.when(is_open, near["value"]).otherwise(own).alias(name)
        if name == TOLD_AT:
            return F.struct(*(self._told_at(each).alias(each) for each in self.lacking)).alias(name)
        return own.alias(name)

    def _told_at(self, name: str) -> Column:
        """A value that the row brought along is as old as the move: what silver was told since counts."""
        found = F.when(F.col(f"near.{quoted(name)}").isNotNull(), F.col(f"change.{MOVED_AT}"))
        return F.coalesce(F.col(f"change.{TOLD_AT}")[name], found)

    def _is_open(self) -> Column:
        return reduce(or_, (~self._tells(name) for name in self.lacking))

    def _tells(self, name: str) -> Column:
        return F.col(TOLD_AT)[name].isNotNull()

    def _is_of_need(self) -> Column:
        return self._key("key").eqNullSafe(F.col(_ROOT))

    def _key(self, name: str) -> Column:
        return key_of(self._keys).alias(name)

    @property
    def _keys(self) -> Sequence[str]:
        return [column.name for column in self.columns.key]
