"""Leave out what a recomputed interval would not change: a second run of it writes nothing, and says so."""

from __future__ import annotations

from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.config.models import Mode
from cdc_lakehouse.lake.names import quoted
from cdc_lakehouse.lake.tables import schema_of
from cdc_lakehouse.silver.append import keys_of
from cdc_lakehouse.silver.applying import plan_of
from cdc_lakehouse.silver.changes import Changes
from cdc_lakehouse.silver.folding.fold import GONE
from cdc_lakehouse.silver.folding.refold import REFOLDED
from cdc_lakehouse.silver.history.upkeep import changes_history
from cdc_lakehouse.silver.history.versions import is_same_value
from cdc_lakehouse.silver.look import MergeTask
from cdc_lakehouse.silver.writing.append_merge import missing_events
from cdc_lakehouse.silver.writing.merge_plan import MergePlan


def without_unchanged(
    session: SparkSession, application: Application, task: MergeTask, changes: Changes, rows: DataFrame
) -> DataFrame:
    """Return `rows` without recomputed keys that are in silver as they would be written.

    A key that silver has twice is one row of the result if any of its rows differs.
    """
    uri = application.lake.silver(task.table.name)
    table = schema_of(session, uri)
    if task.interval is None or REFOLDED not in rows.columns or table is None:
        return rows
    plan = plan_of(task, changes, rows)
    silver = session.read.format("delta").load(uri).alias("s")
    is_there = F.col("s._cdc_position").isNotNull()
    same = reduce(and_, (_is_same(table, rows, name, value) for name, value in plan.row().items()))
    is_done = is_there & (~plan.applies() | same)
    if not plan.keeps_deleted:
        gone = F.col(f"f.{GONE}")
        is_done = (is_done & ~(gone & plan.applies())) | (~is_there & gone)
    is_done &= F.col(f"f.{REFOLDED}")
    joined = rows.alias("f").join(silver, plan.on_key(), "left")
    return joined.where(~F.coalesce(is_done, F.lit(False))).select("f.*").dropDuplicates([*plan.keys])


def changes_nothing(
    session: SparkSession, application: Application, task: MergeTask, changes: Changes, rows: DataFrame
) -> bool:
    """Return whether the merge only recomputes an interval, and silver and its history are right already."""
    if task.interval is None or not task.is_level:
        return False
    if task.mode is Mode.APPEND:
        uri = application.lake.silver(task.table.name)
        return bool(missing_events(session, uri, rows=rows, keys=keys_of(changes.columns)).isEmpty())
    plan = plan_of(task, changes, rows)
    if plan.sets_all or not _cleared_rows(session, application, task, plan).isEmpty():
        return False
    return rows.isEmpty() and not changes_history(session, application, task, changes)


def _cleared_rows(
    session: SparkSession, application: Application, task: MergeTask, plan: MergePlan
) -> DataFrame:
    """Return rows of silver that stand before what clears the table."""
    silver = session.read.format("delta").load(application.lake.silver(task.table.name)).alias("s")
    return silver.where(plan.is_cleared())


def _is_same(table: StructType, rows: DataFrame, name: str, value: Column) -> Column:
    """Compare what silver has with what it would get.

    Values whose parts have another order than in silver count as different: Spark compares them by place.
    """
    if name not in table.names:
        return F.lit(True)
    kind = table[name].dataType
    own = rows.schema[name].dataType.simpleString() if name in rows.columns else kind.simpleString()
    if "struct<" in own and own != kind.simpleString():
        return F.lit(False)
    return is_same_value(kind, F.col(f"s.{quoted(name)}"), value)
