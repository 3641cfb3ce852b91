"""Give silver the columns that bronze has got, as the table's policy wants it, and keep a log of it."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.silver.look import MergeTask
from cdc_lakehouse.silver.schema.change_log import Occasion, keep
from cdc_lakehouse.silver.schema.dropped import DroppedColumns
from cdc_lakehouse.silver.schema.evolution import (
    ColumnChange,
    dropped_changes,
    plan_columns,
    refuse_by_policy,
    refuse_dropped,
    told,
    with_writers,
)
from cdc_lakehouse.silver.schema.table_schema import apply_columns, source_types
from cdc_lakehouse.silver.schema.writers import writers_of

logger = logging.getLogger(__name__)


def follow_bronze(
    session: SparkSession,
    application: Application,
    task: MergeTask,
    *,
    existing: StructType,
    wanted: StructType,
    columns: TableColumns,
    dropped: DroppedColumns,
) -> None:
    """Make `existing`, silver's columns, hold `wanted`, those of its changes; say what the source `dropped`.

    A second call finds nothing to change; one that was killed half way is completed. Raises where the policy,
    or the types, leave it to a person; nothing is changed then.
    """
    name, lake = task.table.name, application.lake
    sides = {column.name: column.side_of for column in columns.row if column.side_of is not None}
    types = source_types(existing)
    changes: tuple[ColumnChange, ...] = (
        *plan_columns(types, source_types(wanted), table=name, sides=sides),
        *dropped_changes(dropped, types),
    )
    if not changes:
        return
    sources = {column: source for source, column in task.table.columns.rename.items()}
    changes = tuple(replace(each, sent_as=sources.get(each.sent_as, each.sent_as)) for each in changes)
    changes = with_writers(changes, writers_of(session, lake, task))
    refuse_by_policy(changes, task.table.on_schema_change, table=name)
    refuse_dropped(changes, task.table.on_dropped_column, table=name)
    uri = lake.silver(name)
    occasion = Occasion(
        table=name,
        at=datetime.now(UTC),
        attempt=application.attempt,
        bronze_version=task.bronze_version,
        silver_id=DeltaTable.forPath(session, uri).detail().collect()[0]["id"],
        silver_step=task.before.seq + 1,
    )
    keep(session, lake.schema_changes, changes, occasion)
    apply_columns(session, uri, changes)
    logger.info("columns changed", extra={"changes": [told(each) for each in changes]})
