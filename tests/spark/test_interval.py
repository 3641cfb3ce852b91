"""An interval computed again from bronze: silver and its history get what they should have, once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from chain import KAFKA_TIME, Chain, table_of  # type: ignore[import-not-found]
from delta.tables import DeltaTable
from orders import know, notes, order  # type: ignore[import-not-found]

from cdc_lakehouse.contract import Recompute, TableStatus
from cdc_lakehouse.lake.interval import Interval
from cdc_lakehouse.lake.state import read_state
from cdc_lakehouse.lake.transaction import commit, fenced_statement

ORDERS = table_of("orders", history=True)
EVENTS = table_of("orders", mode="append")
MINUTE = Interval(KAFKA_TIME - timedelta(seconds=30), KAFKA_TIME + timedelta(seconds=30))
BATCH = [order(0, 1, note="one"), order(1, 2, note="two"), order(2, 3, note="three"), order(3, 3, op="d")]


def ingested(chain: Chain) -> Chain:
    know(chain)
    chain.ingest(ORDERS, BATCH)
    return chain


def spoil(chain: Chain, statement: str) -> None:
    """Leave silver as a release with a wrong fold would have: with a commit and a ledger of ours."""
    uri = chain.lake.silver("orders")
    state = read_state(uri, table="orders")
    assert state is not None
    assert state.ledger is not None
    ledger = state.ledger.advanced({}, attempt="20260101T000000Z-00000000", seen_through=None)
    session = chain.engine.isolated()

    def execute() -> None:
        with fenced_statement(session, ledger):
            session.sql(statement.format(t=f"delta.`{uri}`"))

    commit(execute, uri=uri, ledger=ledger)


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
