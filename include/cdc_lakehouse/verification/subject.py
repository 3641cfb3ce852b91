"""What of a table is compared: silver as it stands, and the relation of the source that it comes from."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from cdc_lakehouse.config.models import Mode, Table
from cdc_lakehouse.lake.ledger import Ledger, topic_of
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.quarantine import open_cases
from cdc_lakehouse.lake.rows import read_rows
from cdc_lakehouse.lake.silver_mode import written_as
from cdc_lakehouse.lake.snapshot import Snapshot, newest_snapshot
from cdc_lakehouse.lake.state import read_state


class NotComparedError(Exception):
    """There is nothing to compare, or no way yet. The text says why; it is no failure of the table."""


@dataclass(frozen=True, slots=True)
class Subject:
    silver: Snapshot
    ledger: Ledger
    """Silver's, of the compared version or of one before it."""
    key: tuple[str, ...]
    topic: str
    schema: str
    relation: str
    open_cases: int
    """Records of bronze that could not be decoded."""

    def lacks(self) -> dict[str, int]:
        """What silver cannot have, by its own word: each of them explains rows that differ."""
        gaps = sum(
            until - start
            for partitions in self.ledger.gaps().values()
            for spans in partitions.values()
            for start, until in spans
        )
        told = {"open_cases": self.open_cases, "missing_offsets": gaps, "parked": int(self.ledger.parked)}
        return {name: count for name, count in told.items() if count}


def subject_of(lake: Lake, table: Table) -> Subject:
    """Reads silver: the source must be read after it. Raises `NotComparedError`."""
    name = table.name
    state = read_state(lake.silver(name), table=name)
    if state is None or state.ledger is None:
        raise NotComparedError("silver has no rows yet")
    silver, bronze = newest_snapshot(lake.silver(name)), newest_snapshot(lake.bronze(name))
    if silver is None or bronze is None:
        raise NotComparedError("silver has no rows yet")
    if written_as(silver.schema) is Mode.APPEND:
        raise NotComparedError("its silver has a row per event, and the source has none of those")
    topics = {topic_of(source) for source in state.ledger.sources}
    if len(topics) != 1:
        raise NotComparedError("its rows come from several topics, that is, from several tables")
    (topic,) = topics
    names = topic.rsplit(".", 2)
    if len(names) != 3:
        raise NotComparedError(f"the topic {topic} names no schema and table")
    return Subject(
        silver=silver,
        ledger=state.ledger,
        key=key_of(bronze.schema, table),
        topic=topic,
        schema=names[1],
        relation=names[2],
        open_cases=open_cases(lake.bronze(name)),
    )


@dataclass(frozen=True, slots=True)
class NewColumn:
    """A column that is empty in all rows without a newer event."""

    name: str
    words: str
    """The change, its time and the schema, for a sentence."""
    was_sent_before: bool
    """True if silver may have older values in it."""


_NEW = ("added", "side_column")
_AGAIN = "sent_again"


def new_columns(lake: Lake, table: str) -> dict[str, NewColumn]:
    """Return columns that were added, or sent again, while silver had rows, from the log of changes.

    Changes of an earlier silver count too: one that is rebuilt from the same bronze lacks the same values.
    """
    lines = read_rows(lake.schema_changes)
    if lines is None:
        return {}
    newest: dict[str, NewColumn] = {}
    for line in lines.filter(pc.equal(lines["table"], table)).sort_by("at").to_pylist():
        schemas = "".join(f", schema {number}" for number in (line["value_schema_ids"] or [])[:1])
        words = f"{line['column']} ({line['change'].replace('_', ' ')} {line['at']:%Y-%m-%d %H:%M}{schemas})"
        if line["change"] in (*_NEW, _AGAIN):
            newest[line["column"]] = NewColumn(line["column"], words, line["change"] == _AGAIN)
    return newest


def key_of(bronze: pa.Schema, table: Table) -> tuple[str, ...]:
    """As bronze calls it."""
    if table.key is not None:
        return tuple(table.columns.source_of(name) or name for name in table.key)
    type_ = bronze.field("key").type if "key" in bronze.names else pa.null()
    if not pa.types.is_struct(type_) or not type_.num_fields:
        raise NotComparedError("it has no key, so no row has a partner")
    return tuple(field.name for field in type_)
