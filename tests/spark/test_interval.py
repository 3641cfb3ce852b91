"""An interval computed again from bronze: silver and its history get what they should have, once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import chain as lake_chain  # type: ignore[import-not-found]
import pytest
from chain import KAFKA_TIME, Chain, table_of
from delta.tables import DeltaTable
from orders import acknowledging, know, notes, order, planned, spoil, truncate  # type: ignore[import-not-found]

from cdc_lakehouse.contract import TableStatus
from cdc_lakehouse.lake.interval import Interval
from cdc_lakehouse.lake.state import read_state
from cdc_lakehouse.maintenance.forget import forget
from cdc_lakehouse.run_modes import Recompute

ORDERS = table_of("orders", history=True)
PLAIN = table_of("orders")
SOFT = table_of("orders", deletes="soft", history=True)
EVENTS = table_of("orders", mode="append")
MINUTE = Interval(KAFKA_TIME - timedelta(seconds=30), KAFKA_TIME + timedelta(seconds=30))
BATCH = [order(0, 1, note="one"), order(1, 2, note="two"), order(2, 3, note="three"), order(3, 3, op="d")]


def ingested(chain: Chain) -> Chain:
    know(chain)
    chain.ingest(ORDERS, BATCH)
    return chain


def decisions(chain: Chain) -> Mapping[str, Any]:
    state = read_state(chain.lake.silver("orders"), table="orders")
    assert state is not None
    assert state.ledger is not None
    return state.ledger.decisions


def versions(chain: Chain) -> list[tuple[Any, ...]]:
    rows = [(row["id"], row["note"], row["_cdc_op"], row["_cdc_to"]) for row in chain.history(ORDERS)]
    return sorted(rows, key=str)


def test_an_interval_makes_right_what_silver_has_wrong_and_a_second_time_changes_nothing(chain: Chain):
    ingested(chain).merge(ORDERS)
    right, right_versions = notes(chain.silver(ORDERS)), versions(chain)
    spoil(chain, "UPDATE {t} SET note = 'spoilt' WHERE id = 1")
    spoil(chain, "DELETE FROM {t} WHERE id = 2")

    first = chain.merge(ORDERS, interval=MINUTE)
    second = chain.merge(ORDERS, interval=MINUTE)

    assert (notes(chain.silver(ORDERS)), versions(chain)) == (right, right_versions)
    assert (first.status, first.rows, first.counts["keys_recomputed"]) == (TableStatus.ADVANCED, 2, 3)
    assert (second.status, second.rows, second.counts["keys_recomputed"]) == (TableStatus.IDLE, 0, 3)
    assert decisions(chain)["interval"]["from"] == MINUTE.start.isoformat()


@pytest.mark.parametrize(
    "interval",
    [
        Interval(KAFKA_TIME + timedelta(hours=1), KAFKA_TIME + timedelta(hours=2)),
        replace(MINUTE, recompute=Recompute.CHANGED),
    ],
    ids=["without events", "of changes only"],
)
def test_an_interval_without_work_costs_no_merge(chain: Chain, interval: Interval):
    ingested(chain).merge(ORDERS)
    spoil(chain, "UPDATE {t} SET note = 'spoilt' WHERE id = 1")

    result = chain.merge(ORDERS, interval=interval)

    assert (result.status, notes(chain.silver(ORDERS))[1]) == (TableStatus.IDLE, "spoilt")


def test_rows_that_bronze_got_since_are_merged_with_the_interval(chain: Chain):
    ingested(chain).merge(ORDERS)
    spoil(chain, "DELETE FROM {t} WHERE id = 2")
    chain.ingest(ORDERS, [order(4, 4, note="four"), order(5, 1, op="u", note="newer")])

    chain.merge(ORDERS, interval=MINUTE)

    assert notes(chain.silver(ORDERS)) == {1: "newer", 2: "two", 4: "four"}
    assert chain.merge(ORDERS).status is TableStatus.IDLE


def test_events_that_a_silver_of_events_lacks_are_appended_once(chain: Chain):
    ingested(chain).merge(EVENTS)
    spoil(chain, "DELETE FROM {t} WHERE id = 3")

    first = chain.merge(EVENTS, interval=MINUTE)
    second = chain.merge(EVENTS, interval=MINUTE)

    assert (first.counts["rows_inserted"], second.status) == (2, TableStatus.IDLE)
    assert DeltaTable.forPath(chain.session, chain.lake.silver("orders")).toDF().count() == len(BATCH)


@pytest.fixture
def truncated(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> Chain:
    """Rows 1 and 2 came an hour before a TRUNCATE, which the next row follows."""
    know(chain)
    monkeypatch.setattr(lake_chain, "KAFKA_TIME", KAFKA_TIME - timedelta(hours=1))
    chain.ingest(ORDERS, [order(0, 1, note="one"), order(1, 2, note="two")])
    monkeypatch.undo()
    return chain


def test_a_truncate_of_the_interval_takes_rows_that_it_should_have_cleared(truncated: Chain):
    truncated.merge(ORDERS)
    truncated.ingest(ORDERS, [truncate(2), order(3, 3, note="three")])
    truncated.merge(ORDERS)
    right, right_versions = notes(truncated.silver(ORDERS)), versions(truncated)
    spoil(truncated, "INSERT INTO {t} SELECT * FROM {t} VERSION AS OF 1")

    first = truncated.merge(ORDERS, interval=MINUTE)
    second = truncated.merge(ORDERS, interval=MINUTE)

    assert (right, notes(truncated.silver(ORDERS))) == ({3: "three"}, right)
    assert versions(truncated) == right_versions
    assert (first.counts["rows_deleted"], second.status) == (2, TableStatus.IDLE)


def test_a_truncate_of_the_interval_marks_rows_that_it_should_have_marked(truncated: Chain):
    truncated.ingest(SOFT, [truncate(2), order(3, 3, note="three")])
    truncated.merge(SOFT)
    spoil(truncated, "UPDATE {t} SET _cdc_deleted = false, _cdc_op = 'c' WHERE id = 1")

    first = truncated.merge(SOFT, interval=MINUTE)
    second = truncated.merge(SOFT, interval=MINUTE)

    assert {row["id"]: row["_cdc_deleted"] for row in truncated.silver(SOFT)} == {1: True, 2: True, 3: False}
    assert (first.status, second.status) == (TableStatus.ADVANCED, TableStatus.IDLE)


def lose(chain: Chain, *offsets: int, end: int) -> None:
    """Delete rows of bronze by hand, and acknowledge that: the ledger keeps their offsets as missing."""
    listed = ", ".join(map(str, offsets))
    chain.sql(f"DELETE FROM {{t}} WHERE offset IN ({listed})", chain.lake.bronze("orders"))
    chain.ingest(ORDERS, [], plan=planned(chain, acknowledging(chain), held=(0, end)))


def test_a_deleted_row_that_is_kept_keeps_a_value_whose_event_bronze_lost(chain: Chain):
    know(chain)
    untold = order(1, 1, op="u", note="__debezium_unavailable_value")
    chain.ingest(SOFT, [order(0, 1, note="long"), untold, order(2, 1, op="d")])
    chain.merge(SOFT)
    right_versions = versions(chain)
    lose(chain, 0, end=3)

    result = chain.merge(SOFT, interval=MINUTE)

    assert [(row["note"], row["_cdc_deleted"]) for row in chain.silver(SOFT)] == [("long", True)]
    assert versions(chain) == right_versions
    assert result.status is TableStatus.IDLE


def test_a_row_whose_delete_bronze_lost_and_silver_forgot_does_not_come_back(chain: Chain):
    ingested(chain).merge(ORDERS)
    chain.ingest(ORDERS, [order(4, 4, note="four"), order(5, 1, op="u", note="newer")])
    chain.merge(ORDERS)
    right, right_versions = notes(chain.silver(ORDERS)), versions(chain)
    lose(chain, 3, end=6)
    forget(chain.session, chain.lake.tombstones("orders"), before=KAFKA_TIME)

    result = chain.merge(ORDERS, interval=MINUTE)

    assert right == {1: "newer", 2: "two", 4: "four"}
    assert (notes(chain.silver(ORDERS)), versions(chain)) == (right, right_versions)
    assert (result.counts["keys_in_doubt"], result.status) == (1, TableStatus.IDLE)


def test_a_row_that_silver_lacks_comes_back_where_its_last_event_is_behind_what_bronze_lost(chain: Chain):
    know(chain)
    chain.ingest(PLAIN, [*BATCH, order(4, 4, note="four")])
    chain.merge(PLAIN)
    lose(chain, 3, end=5)
    spoil(chain, "DELETE FROM {t} WHERE id IN (2, 4)")

    first = chain.merge(PLAIN, interval=MINUTE)
    second = chain.merge(PLAIN, interval=MINUTE)

    assert notes(chain.silver(PLAIN)) == {1: "one", 4: "four"}
    assert [(each.rows, each.counts["keys_in_doubt"]) for each in (first, second)] == [(1, 2), (0, 2)]


def test_a_kept_row_whose_delete_bronze_lost_stays_deleted(chain: Chain):
    know(chain)
    chain.ingest(SOFT, BATCH)
    chain.merge(SOFT)
    right_versions = versions(chain)
    lose(chain, 3, end=4)

    result = chain.merge(SOFT, interval=MINUTE)

    assert {row["id"]: row["_cdc_deleted"] for row in chain.silver(SOFT)} == {1: False, 2: False, 3: True}
    assert versions(chain) == right_versions
    assert (result.counts["keys_in_doubt"], result.status) == (1, TableStatus.IDLE)
