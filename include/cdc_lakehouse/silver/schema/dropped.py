"""Columns that the source does not send any more, and what silver has in them (decision 0042).

No event says that a column was dropped: the next row has a schema without it. An update by such a writer
does not send the column, so the row keeps its value as it does for any value that was not sent
(`cdc-semantics` §3).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc_lakehouse.avro.schema_refs import SchemaRef
from cdc_lakehouse.config.models import OnDroppedColumn, SharedKeys, Table
from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.debezium.headers import OLD_KEY
from cdc_lakehouse.debezium.operations import Operation
from cdc_lakehouse.debezium.schema_facts import row_fields
from cdc_lakehouse.lake.applied import Applied, NewestWriter, Reached
from cdc_lakehouse.lake.ledger import Ledger, topics_with_records
from cdc_lakehouse.lake.schema_archive import archived_values

WriterRef = tuple[str, SchemaRef]
"""(topic, value schema)."""


@dataclass(frozen=True, slots=True)
class DroppedColumns:
    """Columns that the source does not send, and the changes of them in one merge."""

    treated: Mapping[str, str] = field(default_factory=dict)
    """Column -> what silver has in it: `keep` or `as_null`."""
    new: tuple[str, ...] = ()
    """Columns that the source sent until this merge."""
    sent_again: tuple[str, ...] = ()
    """Columns that it did not send before this merge."""
    emptied: tuple[str, ...] = ()
    """Columns that become NULL in all rows with this merge."""

    def renamed(self, names: Mapping[str, str]) -> DroppedColumns:
        """Return the same under the names of silver, without columns that it does not have."""

        def renamed(columns: Iterable[str]) -> tuple[str, ...]:
            return tuple(names[column] for column in columns if column in names)

        treated = {names[name]: how for name, how in self.treated.items() if name in names}
        return DroppedColumns(treated, renamed(self.new), renamed(self.sent_again), renamed(self.emptied))

    @property
    def kept(self) -> tuple[str, ...]:
        return tuple(name for name, how in self.treated.items() if how == OnDroppedColumn.KEEP)

    @property
    def nulls(self) -> tuple[str, ...]:
        return tuple(name for name, how in self.treated.items() if how == OnDroppedColumn.AS_NULL)


def plan_dropped(
    before: Mapping[str, str], unsent: Iterable[str] | None, policy: OnDroppedColumn
) -> DroppedColumns:
    """Decide by the columns that the newest writer does not send. With None, not known, nothing changes.

    What became NULL stays so under every policy: silver does not have the values any more.
    """
    if unsent is None:
        return DroppedColumns(before)
    names = sorted(unsent)
    treated = {
        name: OnDroppedColumn.AS_NULL.value
        if OnDroppedColumn.AS_NULL in (policy, before.get(name))
        else OnDroppedColumn.KEEP.value
        for name in names
    }
    return DroppedColumns(
        treated,
        new=tuple(name for name in names if name not in before),
        sent_again=tuple(name for name in sorted(before) if name not in treated),
        emptied=tuple(
            name for name, how in treated.items() if how == OnDroppedColumn.AS_NULL != before.get(name)
        ),
    )


@dataclass(frozen=True, slots=True)
class Unsent:
    """Columns that writers of a table do not send, and those among them that the source dropped."""

    by_writer: Mapping[WriterRef, frozenset[str]]
    columns: DroppedColumns
    writers: Mapping[str, NewestWriter] = field(default_factory=dict)
    """The newest writer of each topic so far."""


def unsent_of(
    table: Table,
    archives: str,
    columns: TableColumns,
    *,
    held: Ledger,
    before: Applied,
    newest: Mapping[str, NewestWriter],
    highest: Reached | None,
) -> Unsent:
    """Return them for a merge whose events reach `highest`.

    Where all its events are late, the newest writer is that of an earlier merge. Its events may bring columns
    for the first time that this writer does not send.
    """
    topics = topics_with_records(held)
    by_writer = unsent_by_writer(archives, topics, columns)
    is_ahead = highest is not None and (before.reached is None or highest >= before.reached)
    several = len(topics) > 1
    writers = newest_so_far(before.writers, newest)
    if not several and not (newest if is_ahead else before.writers):
        writers = {}  # the newest event's writer is not known, and that of an older one would decide wrongly
    if not before.dropped and not any(by_writer.values()):
        return Unsent({}, DroppedColumns(), writers)
    deciding: Collection[str] = topics
    if several and table.shared_keys is SharedKeys.ONE_ROW and writers:
        deciding = {newest_topic(writers)}
    names = unsent_by_newest(by_writer, writers, deciding)
    return Unsent(by_writer, plan_dropped(before.dropped, names, table.on_dropped_column), writers)


def newest_so_far(
    before: Mapping[str, NewestWriter], newest: Mapping[str, NewestWriter]
) -> dict[str, NewestWriter]:
    """Return the newest writer of each topic; events that came late do not replace it."""
    late = {
        topic: before[topic]
        for topic, writer in newest.items()
        if topic in before and before[topic].reached > writer.reached
    }
    return {**before, **newest, **late}


def newest_topic(writers: Mapping[str, NewestWriter]) -> str:
    """Return the topic of the newest event, where all topics are of one source table."""
    return max(writers, key=lambda topic: writers[topic].reached)


def unsent_by_writer(
    archives: str, topics: Collection[str], columns: TableColumns
) -> Mapping[WriterRef, frozenset[str]]:
    """Return, for each writer in the lake's archive, the columns of bronze that it does not send."""
    keys = {column.name for column in columns.key}
    unsent = {}
    for topic in topics:
        for ref, text in archived_values(archives, topic).items():
            sent = {field["name"] for field in row_fields(json.loads(text))}
            lacking = (c.name for c in columns.row if c.name not in keys and c.sent_as not in sent)
            if sent:
                unsent[topic, ref] = frozenset(lacking)
    return unsent


def unsent_by_newest(
    unsent: Mapping[WriterRef, frozenset[str]], newest: Mapping[str, NewestWriter], topics: Collection[str]
) -> frozenset[str] | None:
    """Return columns that the newest writers of all topics do not send; None if one of them is not known."""
    writers = [(topic, newest[topic].schema) for topic in topics if topic in newest]
    if len(writers) < len(topics) or not writers or any(writer not in unsent for writer in writers):
        return None
    return frozenset.intersection(*(unsent[writer] for writer in writers))


def with_unsent_columns(
    rows: DataFrame, unsent: Mapping[WriterRef, frozenset[str]], names: Collection[str]
) -> DataFrame:
    """Return rows of bronze whose `unavailable` also names those columns that their writer does not send.

    A created row has no value there, unless it came from another key: then it brings along what it had.
    """
    if not names:
        return rows
    lacking = F.array_compact(F.array(*(F.when(_is_unsent(unsent, name), F.lit(name)) for name in names)))
    moved = F.exists("headers", lambda header: header["key"] == OLD_KEY)
    continues = F.col("op").isin(Operation.UPDATE, Operation.READ) | (
        (F.col("op") == Operation.CREATE) & F.coalesce(moved, F.lit(False))
    )
    both = F.array_union(F.coalesce("unavailable", F.array().cast("array<string>")), lacking)
    lacks_more = continues & F.col("decode_error").isNull() & (F.size(lacking) > 0)
    return rows.withColumn("unavailable", F.when(lacks_more, both).otherwise(F.col("unavailable")))


def _is_unsent(unsent: Mapping[WriterRef, frozenset[str]], name: str) -> Column:
    """Return whether the writer of a row does not send this column."""
    condition = F.lit(False)
    for topic in {topic for topic, _ in unsent}:
        writers = [ref for (of, ref), names in unsent.items() if of == topic and name in names]
        is_one = F.col("value_schema_id").isin([ref for ref in writers if isinstance(ref, int)])
        condition |= (F.col("topic") == topic) & F.coalesce(is_one, F.lit(False))
    return condition
