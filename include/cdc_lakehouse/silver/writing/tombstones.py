"""Deleted keys of a table and where they were deleted, so that no older event brings a row back.

An event that is older than its delete can come after it: the connector sends a block again after a crash,
and a topic that got more partitions hands keys to other ones. Tombstones are facts about the source, so
writing one twice, or without the merge that it was written for, does no harm. A table that keeps deleted rows
writes none, but may have some of the time before.
"""

from __future__ import annotations

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.debezium.operations import Operation
from cdc_lakehouse.errors import SupersededError
from cdc_lakehouse.lake.applied import Reached
from cdc_lakehouse.lake.delta_transaction import NTZ
from cdc_lakehouse.lake.names import quoted
from cdc_lakehouse.lake.steps import Cause, Standing, commit_step, standing_of
from cdc_lakehouse.lake.tables import allow_timestamps, create_if_missing, life_of
from cdc_lakehouse.silver.folding.fold import GONE
from cdc_lakehouse.silver.folding.place import is_after, place_of_row
from cdc_lakehouse.silver.folding.refold import REFOLDED
from cdc_lakehouse.silver.folding.row_key import key_values_in_types_of

_PLACE_COLUMNS = ("_cdc_position", "_cdc_tx_id", "_cdc_commit_ts")


def bury(
    session: SparkSession, uri: str, changes: DataFrame, columns: TableColumns, *, cause: Cause, silver: str
) -> None:
    """Keep where the deleted rows among `changes` stand. A second call adds the same facts once more.

    What an earlier life of `silver` left goes with the first step of this one, in the same commit: its
    deletes say nothing here, and its keys may have been other columns. Writers take turns, so who read the
    tombstones before that step can take nothing away that came behind it.
    """
    keys = [quoted(column.name) for column in columns.key]
    # What a truncate took away is known by the truncate.
    gone = F.col(GONE) & (F.col("_cdc_op") != Operation.TRUNCATE)
    deletes = changes.where(gone).select(*keys, *_PLACE_COLUMNS)
    create_if_missing(session, uri, schema=deletes.schema, properties={})
    read = standing_of(uri)
    writer = deletes.write.format("delta").mode("append")
    if _is_of_an_earlier_life(read, cause):
        if life_of(silver) != cause.life:
            raise SupersededError(table=cause.table, seq=cause.silver - 1, attempt=cause.attempt)
        if NTZ in deletes.schema.simpleString():
            allow_timestamps(session, uri)
        writer = writer.mode("overwrite").option("overwriteSchema", "true")
    else:
        known = session.read.format("delta").load(uri)
        if _key_types(known, columns) != _key_types(deletes, columns):
            own = key_values_in_types_of(columns.key)
            kept = known.select(*own, *_PLACE_COLUMNS).unionByName(deletes)
            writer = kept.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    commit_step(lambda: writer.save(uri), session=session, uri=uri, read=read, cause=cause)


def _is_of_an_earlier_life(read: Standing, cause: Cause) -> bool:
    return cause.silver == 1 if read.life is None else read.life != cause.life


def _key_types(rows: DataFrame, columns: TableColumns) -> list[str | None]:
    types = {field.name: field.dataType.simpleString() for field in rows.schema}
    return [types.get(column.name) for column in columns.key]


def without_buried(session: SparkSession, uri: str, changes: DataFrame, columns: TableColumns) -> DataFrame:
    """Some of `changes` are refolded: of these, none but what is newer than the delete of its key.

    Like a row of silver it says what was applied: of that bronze may lack something by now.
    """
    if not DeltaTable.isDeltaTable(session, uri):
        return changes
    newest = F.max(F.struct("_cdc_position", "_cdc_tx_id")).alias("newest")
    # At a version: `bury` may widen the keys of the tombstones before these rows are written.
    known = session.read.format("delta").option("versionAsOf", standing_of(uri).version).load(uri)
    known = known.select(*key_values_in_types_of(columns.key), *_PLACE_COLUMNS)
    dead = known.groupBy(*(quoted(each.name) for each in columns.key))
    places = dead.agg(newest).select(*(F.col(quoted(each.name)) for each in columns.key), "newest.*")
    is_older = is_after(place_of_row("dead"), place_of_row("change")) & F.col(f"change.{REFOLDED}")
    for each in columns.key:
        name = quoted(each.name)
        is_older &= F.col(f"change.{name}").eqNullSafe(F.col(f"dead.{name}"))
    return changes.alias("change").join(places.alias("dead"), is_older, "left_anti")


def not_below(lowest: Reached) -> Column:
    """Literals on two fields, so that Delta skips files: below them nothing can be newer than the events.

    But for a transaction that named no commit at first and names one when it is sent again (rule 2.2).
    """
    epoch, commit = lowest
    position = F.col("_cdc_position")
    unnamed = (position["phase"] == 1) & (position["commit"] == 0)
    within = (position["epoch"] == epoch) & ((position["commit"] >= commit) | unnamed)
    return (position["epoch"] > epoch) | within
