"""Give undecodable rows of bronze other contents where they stand: one MERGE, one step of the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.lake.delta_transaction import NTZ
from cdc_lakehouse.lake.ledger import Ledger, Ranges, first_incarnations, source_of, topic_of
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.newest_ledger import newest_ledger
from cdc_lakehouse.lake.quarantine import ERROR
from cdc_lakehouse.lake.redo import hull_of
from cdc_lakehouse.lake.tables import allow_timestamps
from cdc_lakehouse.lake.transaction import commit, fenced_statement

PLACE = ("topic", "partition", "offset", "topic_id")
Place = tuple[str, int, int, str | None]


def within_of(places: Iterable[Place], held: Ledger) -> Ranges:
    """Between which offsets they lie; rows of release 0.1.0 have no `topic_id`."""
    firsts = {topic_of(source): source for source in first_incarnations(held)}
    return hull_of(
        (firsts[topic] if topic_id is None else source_of(topic, topic_id), partition, offset)
        for topic, partition, offset, topic_id in places
    )


def change_in_place(
    session: SparkSession,
    rows: DataFrame,
    *,
    count: int,
    within: Ranges,
    lake: Lake,
    held: Ledger,
    attempt: str,
    decisions: Mapping[str, Any] | None = None,
) -> int:
    """The version in which `count` undecodable rows, all `within`, are those of `rows`, with this `attempt`.

    `held` is the ledger of the version that `rows` were made from. Who was overtaken changes nothing.
    """
    uri, silver = lake.bronze(held.table), newest_ledger(lake.silver(held.table), table=held.table)
    known = 0 if silver is None else silver.ledger.redone
    ledger = held.redecoded(count, within, attempt=attempt, known=known)
    ledger = replace(ledger, decisions=decisions or {})
    same = " AND ".join(f"b.{name} <=> d.{name}" for name in PLACE)
    table = DeltaTable.forPath(session, uri)
    changed = _with_error_like(table.toDF(), rows)
    if NTZ in rows.schema.json() and NTZ not in table.toDF().schema.json():
        allow_timestamps(session, uri)
    statement = (
        table.alias("b")
        .merge(changed.alias("d"), f"{same} AND b.decode_error IS NOT NULL")
        .withSchemaEvolution()
        .whenMatchedUpdateAll()
    )

    def execute() -> None:
        with fenced_statement(session, ledger):
            statement.execute()

    return commit(execute, uri=uri, ledger=ledger).version


def _with_error_like(table: DataFrame, rows: DataFrame) -> DataFrame:
    """Of a NULL whose type lacks a field of the table a MERGE makes a struct of nulls, which is not NULL."""
    wanted, own = (frame.select(f"{ERROR}.*").schema for frame in (table, rows))
    missing = [field for field in wanted.fields if field.name not in own.names]
    if not missing:
        return rows
    known = [F.col(f"{ERROR}.{name}") for name in own.names]
    error = F.struct(*known, *(F.lit(None).cast(field.dataType).alias(field.name) for field in missing))
    return rows.withColumn(ERROR, F.when(F.col(ERROR).isNotNull(), error))
