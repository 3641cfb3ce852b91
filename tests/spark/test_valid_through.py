"""Commits say up to when their table is complete, and no later than it is (decision 0033)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from chain import Chain  # type: ignore[import-not-found]
from orders import ORDERS, SOURCE, know, order  # type: ignore[import-not-found]

from cdc_lakehouse.contract import TableResult, TableStatus
from cdc_lakehouse.database.positions import LogPosition
from cdc_lakehouse.lake.confirmations import Confirmation, Confirmations
from cdc_lakehouse.lake.confirmations_file import write_confirmations
from cdc_lakehouse.lake.state import read_state

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def known(chain) -> Chain:
    know(chain)
    return chain


def observed(chain: Chain, *ends: int) -> list[Confirmation]:
    """At position 100 x end: what is known from then on, newest first."""
    found = [
        Confirmation(LogPosition(100 * end), NOON + timedelta(minutes=end), 0, {SOURCE: {0: end}})
        for end in ends
    ]
    memory = Confirmations("db", (), tuple({"orders": each} for each in found))
    write_confirmations(chain.lake.confirmations("main"), memory)
    return found[::-1]


def stated(uri: str) -> str | None:
    state = read_state(uri, table="orders")
    assert state is not None
    assert state.ledger is not None
    valid = state.ledger.valid_through
    return None if valid is None else valid.position


def said(result: TableResult) -> tuple[str | None, str | None, str | None]:
    return result.valid_through, result.valid_position, result.withheld


def test_both_layers_say_so_in_the_commit_that_completes_them(known):
    found = observed(known, 2)
    first = known.ingest(ORDERS, [order(0, 1)], confirmations=found)
    early = known.merge(ORDERS)
    second = known.ingest(ORDERS, [order(1, 2)], confirmations=found)
    merged = known.merge(ORDERS)

    assert [each.valid_position for each in (first, early)] == [None, None]
    assert said(second) == said(merged) == ("2026-01-01T12:02:00+00:00", "0/C8", None)
    assert stated(known.lake.bronze("orders")) == stated(known.lake.silver("orders")) == "0/C8"


def test_an_idle_merge_says_more_than_its_last_commit(known):
    known.ingest(ORDERS, [order(0, 1), order(1, 2)], confirmations=observed(known, 1))
    known.merge(ORDERS)
    observed(known, 1, 2, 3)
    idle = known.merge(ORDERS)

    assert (idle.status, idle.valid_position, idle.lag_offsets) == (TableStatus.IDLE, "0/C8", 0)
    assert stated(known.lake.silver("orders")) == "0/64"


def test_what_was_said_stays_when_the_memory_is_lost(known):
    known.ingest(ORDERS, [order(0, 1)], confirmations=observed(known, 1))
    known.merge(ORDERS)
    write_confirmations(known.lake.confirmations("main"), Confirmations())
    known.ingest(ORDERS, [order(1, 2)])

    assert known.merge(ORDERS).valid_position == "0/64"


def test_a_record_that_waits_withholds_it_until_it_is_decoded(known):
    known.ingest(ORDERS, [order(0, 1)], confirmations=observed(known, 1))
    known.merge(ORDERS)
    found = observed(known, 1, 2)
    ingested = known.ingest(ORDERS, [replace(order(1, 2), value=b"junk")], confirmations=found)
    merged, idle = known.merge(ORDERS), known.merge(ORDERS)

    assert ingested.valid_position == "0/C8"
    assert said(merged) == said(idle) == (None, None, "undecodable records")
    assert stated(known.lake.silver("orders")) is None
