"""What rows a bronze table really holds: asked only where its log cannot tell."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F

from cdc_lakehouse.bronze.standing import Difference, Present
from cdc_lakehouse.errors import DataFilesGoneError, ForeignRowsError, LedgerLostError
from cdc_lakehouse.lake.coordinates import TOPIC_ID, with_topic_id
from cdc_lakehouse.lake.damage import files_of, refuse_missing_files
from cdc_lakehouse.lake.ledger import Ledger, first_incarnations, topic_of

_PLACE = ("source", "partition")


def held_rows(session: SparkSession, uri: str, *, table: str) -> Present:
    """Raises `LedgerLostError` where rows do not say which incarnation of their topic they are of."""
    rows = _rows(session.read.format("delta").load(uri), F.col(TOPIC_ID))
    held = rows.groupBy(*_PLACE).agg(F.min("offset").alias("first"), F.max("offset").alias("last")).collect()
    if any(row["source"] is None for row in held):
        raise LedgerLostError(table=table, path=uri)
    return _present(held)


def changed_rows(session: SparkSession, uri: str, *, ours: Ledger, stated: int) -> Difference:
    """The coordinates of the table now beside those of version `stated`, whose ledger is `ours`."""
    _refuse_missing_version(uri, table=ours.table, stated=stated)
    firsts = {topic_of(source): source.rpartition("@")[2] for source in first_incarnations(ours)}
    incarnation = F.coalesce(TOPIC_ID, *(F.when(F.col("topic") == t, F.lit(i)) for t, i in firsts.items()))
    reader = session.read.format("delta")
    before = _rows(reader.option("versionAsOf", stated).load(uri), incarnation)
    now = _rows(session.read.format("delta").load(uri), incarnation)
    counted = now.groupBy(*_PLACE, "offset").agg(F.count(F.lit(1)).alias("times"))
    both = before.withColumn("was", F.lit(True)).join(counted, [*_PLACE, "offset"], "full_outer")
    strange = both.where(F.col("was").isNull() | (F.col("times") > 1)).count()
    held = now.groupBy(*_PLACE).agg(F.min("offset").alias("first"), F.max("offset").alias("last")).collect()
    return Difference(lost=_spans(_islands(both).collect()), held=_present(held), strange=strange)


def _refuse_missing_version(uri: str, *, table: str, stated: int) -> None:
    """Raise `ForeignRowsError` where VACUUM took files of our version: rows cannot be compared without."""
    try:
        refuse_missing_files(uri, files_of(uri, version=stated), table=table)
    except DataFilesGoneError as exc:
        problem = f"{exc.count} data file(s) of that version are gone; rebuild the table (runbook)"
        raise ForeignRowsError(table=table, ours=stated, problem=problem) from exc


def _rows(table: DataFrame, incarnation: Column) -> DataFrame:
    source = F.concat(F.col("topic"), F.lit("@"), incarnation).alias("source")
    return with_topic_id(table).select(source, "partition", "offset")


def _islands(both: DataFrame) -> DataFrame:
    """Rows that are gone and have no row left between them are one span, holes of Kafka's included."""
    there = F.col("times").isNotNull()
    run = F.count_if(there).over(Window.partitionBy(*_PLACE).orderBy("offset"))
    gone = both.withColumn("run", run).where(~there)
    return gone.groupBy(*_PLACE, "run").agg(F.min("offset").alias("first"), F.max("offset").alias("last"))


def _present(rows: Iterable[Row]) -> Present:
    found: dict[str, dict[int, tuple[int, int]]] = {}
    for row in rows:
        found.setdefault(row["source"], {})[row["partition"]] = (row["first"], row["last"] + 1)
    return found


def _spans(rows: Iterable[Row]) -> dict[str, dict[int, tuple[tuple[int, int], ...]]]:
    found: dict[str, dict[int, tuple[tuple[int, int], ...]]] = {}
    for row in sorted(rows, key=lambda row: row["first"]):
        spans = found.setdefault(row["source"], {})
        spans[row["partition"]] = (*spans.get(row["partition"], ()), (row["first"], row["last"] + 1))
    return found
