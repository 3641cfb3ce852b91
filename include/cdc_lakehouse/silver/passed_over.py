"""Where a merge met records that could not be decoded: read again, they may be others."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc_lakehouse.lake.coordinates import TOPIC_ID
from cdc_lakehouse.lake.ledger import Ledger, incarnations, source_of
from cdc_lakehouse.lake.progress import Span
from cdc_lakehouse.lake.quarantine import ERROR
from cdc_lakehouse.lake.spans import Spans, together

_PLACE = ("topic", TOPIC_ID, "partition")


def passed_over(rows: DataFrame, held: Ledger, *, most: int) -> Spans:
    """Their coordinates; where they are more than `most`, from the first of a partition to the last."""
    bad = rows.where(F.col(ERROR).isNotNull())
    one_by_one = bad.select(*_PLACE, F.col("offset").alias("first"), F.col("offset").alias("last"))
    found = one_by_one.limit(most + 1).collect()
    if len(found) > most:
        ends = F.min("offset").alias("first"), F.max("offset").alias("last")
        found = bad.groupBy(*_PLACE).agg(*ends).collect()
    spans: Spans = {}
    for row in found:
        span: Span = (row["first"], row["last"] + 1)
        spans = together(spans, {_source(row["topic"], row[TOPIC_ID], held): {row["partition"]: (span,)}})
    return spans


def _source(topic: str, topic_id: str | None, held: Ledger) -> str:
    """Rows of release 0.1.0 have no `topic_id`: they are of the first incarnation."""
    return incarnations(held, topic)[0] if topic_id is None else source_of(topic, topic_id)
