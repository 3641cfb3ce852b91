"""The bronze rows of a merge's work, and what can be said of them before they are folded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.avro.faults import ValueFault
from cdc_lakehouse.debezium.headers import NEW_KEY, OLD_KEY
from cdc_lakehouse.debezium.operations import ROW_OPERATIONS, Operation
from cdc_lakehouse.errors import UnsupportedEventError
from cdc_lakehouse.lake.bronze_schema import ATTEMPT
from cdc_lakehouse.lake.cases import waits
from cdc_lakehouse.lake.coordinates import in_ranges, in_spans, source_epoch, with_topic_id
from cdc_lakehouse.lake.instants import instant
from cdc_lakehouse.lake.ledger import Ledger, Ranges, first_incarnations
from cdc_lakehouse.lake.redo import Redo
from cdc_lakehouse.lake.spans import Spans
from cdc_lakehouse.silver.fold import SOURCE_EPOCH
from cdc_lakehouse.silver.misfits import refuse_misfits

_ROW_OPS = sorted(ROW_OPERATIONS)


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
    return rows.where(F.col("decode_error").isNull() & F.col("op").isin(_ROW_OPS))


@dataclass(frozen=True, slots=True)
class WorkFacts:
    """Every record of the work, counted once."""

    read: int
    undecodable: int
    undecoded: int
    """The same, and those whose case was closed."""
    ignored: int
    errors_by_code: dict[str, int]
    seen_through: datetime | None

    @property
    def events(self) -> int:
        return self.read - self.undecodable - self.ignored


def examine(rows: DataFrame, *, table: str) -> WorkFacts:
    """Count the work; raise for what this release cannot apply. Silver is untouched then.

    Of a record whose case was closed nothing will come: it is ignored, like a tombstone.
    """
    decoded, waiting = F.col("decode_error").isNull(), waits(rows)
    ignored = F.col("op").isNull() | (F.col("op") == Operation.MESSAGE)
    coordinate = F.struct("topic", "partition", "offset")
    unsupported = {kind: decoded & condition for kind, condition in _unsupported().items()}
    row = rows.agg(
        F.count(F.lit(1)).alias("read"),
        F.count_if(waiting).alias("undecodable"),
        F.count_if(~decoded).alias("undecoded"),
        F.count_if(~waiting & (~decoded | ignored)).alias("ignored"),
        F.max(F.when(decoded, F.unix_micros("source.ts"))).alias("newest"),
        *(F.count_if(condition).alias(f"{kind} count") for kind, condition in unsupported.items()),
        *(
            F.min(F.when(condition, coordinate)).alias(f"{kind} first")
            for kind, condition in unsupported.items()
        ),
    ).collect()[0]
    for kind in unsupported:
        if row[f"{kind} count"]:
            first = row[f"{kind} first"]
            raise UnsupportedEventError(
                table=table,
                kind=kind,
                count=row[f"{kind} count"],
                coordinate=f"{first['topic']}/{first['partition']}@{first['offset']}",
            )
    return WorkFacts(
        read=row["read"],
        undecodable=row["undecodable"],
        undecoded=row["undecoded"],
        ignored=row["ignored"],
        errors_by_code=_errors(rows, table=table) if row["undecodable"] else {},
        seen_through=instant(row["newest"]),
    )


def _unsupported() -> dict[str, Column]:
    """Kind -> condition. Names are what a person reads in the error."""
    op = F.col("op")
    is_row = op.isin(_ROW_OPS)
    return {
        "truncate": op == Operation.TRUNCATE,
        "unavailable (TOAST) value": is_row & (F.size("unavailable") > 0),
        "key change": is_row & F.exists("headers", lambda header: header["key"].isin(NEW_KEY, OLD_KEY)),
        "event without a key": is_row & F.col("key").isNull(),
        "event without a position": is_row & F.col("position").isNull(),
        "unknown operation": ~op.isin(*_ROW_OPS, Operation.TRUNCATE, Operation.MESSAGE),
    }


def _errors(rows: DataFrame, *, table: str) -> dict[str, int]:
    """A value that fits no type of the table stops silver: leaving it out would be a silent hole."""
    waiting = rows.where(waits(rows))
    counted = waiting.groupBy("decode_error.code").agg(F.count(F.lit(1)).alias("rows")).collect()
    found = {row["code"]: row["rows"] for row in counted}
    if ValueFault.INCOMPATIBLE_SCHEMA in found:
        refuse_misfits(waiting, table=table)
    return found
