"""What becomes of columns that the source does not send any more, by what the newest writer sends."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from debezium_records import envelope_schema, field, optional  # type: ignore[import-not-found]

from cdc_lakehouse.config.models import OnDroppedColumn, OnSchemaChange, SharedKeys, Table
from cdc_lakehouse.debezium.columns import Column, TableColumns
from cdc_lakehouse.errors import ColumnDroppedError, SchemaChangedError
from cdc_lakehouse.lake.applied import Applied, NewestWriter
from cdc_lakehouse.lake.ledger import Kind, Ledger
from cdc_lakehouse.lake.progress import Progress
from cdc_lakehouse.lake.schema_archive import SchemaArchive
from cdc_lakehouse.registry.versions import TopicVersions
from cdc_lakehouse.silver.schema.dropped import (
    DroppedColumns,
    plan_dropped,
    unsent_by_newest,
    unsent_by_writer,
    unsent_of,
)
from cdc_lakehouse.silver.schema.evolution import (
    dropped_changes,
    refuse_by_policy,
    refuse_dropped,
)

KEEP, AS_NULL, STOP = OnDroppedColumn.KEEP, OnDroppedColumn.AS_NULL, OnDroppedColumn.STOP


@pytest.mark.parametrize(
    ("before", "unsent", "policy", "expected"),
    [
        ({}, (), KEEP, DroppedColumns()),
        ({}, ("a",), KEEP, DroppedColumns({"a": "keep"}, new=("a",))),
        ({"a": "keep"}, ("a",), KEEP, DroppedColumns({"a": "keep"})),
        ({}, ("a",), STOP, DroppedColumns({"a": "keep"}, new=("a",))),
        ({}, ("a",), AS_NULL, DroppedColumns({"a": "as_null"}, new=("a",), emptied=("a",))),
        ({"a": "as_null"}, ("a",), AS_NULL, DroppedColumns({"a": "as_null"})),
        ({"a": "keep"}, ("a",), AS_NULL, DroppedColumns({"a": "as_null"}, emptied=("a",))),
        ({"a": "as_null"}, ("a",), KEEP, DroppedColumns({"a": "as_null"})),
        ({"a": "keep"}, (), KEEP, DroppedColumns(sent_again=("a",))),
        ({"a": "keep"}, None, AS_NULL, DroppedColumns({"a": "keep"})),
    ],
)
def test_a_dropped_column_is_new_once_and_emptied_once(before, unsent, policy, expected):
    assert plan_dropped(before, unsent, policy) == expected


@pytest.fixture
def archives(tmp_path) -> str:
    """Writer 1 sends a and b, 2 only a, 3 has `a` as a text; topic u has writer 4, which sends b."""
    shapes = {1: {"a": "int", "b": "int"}, 2: {"a": "int"}, 3: {"a": "string", "b": "int"}, 4: {"b": "int"}}
    archive = SchemaArchive((tmp_path / "memory").as_uri())
    for number, columns in shapes.items():
        fields = [field("id", "long"), *(field(name, optional(kind)) for name, kind in columns.items())]
        archive.keep(number, json.dumps(envelope_schema(fields)), subjects=())
    archive.keep_topic("t", TopicVersions(values={1: 1, 2: 2, 3: 3}))
    archive.keep_topic("u", TopicVersions(values={4: 1}))
    return str(tmp_path.as_uri())


COLUMNS = TableColumns(
    key=(Column("id", pa.int64()),),
    row=(
        Column("id", pa.int64()),
        Column("a", pa.int32()),
        Column("b", pa.int32()),
        Column("a__v2", pa.string(), side_of="a"),
    ),
)


def test_a_column_beside_another_is_sent_where_that_is(archives):
    assert unsent_by_writer(archives, ["t", "u"], COLUMNS) == {
        ("t", 1): frozenset(),
        ("t", 2): {"b"},
        ("t", 3): frozenset(),
        ("u", 4): {"a", "a__v2"},
    }


@pytest.mark.parametrize(
    ("newest", "topics", "expected"),
    [
        ({"t": 2}, ["t"], {"b"}),
        ({"t": 1}, ["t"], set()),
        ({"t": 2, "u": 4}, ["t", "u"], set()),
        ({"t": 2}, ["t", "u"], None),
        ({"t": 9}, ["t"], None),
        ({}, ["t"], None),
    ],
)
def test_dropped_is_what_no_newest_writer_sends_and_unknown_is_not(archives, newest, topics, expected):
    unsent = unsent_by_writer(archives, topics, COLUMNS)
    writers = {topic: NewestWriter(schema, (0, 1)) for topic, schema in newest.items()}

    assert unsent_by_newest(unsent, writers, topics) == expected


def held(*topics: str) -> Ledger:
    """Bronze of a table that has read one record of each topic."""
    sources = {f"{topic}@1": {0: Progress(floor=0, end=1)} for topic in topics}
    return Ledger(kind=Kind.BRONZE, pipeline="p", table="t", cluster_id="c", sources=sources)


def treated(archives: str, table: Table, *merges: dict[str, NewestWriter]) -> list[dict[str, str]]:
    """What each of these merges takes for dropped, by the newest writers of its own events."""
    before, found = Applied(), []
    for newest in merges:
        highest = max(writer.reached for writer in newest.values())
        unsent = unsent_of(
            table, archives, COLUMNS, held=held("t", "v"), before=before, newest=newest, highest=highest
        )
        before = Applied(
            dropped=unsent.columns.treated,
            writers=unsent.writers,
            reached=max(before.reached or highest, highest),
        )
        found.append(dict(before.dropped))
    return found


@pytest.fixture
def shards(archives, tmp_path) -> str:
    """Topics t and v have writer 1, then writer 2, which lacks `b`."""
    archive = SchemaArchive((tmp_path / "memory").as_uri())
    archive.keep_topic("v", TopicVersions(values={1: 1, 2: 2}))
    archive.keep_topic("t", TopicVersions(values={1: 1, 2: 2}))
    return str(tmp_path.as_uri())


WIDE, NARROW = 1, 2
SHARDS, RENAMED = (
    Table(name="t", topics=("t", "v"), **more)
    for more in ({"topic_column": "shard"}, {"shared_keys": SharedKeys.ONE_ROW})
)


def test_shards_drop_a_column_though_no_merge_has_events_of_all(shards):
    merges = (
        {"t": NewestWriter(WIDE, (0, 900))},
        {"v": NewestWriter(WIDE, (0, 10))},
        {"t": NewestWriter(NARROW, (0, 950))},
        {"v": NewestWriter(NARROW, (0, 20))},
        {"v": NewestWriter(WIDE, (0, 15))},
    )

    assert treated(shards, SHARDS, *merges) == [{}, {}, {}, {"b": "keep"}, {"b": "keep"}]


@pytest.mark.parametrize(
    ("newest", "expected"), [({"t": NewestWriter(NARROW, (0, 20))}, {"b": "keep"}), ({}, {})]
)
def test_late_events_may_bring_a_column_that_the_newest_writer_does_not_send(archives, newest, expected):
    """Their schema was unknown at first. A newest writer without a number says nothing about columns."""
    table, ledger = Table(name="t", topics=("t",)), held("t")
    without_b = replace(COLUMNS, row=tuple(column for column in COLUMNS.row if column.name != "b"))

    first = unsent_of(
        table, archives, without_b, held=ledger, before=Applied(), newest=newest, highest=(0, 20)
    )
    late = unsent_of(
        table,
        archives,
        COLUMNS,
        held=ledger,
        before=Applied(reached=(0, 20), writers=first.writers),
        newest={"t": NewestWriter(WIDE, (0, 10))},
        highest=(0, 10),
    )

    assert (first.columns, dict(late.columns.treated)) == (DroppedColumns(), expected)
    assert late.writers == newest


def test_late_events_of_a_table_that_appends_do_not_bring_a_dropped_column_back(archives):
    """Its ledger does not say how far its events reach."""
    before = Applied(dropped={"b": "keep"}, writers={"t": NewestWriter(NARROW, (0, 20))})
    table, newest = Table(name="t", topics=("t",)), {"t": NewestWriter(WIDE, (0, 10))}

    late = unsent_of(table, archives, COLUMNS, held=held("t"), before=before, newest=newest, highest=(0, 10))

    assert (dict(late.columns.treated), late.columns.sent_again) == ({"b": "keep"}, ())


def test_a_renamed_table_drops_a_column_by_its_new_topic_alone(shards):
    merges = (
        {"t": NewestWriter(WIDE, (0, 10))},
        {"v": NewestWriter(WIDE, (0, 20))},
        {"v": NewestWriter(NARROW, (0, 30))},
    )

    assert treated(shards, RENAMED, *merges) == [{}, {}, {"b": "keep"}]


def test_a_strict_table_stops_at_a_dropped_column_and_names_it():
    changes = dropped_changes(DroppedColumns({"a": "keep"}, new=("a",)), {"a": "int"})

    with pytest.raises(SchemaChangedError, match="a is not sent any more"):
        refuse_by_policy(changes, OnSchemaChange.STRICT, table="t")
    with pytest.raises(ColumnDroppedError) as caught:
        refuse_dropped(changes, STOP, table="t")
    assert caught.value.columns == "a"
    refuse_dropped(changes, KEEP, table="t")


@pytest.mark.parametrize("dropped", [{}, {"a": "keep", "b": "as_null"}])
def test_a_ledger_remembers_what_was_dropped(dropped):
    document: Any = json.loads(json.dumps(Applied(dropped=dropped).document()))

    assert Applied.of_document(document) == Applied(dropped=dropped)


def test_a_ledger_remembers_the_newest_writers():
    applied = Applied(writers={"t": NewestWriter(7, (0, 90))})

    assert Applied.of_document(json.loads(json.dumps(applied.document()))) == applied
