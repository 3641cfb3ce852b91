"""What can be said of a merge's work before it is folded: every record of it, counted once.

Numbers only, so that Spark keeps them in hash tables; what needs more is asked for where a number says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from cdc_lakehouse.avro.faults import ValueFault
from cdc_lakehouse.debezium.operations import ERASED, Operation
from cdc_lakehouse.errors import KeySchemaDriftError, UnsupportedEventError
from cdc_lakehouse.lake.applied import Applied, NewestWriter, Reached
from cdc_lakehouse.lake.cases import waits
from cdc_lakehouse.lake.instants import instant
from cdc_lakehouse.lake.place import Place
from cdc_lakehouse.silver.folding.place import PLACE, SOURCE_EPOCH, place_of_event
from cdc_lakehouse.silver.mode import NO_COLUMNS, got_its_key_later
from cdc_lakehouse.silver.read import HALF, ROW_OPS
from cdc_lakehouse.silver.schema.misfits import refuse_misfits

SNAPSHOT_ENDS = ("last", "last_in_data_collection")
"""What the last row of a snapshot says: of a table, or of all of them."""


NO_KEY = "event without a key"


@dataclass(frozen=True, slots=True)
class WorkFacts:
    read: int
    undecodable: int
    undecoded: int
    """The same, and those whose case was closed."""
    ignored: int
    truncates: int
    errors_by_code: dict[str, int]
    seen_through: datetime | None
    lowest: Reached | None
    """Of the events."""
    highest: Reached | None
    turned_back: bool
    """Whether an event stands before the one that a partition had before it."""
    cleared: Place | None = None
    """The newest truncate."""
    ended: int | None = None
    """The transaction of the newest full snapshot whose last row was met."""
    unavailable: tuple[str, ...] = ()
    """Columns that some event does not tell."""
    moves: int = 0
    """Rows that came from another key and left values there."""
    sends_again: bool = False
    """Whether a transaction names two commits before it."""
    deletes: int = 0
    newest_writers: Mapping[str, NewestWriter] = field(default_factory=dict)
    """Topic -> writer of its newest event, for schemas with a number."""
    snapshot_rows: int = 0
    """Rows that a full snapshot read: older than any streamed event of their epoch, whatever their commits
    say."""
    reads: int = 0
    """Number of rows that any snapshot read."""

    @property
    def events(self) -> int:
        return self.read - self.undecodable - self.ignored

    def may_be_old(self, applied: Applied) -> bool:
        """Whether an event may not be behind all that silver has applied: if not, nothing of silver has to be
        read to know.

        A transaction that named no commit may name one when it is sent again (rule 2.2). Once anything behind
        it was applied, that commit is below what it names.
        """
        if self.lowest is None or applied.top is None:
            return False
        epoch, commit = applied.top
        is_above = self.lowest > applied.top and commit > 0 and not self.snapshot_rows
        return self.lowest[0] <= epoch and not is_above


def examine(rows: DataFrame, *, table: str, topics: int = 1, by_key: bool = True) -> WorkFacts:
    """Raise for what cannot be applied. Silver is untouched then.

    `topics` says how many feed the table: which of its rows a truncate of one of them is about, nobody knows.
    Of a record whose case was closed nothing will come: it is ignored, like a tombstone.
    Only where silver has one row per key (`by_key`) must events have one.
    """
    refused = unsupported(topics=topics, by_key=by_key)
    found = _counted(rows, refused)
    for kind, condition in refused.items():
        if _sum(found, f"{kind} count"):
            raise _unsupported_event(rows, kind, condition, count=_sum(found, f"{kind} count"), table=table)
    epochs = [row for row in found if row["lowest_commit"] is not None]
    oldest, newest = _ends(epochs)
    undecodable, truncates = _sum(found, "undecodable"), _sum(found, "truncates")
    return WorkFacts(
        read=_sum(found, "read"),
        undecodable=undecodable,
        undecoded=_sum(found, "undecoded"),
        ignored=_sum(found, "ignored"),
        truncates=truncates,
        errors_by_code=_errors(rows, table=table) if undecodable else {},
        seen_through=instant(_newest(found, "newest")),
        lowest=oldest,
        highest=newest,
        turned_back=any(_turned_back(row) for row in found),
        cleared=last_truncate(rows) if truncates else None,
        ended=_ended(found),
        unavailable=unavailable_in(rows) if _sum(found, "lacking") else (),
        moves=_sum(found, "moves"),
        sends_again=_sum(found, "recommitted") > 0,
        deletes=_sum(found, "deletes"),
        snapshot_rows=_sum(found, "snapshot_rows"),
        newest_writers=_newest_writers(epochs),
        reads=_sum(found, "reads"),
    )


def _counted(rows: DataFrame, refused: Mapping[str, Column]) -> list[Row]:
    """One row for each partition and source epoch."""
    op, decoded, waiting = F.col("op"), F.col("decode_error").isNull(), waits(rows)
    is_row, commit = decoded & op.isin(ROW_OPS), F.col("position.commit")
    is_streamed = is_row & (F.col("position.streamed") == 1)
    # An erased row still tells that its snapshot ended there.
    ends_snapshot = (is_row | (op == ERASED)) & (F.col("position.phase") == 0)
    ends_snapshot &= F.col("source.snapshot").isin(*SNAPSHOT_ENDS)
    ignored = op.isNull() | op.isin(Operation.MESSAGE, ERASED)
    sums = {
        "read": _is_record(rows),
        "undecodable": waiting,
        "undecoded": ~decoded,
        "ignored": ~waiting & (~decoded | ignored),
        "truncates": decoded & (op == Operation.TRUNCATE),
        "deletes": decoded & (op == Operation.DELETE),
        "snapshot_rows": is_row & (F.col("position.phase") == 0),
        "reads": is_row & (op == Operation.READ),
        "lacking": is_row & (F.size("unavailable") > 0),
        "moves": is_row & (op == Operation.CREATE) & (F.size("unavailable") > 0),
        **{f"{kind} count": decoded & condition for kind, condition in refused.items()},
    }
    by_transaction = rows.groupBy(*_PLACE, "position.phase", "source.tx_id").agg(
        *(F.count_if(condition).alias(name) for name, condition in sums.items()),
        F.max(F.when(decoded, F.unix_micros("source.ts"))).alias("newest"),
        F.min(F.when(is_row, commit)).alias("lowest_commit"),
        F.max(F.when(is_row, commit)).alias("highest_commit"),
        F.max(F.when(is_streamed, commit)).alias("highest_streamed"),
        F.max_by(commit, F.when(is_streamed, F.col("offset"))).alias("last_commit"),
        F.max(F.when(is_streamed, F.col("offset"))).alias("last_offset"),
        F.max(F.when(ends_snapshot, F.col("source.tx_id"))).alias("ended"),
        F.max_by("value_schema_id", F.when(is_row, F.col("offset"))).alias("writer"),
        F.max(F.when(is_row, F.col("offset"))).alias("last_row"),
    )
    sent_again = F.col("tx_id").isNotNull() & (F.col("lowest_commit") < F.col("highest_commit"))
    by_partition = by_transaction.groupBy(*_PLACE).agg(
        *(F.sum(name).alias(name) for name in sums),
        F.count_if(sent_again).alias("recommitted"),
        F.max("newest").alias("newest"),
        F.min("lowest_commit").alias("lowest_commit"),
        F.max("highest_commit").alias("highest_commit"),
        F.max("highest_streamed").alias("highest_streamed"),
        F.max_by("last_commit", "last_offset").alias("last_commit"),
        F.max("ended").alias("ended"),
        # By position: a block of older events that is sent again has the highest offsets.
        F.max_by("writer", F.struct("highest_commit", "last_row")).alias("writer"),
    )
    found: list[Row] = by_partition.collect()
    return found


def _is_record(rows: DataFrame) -> Column:
    """An update that changed the key which its table names is two events of one record."""
    return F.coalesce(F.col(HALF) != Operation.DELETE, F.lit(True)) if HALF in rows.columns else F.lit(True)


_PLACE = ("topic", "partition", SOURCE_EPOCH)


def _ends(epochs: list[Row]) -> tuple[Reached | None, Reached | None]:
    lowest = [(row[SOURCE_EPOCH], row["lowest_commit"]) for row in epochs]
    highest = [(row[SOURCE_EPOCH], row["highest_commit"]) for row in epochs]
    return min(lowest, default=None), max(highest, default=None)


def _ended(rows: list[Row]) -> int | None:
    found = [(row[SOURCE_EPOCH], row["ended"]) for row in rows if row["ended"] is not None]
    return max(found)[1] if found else None


def _turned_back(row: Row) -> bool:
    return row["last_commit"] is not None and row["last_commit"] < row["highest_streamed"]


def _newest_writers(epochs: list[Row]) -> dict[str, NewestWriter]:
    """Return them by topic, from the partition that is furthest in the source's log."""
    in_order = sorted(epochs, key=lambda row: (row[SOURCE_EPOCH], row["highest_commit"]))
    newest = {row["topic"]: row for row in in_order}
    return {
        topic: NewestWriter(row["writer"], (row[SOURCE_EPOCH], row["highest_commit"]))
        for topic, row in newest.items()
        if row["writer"] is not None
    }


def _sum(rows: list[Row], name: str) -> int:
    return sum(row[name] for row in rows)


def _newest(rows: list[Row], name: str) -> int | None:
    return max((row[name] for row in rows if row[name] is not None), default=None)


def unsupported(*, topics: int = 1, by_key: bool = True) -> dict[str, Column]:
    """Kind -> condition. Names are what a person reads in the error."""
    op, has_no_place = F.col("op"), F.col("position").isNull()
    is_row = op.isin(ROW_OPS)
    without_key = {NO_KEY: is_row & F.col("key").isNull()} if by_key else {}
    several = {"truncate of one of several topics": op == Operation.TRUNCATE} if topics > 1 else {}
    return {
        **without_key,
        **several,
        "event without a position": (is_row | (op == Operation.TRUNCATE)) & has_no_place,
        "unknown operation": ~op.isin(*ROW_OPS, Operation.TRUNCATE, Operation.MESSAGE, ERASED),
    }


def _unsupported_event(
    rows: DataFrame, kind: str, condition: Column, *, count: int, table: str
) -> UnsupportedEventError | KeySchemaDriftError:
    if kind == NO_KEY and got_its_key_later(rows.columns):
        now = rows.schema["key"].dataType.simpleString()
        return KeySchemaDriftError(table=table, was=NO_COLUMNS, now=now)
    met = rows.where(F.col("decode_error").isNull() & condition)
    first = met.agg(F.min(F.struct("topic", "partition", "offset")).alias("first")).collect()[0]["first"]
    coordinate = f"{first['topic']}/{first['partition']}@{first['offset']}"
    return UnsupportedEventError(table=table, kind=kind, count=count, coordinate=coordinate)


def last_truncate(rows: DataFrame) -> Place:
    """Return the place of the newest truncate among `rows`, which have one."""
    truncates = rows.where(F.col("decode_error").isNull() & (F.col("op") == Operation.TRUNCATE))
    places = truncates.select(place_of_event().alias(PLACE))
    newest: dict[str, Any] = places.agg(F.max(PLACE).alias(PLACE)).collect()[0][PLACE].asDict(recursive=True)
    return Place(tuple(newest["position"].values()), newest["tx_id"])


def unavailable_in(rows: DataFrame) -> tuple[str, ...]:
    """Columns that some event does not tell."""
    names = rows.where(F.col("decode_error").isNull()).select(F.explode("unavailable").alias("name"))
    return tuple(sorted(row["name"] for row in names.distinct().collect()))


def _errors(rows: DataFrame, *, table: str) -> dict[str, int]:
    """A value that fits no type of the table stops silver: leaving it out would be a silent hole."""
    waiting = rows.where(waits(rows))
    counted = waiting.groupBy("decode_error.code").agg(F.count(F.lit(1)).alias("rows")).collect()
    found = {row["code"]: row["rows"] for row in counted}
    if ValueFault.INCOMPATIBLE_SCHEMA in found:
        refuse_misfits(waiting, table=table)
    return found
