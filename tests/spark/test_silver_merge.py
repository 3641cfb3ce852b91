"""One MERGE per batch carries the ledger of silver; repeating it changes nothing (`architecture` §5, §6)."""

from __future__ import annotations

import gc
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from chain import Chain, table_of  # type: ignore[import-not-found]
from deltalake import DeltaTable
from orders import (  # type: ignore[import-not-found]
    NEW,
    OLD,
    ORDERS,
    SOURCE,
    TOPIC,
    know,
    notes,
    order,
    tombstone,
    truncate,
)
from py4j.java_gateway import JavaObject
from pyspark.sql import functions as F

from cdc_lakehouse.contract import Job, TableStatus
from cdc_lakehouse.errors import ForeignCommitError, SupersededError, UnsupportedEventError
from cdc_lakehouse.lake.ledger import APPLICATION_ID, Kind, Ledger
from cdc_lakehouse.lake.state import TableState, read_state
from cdc_lakehouse.lake.transaction import fenced_statement
from cdc_lakehouse.silver.examine import examine
from cdc_lakehouse.silver.folding.place import SOURCE_EPOCH
from cdc_lakehouse.silver.job import merge_tables


@pytest.fixture(scope="module")
def template(engine, tmp_path_factory) -> Chain:
    chain = Chain(engine, root=tmp_path_factory.mktemp("silver").as_uri())
    know(chain)
    chain.ingest(ORDERS, [order(0, 1, note="one"), order(1, 2, note="two"), order(2, 3, note="three")])
    chain.merge(ORDERS)
    return chain


@pytest.fixture
def level(template: Chain, tmp_path: Path) -> Chain:
    """Bronze holds offsets 0 to 2, silver has applied them."""
    return template.copied_to(tmp_path)


def silver_uri(chain: Chain) -> str:
    return str(chain.lake.silver("orders"))


def silver_state(chain: Chain) -> TableState:
    state = read_state(silver_uri(chain), table="orders")
    assert state is not None
    return state


def ledger_of(chain: Chain) -> Ledger:
    ledger = silver_state(chain).ledger
    assert ledger is not None
    return ledger


def test_rows_and_ledger_of_silver_are_one_commit(level):
    ledger = ledger_of(level)

    assert (ledger.kind, ledger.seq, ledger.end(SOURCE, 0)) == (Kind.SILVER, 1, 3)
    assert DeltaTable(silver_uri(level)).transaction_version(APPLICATION_ID) == 1
    assert silver_state(level).version == 1
    assert notes(level.silver(ORDERS)) == {1: "one", 2: "two", 3: "three"}


def test_a_row_says_when_its_change_was_committed(level):
    times = {row["_cdc_commit_ts"] for row in level.silver(ORDERS)}

    assert {time.astimezone(UTC) for time in times} == {
        datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=UTC)
    }


def test_a_result_counts_every_record_once(level):
    level.ingest(ORDERS, [order(3, 1, op="u", note="uno"), order(4, 2, op="d"), tombstone(5, 2), order(6, 4)])

    result = level.merge(ORDERS)

    assert result.ranges == {TOPIC: {"0": (3, 7)}}
    assert result.counts == {
        "read": 4, "events": 3, "ignored": 1, "undecodable": 0, "truncates": 0,
        "parked": 0, "refused": 0, "decoded_again": 0, "late_offsets": 0,
        "rows_inserted": 1, "rows_updated": 1, "rows_deleted": 1,
    }  # fmt: skip
    assert notes(level.silver(ORDERS)) == {1: "uno", 3: "three", 4: None}


def test_a_second_merge_finds_nothing_to_do(level):
    result = level.merge(ORDERS)

    assert result.status is TableStatus.IDLE
    assert silver_state(level).version == 1


def test_a_merge_without_bronze_is_idle(chain):
    assert chain.merge(ORDERS).status is TableStatus.IDLE


def test_a_zombie_merge_changes_nothing(level, monkeypatch):
    stale = silver_state(level)
    level.ingest(ORDERS, [order(3, 1, op="u", note="uno"), order(4, 2, op="d")])
    level.merge(ORDERS)
    before = level.silver(ORDERS)
    bronze = level.lake.bronze("orders")
    states = {bronze: read_state(bronze, table="orders"), silver_uri(level): stale}
    monkeypatch.setattr("cdc_lakehouse.silver.look.newest_ledger", lambda uri, *, table: None)
    monkeypatch.setattr("cdc_lakehouse.silver.look.read_state", lambda uri, *, table: states[uri])

    with pytest.raises(SupersededError) as caught:
        level.merge(ORDERS)

    assert (caught.value.table, caught.value.seq) == ("orders", 1)
    assert level.silver(ORDERS) == before
    assert silver_state(level).version == 2


def test_a_batch_that_folds_to_nothing_advances_the_ledger(level):
    level.ingest(ORDERS, [tombstone(3, 9)])

    result = level.merge(ORDERS)

    assert result.status is TableStatus.ADVANCED
    assert ledger_of(level).end(SOURCE, 0) == 4
    assert notes(level.silver(ORDERS)) == {1: "one", 2: "two", 3: "three"}


def test_a_batch_that_changes_no_row_advances_the_ledger(level):
    level.ingest(ORDERS, [order(3, 9, op="d")])

    level.merge(ORDERS)

    assert ledger_of(level).end(SOURCE, 0) == 4


def objects_of_the_jvm() -> int:
    """Count what Python holds of the JVM, objects in cycles included."""
    return sum(isinstance(each, JavaObject) for each in gc.get_objects())


def test_a_merge_leaves_no_plans_in_the_jvm_to_the_collector_of_python(level):
    level.ingest(ORDERS, [order(3, 4, note="four")])
    gc.collect()
    gc.disable()
    try:
        (merged,) = merge_tables(level.application(ORDERS, job=Job.SILVER_MERGE))
        held = objects_of_the_jvm()
        gc.collect()
    finally:
        gc.enable()

    assert merged.status is TableStatus.ADVANCED
    assert objects_of_the_jvm() == held


def test_a_truncate_takes_what_stood_before_it(level):
    level.ingest(ORDERS, [truncate(3), order(4, 4, note="four")])

    result = level.merge(ORDERS)

    assert notes(level.silver(ORDERS)) == {4: "four"}
    assert (result.counts["truncates"], result.counts["rows_deleted"]) == (1, 3)


def test_a_truncate_of_one_of_several_topics_leaves_silver_untouched(level):
    """Nobody knows which of the table's rows it is about."""
    both = table_of("orders", TOPIC, "cases.more_orders")
    (key_id, key), (value_id, value) = OLD.schemas.items()
    level.registry.register("cases.more_orders", keys={key_id: key}, values={value_id: value})
    before = level.silver(ORDERS)
    level.ingest(both, [truncate(3), replace(order(0, 9), topic="cases.more_orders")])

    with pytest.raises(UnsupportedEventError) as caught:
        level.merge(both)

    assert caught.value.kind == "truncate of one of several topics"
    assert level.silver(ORDERS) == before


def test_a_row_of_an_earlier_release_that_cannot_be_applied_is_refused(level):
    """Today the decoder quarantines it."""
    level.ingest(ORDERS, [order(3, 1, op="u", note="uno"), order(4, 1, op="x")])
    rows = level.session.read.format("delta").load(level.lake.bronze("orders"))
    unmarked = rows.withColumn("decode_error", F.lit(None).cast(rows.schema["decode_error"].dataType))

    with pytest.raises(UnsupportedEventError) as caught:
        examine(unmarked.withColumn(SOURCE_EPOCH, F.lit(0).cast("bigint")), table="orders")

    assert (caught.value.kind, caught.value.count) == ("unknown operation", 1)
    assert caught.value.coordinate == f"{TOPIC}/0@4"


def test_a_new_column_stands_with_the_source_columns(level):
    know(level, NEW)
    level.ingest(ORDERS, [order(3, 4, note="four", priority=7, writer=NEW)])

    level.merge(ORDERS)

    fields = [(field.name, field.type.type) for field in DeltaTable(silver_uri(level)).schema().fields[:4]]
    assert fields == [("id", "long"), ("note", "string"), ("priority", "integer"), ("_cdc_op", "string")]
    assert {row["id"]: row["priority"] for row in level.silver(ORDERS)} == {1: None, 2: None, 3: None, 4: 7}


def test_silver_edited_by_hand_stops_the_table(level):
    level.sql("DELETE FROM {t} WHERE id = 1", silver_uri(level))
    level.ingest(ORDERS, [order(3, 4)])

    with pytest.raises(ForeignCommitError) as caught:
        level.merge(ORDERS)

    assert (caught.value.version, caught.value.operation) == (2, "DELETE")


def test_the_ledger_leaves_the_session_with_its_statement(level):
    session = level.engine.isolated()

    with fenced_statement(session, ledger_of(level)):
        inside = session.conf.get("spark.databricks.delta.write.txnVersion")

    assert inside == "1"
    assert session.conf.get("spark.databricks.delta.write.txnVersion", None) is None
    assert session.conf.get("spark.databricks.delta.commitInfo.userMetadata", None) is None


def test_a_dry_run_tells_the_work_and_does_none(level):
    level.ingest(ORDERS, [order(3, 4)])

    (result,) = merge_tables(level.application(ORDERS, job=Job.SILVER_MERGE, dry_run=True))

    assert (result.status, result.ranges) == (TableStatus.PLANNED, {TOPIC: {"0": (3, 4)}})
    assert silver_state(level).version == 1
