"""Rows of silver with a row per event: what each event tells, and nothing filled in (`cdc-semantics` §5)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.debezium.operations import IMAGES, Operation
from cdc_lakehouse.lake.applied import Applied
from cdc_lakehouse.lake.bronze_schema import columns_in
from cdc_lakehouse.lake.coordinates import in_interval
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.silver_mode import UNAVAILABLE
from cdc_lakehouse.lake.spans import together
from cdc_lakehouse.silver.changes import Changes
from cdc_lakehouse.silver.examine import examine
from cdc_lakehouse.silver.folding.event_identity import COORDINATE, TOPIC, coordinate
from cdc_lakehouse.silver.folding.place import PLACE, place_of_event
from cdc_lakehouse.silver.folding.told_rows import tells_row
from cdc_lakehouse.silver.look import MergeTask
from cdc_lakehouse.silver.missing_rows import refuse_missing_rows
from cdc_lakehouse.silver.passed_over import passed_over
from cdc_lakehouse.silver.plan import MOST_PARTS
from cdc_lakehouse.silver.read import ROW_OPS, bronze_rows, changed_behind, work_of
from cdc_lakehouse.silver.schema.dropped import unsent_of
from cdc_lakehouse.silver.work import Work

_APPENDED = (*ROW_OPS, Operation.TRUNCATE)


def appended_changes(session: SparkSession, lake: Lake, task: MergeTask) -> Changes:
    """One row per event of the work, and of what came late or was decoded again; nothing is written here.

    Each row stands for itself, so none waits for a record that could not be decoded.
    """
    name = task.table.name
    history = bronze_rows(session, lake.bronze(name), version=task.bronze_version, held=task.held)
    columns = columns_in(history.schema)
    behind = changed_behind(task.held, together(task.late, task.read_again), task.redo)
    is_work = work_of(task.held, task.work) | behind
    work = history.where(is_work)
    # Old events of an interval say nothing about what the source sends now, nor about rows that are missing.
    facts = examine(work, table=name, by_key=False)
    refuse_missing_rows(task, history, read=facts.read)
    unsent = unsent_of(
        task.table,
        lake.archives,
        columns,
        held=task.held,
        before=task.before.applied,
        newest=facts.newest_writers,
        highest=facts.highest,
    )
    taken = work if task.recomputed is None else history.where(is_work | in_interval(task.recomputed))
    events = taken.where(F.col("decode_error").isNull() & F.col("op").isin(*_APPENDED))
    undecodable = passed_over(work, task.held, most=MOST_PARTS) if facts.undecoded else {}
    return Changes(
        rows=appended(events, columns, tells_row=tells_row(events, columns, archives=lake.archives)),
        work=Work(
            history,
            events,
            keys=None,
            columns=columns,
            facts=facts,
            undecodable=undecodable,
            parked=0,
            treated=unsent.columns.treated,
            dropped=unsent.columns,
        ),
        applied=Applied(dropped=unsent.columns.treated, writers=unsent.writers),
    )


def appended(events: DataFrame, columns: TableColumns, *, tells_row: Column) -> DataFrame:
    """Repetitions included."""
    op, keys = F.col("op"), keys_of(columns)
    image = F.when(op.isin(*IMAGES), F.col("after"))
    row = image.when((op == Operation.DELETE) & tells_row, F.col("before"))

    def value(name: str) -> Column:
        told = row.getField(name)
        return F.coalesce(F.col("key").getField(name), told) if name in keys else told

    return events.withColumn(PLACE, place_of_event()).select(
        *(value(column.name).alias(column.name) for column in columns.row),
        op.alias("_cdc_op"),
        F.col(PLACE)["position"].alias("_cdc_position"),
        F.col(PLACE)["tx_id"].alias("_cdc_tx_id"),
        F.col("source.ts").alias("_cdc_commit_ts"),
        F.when(F.size("unavailable") > 0, F.col("unavailable")).alias(UNAVAILABLE),
        F.col("topic").alias(TOPIC),
        coordinate(has_key=bool(keys)).alias(COORDINATE),
    )


def keys_of(columns: TableColumns) -> Sequence[str]:
    return tuple(column.name for column in columns.key)
