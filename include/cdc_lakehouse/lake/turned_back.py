"""Where events stand below earlier ones of their own partition, though nobody had sent them before.

A connector sends what its source committed, in that order, and after a crash a block of it again. So an
event that stands below an earlier one of its partition belongs to such a block, or the source went back: it
was restored, or lost the end of its log (`cdc-semantics` rule 2.7). Rows of a snapshot stand where they were
read, not where they were written, and say nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from cdc_lakehouse.debezium.operations import ERASED, ROW_OPERATIONS, Operation
from cdc_lakehouse.lake.coordinates import TOPIC_ID, any_of, in_ranges, source_epoch
from cdc_lakehouse.lake.ledger import Ledger, Ranges, first_incarnations, incarnations, source_of, topic_of
from cdc_lakehouse.lake.spans import each_span

_CHANGES = sorted({*ROW_OPERATIONS, Operation.TRUNCATE})
_LOG = ("topic", TOPIC_ID, "partition", "epoch")
_ORDER = ("row", "order_in_tx")
"""Where the log has the events of one transaction; between transactions `commit` comes first (rule 2.1)."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Of one partition."""

    source: str
    partition: int
    offset: int
    """Of the first such event."""
    events: int
    position: tuple[int, int]
    """Its (commit, row)."""
    highest: tuple[int, int]
    """The same of the highest event before it."""
    since: int | None
    """When Kafka got the first of them, in microseconds."""

    @property
    def coordinate(self) -> str:
        return f"{topic_of(self.source)}/{self.partition}@{self.offset}"


def turns(rows: DataFrame, *, held: Ledger, work: Ranges) -> tuple[Turn, ...]:
    """Those within `work`; `rows` are all that bronze holds, and `held` is its ledger.

    Of what lies below `work` only rows are read that can stand above an event of it, and then those that can
    be the same event.
    """
    known = _streamed(rows, held)
    streamed = known.where("decoded")
    new = streamed.where(in_ranges(work, unnamed=first_incarnations(held)))
    lows = new.groupBy("topic", "partition").agg(F.min("commit").alias("commit")).collect()
    if not lows:
        return ()
    heads = _highest(streamed.where(_may_be_above(lows, held=held, work=work)))
    below = _below(new, heads).localCheckpoint()
    ends = below.agg(F.min("row").alias("lowest"), F.max("row").alias("highest")).collect()[0]
    if ends["lowest"] is None:
        return ()
    sent = known.where(F.col("row").between(ends["lowest"], ends["highest"]))
    first = F.min_by(F.struct("commit", "row", "top"), "offset").alias("first")
    found = (
        _never_sent(below, sent)
        .groupBy("topic", TOPIC_ID, "partition")
        .agg(
            F.count(F.lit(1)).alias("events"),
            F.min("offset").alias("offset"),
            first,
            F.min(F.unix_micros("kafka_timestamp")).alias("since"),
        )
    )
    return tuple(sorted((_turn(row, held) for row in found.collect()), key=lambda turn: turn.coordinate))


def unknown_below(rows: DataFrame, found: Iterable[Turn], *, held: Ledger) -> int:
    """Records before those of `found` in their partitions that may have been the same events: they are
    missing in bronze, or their places could not be decoded."""
    before: Ranges = {}
    for turn in found:
        before = {**before, turn.source: {**before.get(turn.source, {}), turn.partition: (0, turn.offset)}}
    undecoded = rows.where(F.col("decode_error").isNotNull() & F.col("position").isNull())
    count: int = undecoded.where(in_ranges(before, unnamed=first_incarnations(held))).count()
    gaps = (
        min(until, end) - start
        for source, partition, (start, until) in each_span(held.gaps())
        if start < (end := before.get(source, {}).get(partition, (0, 0))[1])
    )
    return count + sum(gaps)


def _streamed(rows: DataFrame, held: Ledger) -> DataFrame:
    """Changes whose place is known, though the rest of some (not `decoded`) is not, or was erased."""
    evidence = (
        F.col("op").isin(*_CHANGES, ERASED)
        & (F.col("position.phase") == 1)
        & (F.col("position.streamed") == 1)
    )
    key = F.col("key") if "key" in rows.columns else F.lit(None).cast("string")
    return rows.where(evidence).select(
        "topic",
        TOPIC_ID,
        "partition",
        source_epoch(held).alias("epoch"),
        "offset",
        "kafka_timestamp",
        "op",
        key.alias("key"),
        (F.col("decode_error").isNull() & (F.col("op") != ERASED)).alias("decoded"),
        F.col("source.tx_id").alias("tx_id"),
        *(F.col(f"position.{field}").alias(field) for field in ("commit", *_ORDER)),
    )


def _may_be_above(lows: Iterable[Row], *, held: Ledger, work: Ranges) -> Column:
    lowest: Mapping[tuple[str, int], int] = {(row["topic"], row["partition"]): row["commit"] for row in lows}
    first = first_incarnations(held)
    return any_of(
        in_ranges({source: {partition: (0, start)}}, unnamed=first) & (F.col("commit") >= low)
        for source, partitions in work.items()
        for partition, (start, _) in partitions.items()
        if (low := lowest.get((topic_of(source), partition))) is not None
    )


def _at() -> Column:
    return F.struct("commit", *_ORDER, "tx_id")


def _highest(rows: DataFrame) -> DataFrame:
    """One row per partition and epoch, which stands before all others: it has no offset."""
    return rows.groupBy(*_LOG).agg(F.max(_at()).alias("at")).withColumn("offset", F.lit(None).cast("bigint"))


def _below(new: DataFrame, heads: DataFrame) -> DataFrame:
    """Events below the highest one before them, which is their `top`."""
    events = new.withColumn("at", _at())
    before = Window.partitionBy(*_LOG).orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    walk = events.unionByName(heads, allowMissingColumns=True).withColumn("top", F.max("at").over(before))
    at, top = F.col("at"), F.col("top")
    within, between = (_is_less(at, top, by=fields) for fields in (_ORDER, ("commit", *_ORDER)))
    is_below = F.when(at["tx_id"] == top["tx_id"], within).otherwise(between)
    return walk.where(F.col("offset").isNotNull() & is_below).drop("at")


def _is_less(one: Column, other: Column, *, by: Iterable[str]) -> Column:
    return F.struct(*(one[field] for field in by)) < F.struct(*(other[field] for field in by))


def _never_sent(events: DataFrame, sent: DataFrame) -> DataFrame:
    """Without those that came before, or in another partition: the topic got more of them in between.

    The epoch does not count: a block may be sent again across a boundary. Nor does what may be told otherwise
    then: the commit before it (rule 2.2), but where no transaction tells places of several logs apart, and
    its number in the transaction, which changes with the tables that the connector captures.
    """
    new, old = F.col("new.offset"), F.col("old.offset")
    same = F.col("new.topic") == F.col("old.topic")
    same &= F.col("new.row") == F.col("old.row")
    same &= (F.col("new.op") == F.col("old.op")) | (F.col("old.op") == ERASED)
    same &= F.col("new.tx_id").eqNullSafe(F.col("old.tx_id"))
    same_key = F.col("new.key").eqNullSafe(F.col("old.key"))
    same &= same_key | (~F.col("old.decoded") & F.col("old.key").isNull())
    same &= F.col("new.tx_id").isNotNull() | (F.col("new.commit") == F.col("old.commit"))
    elsewhere = F.col("new.partition") != F.col("old.partition")
    elsewhere |= ~F.col(f"new.{TOPIC_ID}").eqNullSafe(F.col(f"old.{TOPIC_ID}"))
    return events.alias("new").join(sent.alias("old"), same & (elsewhere | (old < new)), "left_anti")


def _turn(row: Row, held: Ledger) -> Turn:
    first = row["first"]
    return Turn(
        # Rows of release 0.1.0 do not name the incarnation: they are of the first one.
        source=source_of(row["topic"], row[TOPIC_ID])
        if row[TOPIC_ID]
        else incarnations(held, row["topic"])[0],
        partition=row["partition"],
        offset=row["offset"],
        events=row["events"],
        position=(first["commit"], first["row"]),
        highest=(first["top"]["commit"], first["top"]["row"]),
        since=row["since"],
    )
