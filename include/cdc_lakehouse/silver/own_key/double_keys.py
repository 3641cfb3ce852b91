"""Two rows of the source that have one key at one time, where the table names its key (decision 0034).

A create upon a living row is evidence, where nothing explains it: it is not sent again, and no snapshot can
have read it. So are two rows of one snapshot that are not alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from cdc_lakehouse.debezium import columns as source
from cdc_lakehouse.debezium.operations import IMAGES, Operation
from cdc_lakehouse.errors import KeyNotUniqueError
from cdc_lakehouse.lake.place import Place
from cdc_lakehouse.silver.folding.commits import recommitted, with_one_commit
from cdc_lakehouse.silver.folding.place import PLACE, is_after, literal_place, place_of_row
from cdc_lakehouse.silver.folding.refold import of_keys
from cdc_lakehouse.silver.folding.row_key import key_in_types_of
from cdc_lakehouse.silver.writing.merge_plan import DELETED

_AT, _CONTENT, _BEFORE = "_cdc_at", "_cdc_content", "_cdc_step_before"
_COORDINATE = ("topic", "partition", "offset")


@dataclass(frozen=True, slots=True)
class DoubleKeys:
    """Where a table's events are, and what of them counts."""

    history: DataFrame
    """All events of bronze."""
    key: Sequence[source.Column]
    cleared: Place | None
    """What stands before it is gone."""
    table: str

    def refuse_behind(self, silver: DataFrame, work: DataFrame) -> None:
        """Raises where an event of `work`, all behind what `silver` has applied, shows two rows."""
        work = with_one_commit(work, recommitted(work))
        wanted = self._numbers(work).where("creates > 0 or reads > 1").select("key").localCheckpoint()
        if wanted.isEmpty():
            return
        known = of_keys(_as_events(silver, self.key), wanted)
        walk = of_keys(_steps(work), wanted).unionByName(known, allowMissingColumns=True)
        found = self._doubles(walk).select("key").distinct().localCheckpoint()
        if not found.isEmpty():
            self.refuse_among(of_keys(self.history, found))

    def refuse_among(self, events: DataFrame) -> None:
        """Raises where `events`, all that bronze holds of their keys, show two rows."""
        events = with_one_commit(events, recommitted(events))
        may_be_two = "(creates > 0 and steps > 1) or reads > 1"
        wanted = self._numbers(events).where(may_be_two).select("key").localCheckpoint()
        if wanted.isEmpty():
            return
        found = self._doubles(_steps(of_keys(events, wanted)))
        first = found.orderBy(f"{PLACE}.position", *_COORDINATE).limit(1).collect()
        if first:
            raise self._error(first[0])

    def _numbers(self, events: DataFrame) -> DataFrame:
        """Per key, so that only the few that may be of two rows are sorted."""
        return (
            events.where(self._counts())
            .groupBy("key")
            .agg(
                F.count_if(F.col("op") == Operation.CREATE).alias("creates"),
                F.count_if(F.col("op") == Operation.READ).alias("reads"),
                F.count(F.lit(1)).alias("steps"),
            )
        )

    def _doubles(self, steps: DataFrame) -> DataFrame:
        """Steps that tell a row while another one of their key is alive, with that step."""
        order = Window.partitionBy("key").orderBy(f"{PLACE}.position", *_COORDINATE)
        step = F.struct("op", PLACE, _AT, _CONTENT)
        walk = steps.where(self._counts()).withColumn(_BEFORE, F.lag(step).over(order))
        return walk.where(F.coalesce(_are_two_rows(F.col(_BEFORE)), F.lit(False)))

    def _counts(self) -> Column:
        return F.lit(True) if self.cleared is None else is_after(F.col(PLACE), literal_place(self.cleared))

    def _error(self, row: Row) -> KeyNotUniqueError:
        columns = ", ".join(row["key"].__fields__)
        return KeyNotUniqueError(table=self.table, columns=columns, first=row[_BEFORE][_AT], second=row[_AT])


def _are_two_rows(before: Column) -> Column:
    """Of a step and the one before it."""
    op, at, was_at = F.col("op"), F.col(PLACE)["position"], before[PLACE]["position"]
    is_create = op == Operation.CREATE
    alive = before["op"].isin(*IMAGES) & (at["epoch"] == was_at["epoch"])
    # What was sent again is the same, and a snapshot reads a row once.
    alike = (op == before["op"]) & (is_create | ((op == Operation.READ) & (at["phase"] == 0)))
    at_once = alike & (at == was_at) & (F.col(_CONTENT) != before[_CONTENT])
    # A snapshot may have read what is streamed all the same, but of no transaction younger than its own. On a
    # standby it has none.
    tx, snapshot = F.col(PLACE)["tx_id"], before[PLACE]["tx_id"]
    unread = (before["op"] != Operation.READ) | ((snapshot > 0) & (tx > snapshot))
    return alive & (at_once | (is_create & unread & is_after(F.col(PLACE), before[PLACE])))


def _steps(events: DataFrame) -> DataFrame:
    at = F.format_string("%s/%d@%d", *_COORDINATE)
    content = F.xxhash64(F.to_json("after"))
    return events.select("key", "op", PLACE, *_COORDINATE, at.alias(_AT), content.alias(_CONTENT))


def _as_events(silver: DataFrame, key: Sequence[source.Column]) -> DataFrame:
    """Rows that are alive, as the events that they stand as."""
    if DELETED in silver.columns:
        silver = silver.where(~F.coalesce(F.col(DELETED), F.lit(False)))
    place = place_of_row("own").alias(PLACE)
    return silver.alias("own").select(key_in_types_of(key), F.col("_cdc_op").alias("op"), place)
