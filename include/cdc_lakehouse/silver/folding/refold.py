"""Keys that are computed anew from all that bronze holds, to replace what silver has (`architecture` §6).

For events that came late: the position gate takes only what is newer than silver's row, and a late event
may be older than it, or newer than a deletion that left no row. An older one may tell a value that no newer
one tells, of this key or of another that the row has had since.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.debezium.operations import Operation
from cdc_lakehouse.silver.folding.place import PLACE, is_same_in_log
from cdc_lakehouse.silver.folding.row_key import key_in_types_of

REFOLDED = "_cdc_fold_refolded"
"""Column of changes: silver's row of this key is replaced, unless it is newer than all of them."""


def of_keys(events: DataFrame, keys: DataFrame) -> DataFrame:
    return _joined(events, keys, "left_semi")


def but_of_keys(events: DataFrame, keys: DataFrame) -> DataFrame:
    return _joined(events, keys, "left_anti")


def with_followers(keys: DataFrame, events: DataFrame, *, topic: str | None) -> DataFrame:
    """`keys`, and those that their rows had later and took untold values along to (`silver.folding.carry`).

    `events` are all events of bronze; `topic` is the name of the key part that is the topic, if there is one.
    """
    found = newest = keys.distinct().localCheckpoint()
    is_move = (F.col("op") == Operation.CREATE) & (F.size("unavailable") > 0)
    came = events.where(is_move).select("key", PLACE).localCheckpoint()
    if came.isEmpty():
        return found
    moves = _moves(came, events)
    if topic is not None:
        moves = moves.where(F.col("old").getField(topic) == F.col("new").getField(topic))
    moves = moves.localCheckpoint()
    while True:
        same = F.col("move.old").eqNullSafe(F.col("newest.key"))
        further = (
            moves.alias("move").join(newest.alias("newest"), same).select(F.col("move.new").alias("key"))
        )
        newest = but_of_keys(further.distinct(), found).localCheckpoint()
        if newest.isEmpty():
            return found
        found = found.unionByName(newest)


def _moves(came: DataFrame, events: DataFrame) -> DataFrame:
    """From which key to which."""
    left = events.where(F.col("op") == Operation.DELETE).select("key", PLACE)
    same = is_same_in_log(F.col(f"came.{PLACE}"), F.col(f"left.{PLACE}"))
    joined = came.alias("came").join(left.alias("left"), same)
    return joined.select(F.col("left.key").alias("old"), F.col("came.key").alias("new")).distinct()


def incomplete_keys(session: SparkSession, uri: str, columns: TableColumns) -> DataFrame:
    """Of silver's rows whose values were not all told when they were merged."""
    rows = session.read.format("delta").load(uri).where(F.col("_cdc_incomplete").isNotNull())
    return rows.select(key_in_types_of(columns.key))


def _joined(events: DataFrame, keys: DataFrame, how: str) -> DataFrame:
    same = F.col("event.key").eqNullSafe(F.col("wanted.key"))
    return events.alias("event").join(keys.alias("wanted"), same, how)
