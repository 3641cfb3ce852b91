"""Rows of a bronze table by their coordinates."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from cdc_lakehouse.lake.ledger import Ranges, topic_of


def in_ranges(ranges: Ranges) -> Column:
    """Rows whose coordinate lies in `ranges`: literals, so that Delta skips the other files."""
    condition = F.lit(False)
    for source, partitions in ranges.items():
        for partition, (start, end) in partitions.items():
            condition |= (
                (F.col("topic") == topic_of(source))
                & (F.col("partition") == partition)
                & (F.col("offset") >= start)
                & (F.col("offset") < end)
            )
    return condition
