"""The bronze rows of a merge's work, and the events among them."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.debezium.operations import ROW_OPERATIONS
from cdc_lakehouse.lake.bronze_schema import ATTEMPT
from cdc_lakehouse.lake.coordinates import in_ranges, in_spans, source_epoch, with_topic_id
from cdc_lakehouse.lake.ledger import Ledger, Ranges, first_incarnations
from cdc_lakehouse.lake.redo import Redo
from cdc_lakehouse.lake.spans import Spans
from cdc_lakehouse.silver.folding.place import PLACE, SOURCE_EPOCH, place_of_event

ROW_OPS = sorted(ROW_OPERATIONS)
HALF = "_cdc_half"
"""Where a table names its key: `d` or `c` of an update that changed it, one record in two rows."""


def bronze_rows(session: SparkSession, uri: str, *, version: int, held: Ledger) -> DataFrame:
    """All rows as bronze held them at `version`, whose ledger is `held`; with their source epoch."""
    rows = with_topic_id(session.read.format("delta").option("versionAsOf", version).load(uri))
    return rows.withColumn(SOURCE_EPOCH, source_epoch(held))


def work_of(held: Ledger, work: Ranges) -> Column:
    """Rows that silver has not passed yet."""
    return in_ranges(work, unnamed=first_incarnations(held))


def changed_behind(held: Ledger, late: Spans, redo: Sequence[Redo]) -> Column:
    """Rows that silver has passed and not seen: they came `late`, or these steps decoded them again."""
    condition = in_spans(late, unnamed=first_incarnations(held))
    for each in redo:
        condition |= in_ranges(each.within) & (F.col(ATTEMPT.name) == each.attempt)
    return condition


def events(rows: DataFrame) -> DataFrame:
    """What the fold takes: decoded events of one row each. Tombstones and messages say nothing new."""
    return rows.where(F.col("decode_error").isNull() & F.col("op").isin(ROW_OPS)).withColumn(
        PLACE, place_of_event()
    )
