"""What an interval computes again: keys that have an event in it, and truncates of it.

A key is left as it is where silver knows more of it than bronze does. Bronze may have lost its newest event,
and a fold of what is left would bring a deleted row back.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.debezium.operations import Operation
from cdc_lakehouse.lake.coordinates import in_interval, in_spans
from cdc_lakehouse.lake.interval import Interval
from cdc_lakehouse.lake.ledger import Ledger, first_incarnations
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.place import newest
from cdc_lakehouse.lake.spans import Spans
from cdc_lakehouse.lake.tables import schema_of
from cdc_lakehouse.silver.examine import WorkFacts, last_truncate
from cdc_lakehouse.silver.folding.place import PLACE, is_after, place_of_row
from cdc_lakehouse.silver.folding.row_key import key_in_types_of
from cdc_lakehouse.silver.read import events

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IntervalKeys:
    keys: DataFrame
    in_doubt: int
    """Keys of the interval that stay as silver has them."""


def with_truncates(facts: WorkFacts, rows: DataFrame, *, is_work: Column, interval: Interval) -> WorkFacts:
    """Return `facts` with the truncates of the interval that silver has passed: they clear once more."""
    is_truncate = F.col("decode_error").isNull() & (F.col("op") == Operation.TRUNCATE)
    passed = rows.where(is_truncate & in_interval(interval) & ~F.coalesce(is_work, F.lit(False)))
    truncates = passed.count()
    if not truncates:
        return facts
    cleared = newest(facts.cleared, last_truncate(passed))
    return replace(facts, cleared=cleared, truncates=facts.truncates + truncates)


def keys_of_interval(
    session: SparkSession,
    lake: Lake,
    rows: DataFrame,
    columns: TableColumns,
    *,
    interval: Interval,
    held: Ledger,
    work: DataFrame,
) -> IntervalKeys:
    """Return the keys of the interval without those in doubt; `work` is what silver has not passed yet.

    Nothing is in doubt while bronze misses no offset: one query more is made only then.
    """
    keys = rows.where(in_interval(interval)).select("key")
    silver = lake.silver(held.table)
    gaps = held.gaps()
    if not gaps or schema_of(session, silver) is None:
        return IntervalKeys(keys, in_doubt=0)
    found = events(rows).join(keys.distinct().withColumnRenamed("key", "wanted"), _is_wanted(), "left_semi")
    place = F.struct("op", PLACE, "topic", "topic_id", "partition", "offset")
    last = found.groupBy("key").agg(F.max_by(place, F.col(f"{PLACE}.position")).alias("last"))
    known = session.read.format("delta").load(silver).alias("s")
    own = known.select(key_in_types_of(columns.key).alias("own"), place_of_row("s").alias("own_place"))
    joined = last.select("key", "last.*").join(own, F.col("key").eqNullSafe(F.col("own")), "left")
    is_lost = F.col("own").isNull() & (F.col("op") != Operation.DELETE) & _is_before(gaps, held)
    in_doubt = joined.where(is_lost | is_after(F.col("own_place"), F.col(PLACE))).select("key")
    news = work.select("key").withColumnRenamed("key", "wanted")
    in_doubt = in_doubt.join(news, _is_wanted(), "left_anti").distinct().localCheckpoint()
    count = in_doubt.count()
    if not count:
        return IntervalKeys(keys, in_doubt=0)
    logger.warning("keys stay as they are: bronze may have lost their newest event", extra={"keys": count})
    left = in_doubt.withColumnRenamed("key", "wanted")
    return IntervalKeys(keys.join(left, _is_wanted(), "left_anti"), count)


def _is_wanted() -> Column:
    return F.col("key").eqNullSafe(F.col("wanted"))


def _is_before(gaps: Spans, held: Ledger) -> Column:
    """Return whether an offset of the row's partition is missing that is newer than the row."""
    before = {
        source: {
            partition: ((0, max(start for start, _ in parts)),) for partition, parts in partitions.items()
        }
        for source, partitions in gaps.items()
    }
    return in_spans(before, unnamed=first_incarnations(held))
