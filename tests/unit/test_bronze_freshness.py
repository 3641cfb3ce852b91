"""A promise of freshness is broken by what can be shown, and by nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cdc_lakehouse.bronze.epochs import EPOCHS_OPENED
from cdc_lakehouse.bronze.freshness import Arrival, with_freshness
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.connect.connectors import ConnectorState
from cdc_lakehouse.contract import TableError, TableResult, TableStatus
from cdc_lakehouse.database.positions import LogPosition, Moment
from cdc_lakehouse.errors import BrokerUnavailableError, MissingConnectionError, SourceUnavailableError
from cdc_lakehouse.lake.claims import Withheld
from cdc_lakehouse.lake.confirmations import lacking_since

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TABLE = Table(name="orders", topics=("shop.public.orders",), fresh_within="1h")
STOPPED = ConnectorState("connector shop: task 0 is FAILED", runs=False)


def moments(*ages: int) -> tuple[Moment, ...]:
    """So many minutes before noon, the oldest first; the log was at 100, 200, …"""
    return tuple(
        Moment(NOON - timedelta(minutes=age), LogPosition(100 * number))
        for number, age in enumerate(ages, start=1)
    )


def arrival(*ages: int, committed: int | None, **more: Any) -> Arrival:
    known = moments(*ages)
    position = None if committed is None else LogPosition(committed)
    return Arrival(NOON, known, source=known[-1].position, committed=position, **more)


def result(position: int | None = None, **fields: Any) -> TableResult:
    valid = None if position is None else str(LogPosition(position))
    return TableResult(
        table="orders", status=fields.pop("status", TableStatus.IDLE), valid_position=valid, **fields
    )


def code(found: TableResult) -> str | None:
    return None if found.error is None else found.error.code


def test_the_oldest_moment_of_which_something_is_missing_says_since_when():
    known = moments(90, 60, 30)

    assert [lacking_since(known, LogPosition(place)) for place in (99, 100, 250, 300)] == [
        known[0].at,
        known[1].at,
        known[2].at,
        None,
    ]
    assert lacking_since(known, None) == known[0].at


def test_changes_that_are_missing_for_longer_than_promised_are_red_and_say_why():
    found = with_freshness(result(250), TABLE, arrival(120, 90, 61, 0, committed=250, connector=STOPPED))

    assert found.error == TableError(
        code="NOT_FRESH",
        exit_code=found.exit_code,
        sentence="orders lacks changes that its source had by 2026-01-01 10:59:00 UTC, 1 h 1 min ago, and it "
        "promises `fresh_within: 1h`; connector shop: task 0 is FAILED",
        advice=found.error.advice if found.error else "",
    )
    assert (found.status, int(found.exit_code)) == (TableStatus.IDLE, 65)


def test_all_that_is_known_is_in_the_report():
    found = with_freshness(result(250), TABLE, arrival(120, 90, 30, 0, committed=250, connector=STOPPED))

    assert found.freshness == {
        "connector": "connector shop: task 0 is FAILED",
        "connector_runs": False,
        "at_source": True,
        "source_position": "0/190",
        "committed_position": "0/FA",
        "behind_bytes": 150,
        "lacks_since": "2026-01-01T11:30:00+00:00",
        "stale_seconds": 1800.0,
        "fresh_within": "1h",
    }
    assert found.error is None


@pytest.mark.parametrize(
    ("ages", "position"),
    [((5000, 0), 150), ((5000, 4000, 0), 250), ((30, 15, 0), 300), ((30, 15, 0), 299)],
    ids=["a pause of days", "a second run behind it", "nothing missing", "only now"],
)
def test_a_pause_of_the_dag_breaks_no_promise(ages, position):
    assert code(with_freshness(result(position), TABLE, arrival(*ages, committed=position))) is None


def test_a_drain_that_did_not_reach_what_the_connector_brought_is_late_too():
    late = arrival(120, 90, 0, committed=299)

    assert code(with_freshness(result(150, status=TableStatus.ADVANCED), TABLE, late)) == "NOT_FRESH"
    assert code(with_freshness(result(299, status=TableStatus.ADVANCED), TABLE, late)) is None


def test_who_never_said_that_anything_is_complete_lacks_all_of_it():
    never = result(withheld=Withheld.NOT_CONFIRMED)

    assert code(with_freshness(never, TABLE, arrival(61, 0, committed=None))) == "NOT_FRESH"
    assert code(with_freshness(never, TABLE, arrival(59, 0, committed=None))) is None


@pytest.mark.parametrize(
    "claims_nothing",
    [result(withheld=Withheld.GAPS), result()],
    ids=["gaps", "a topic without a record"],
)
def test_a_table_that_claims_nothing_for_its_own_reasons_is_judged_by_its_connector(claims_nothing):
    assert code(with_freshness(claims_nothing, TABLE, arrival(120, 90, 0, committed=299))) is None
    assert code(with_freshness(claims_nothing, TABLE, arrival(120, 90, 0, committed=199))) == "NOT_FRESH"


def test_a_repeated_snapshot_does_not_make_a_table_stale():
    """It opens an epoch, for which nothing is confirmed before the next run looks."""
    repeated = result(
        withheld=Withheld.NOT_CONFIRMED,
        status=TableStatus.ADVANCED,
        decisions={EPOCHS_OPENED: [{"epoch": 2, "why": "full snapshot"}]},
    )

    assert code(with_freshness(repeated, TABLE, arrival(120, 90, 0, committed=299))) is None
    assert code(with_freshness(repeated, TABLE, arrival(120, 90, 0, committed=199))) == "NOT_FRESH"


def test_a_table_that_the_source_dropped_is_judged_by_its_connector():
    gone = arrival(120, 90, 0, committed=299, is_at_source=False)

    assert code(with_freshness(result(100), TABLE, gone)) is None


def test_a_promise_about_a_table_of_another_source_is_not_judged_and_says_why():
    """Positions of two sources do not compare."""
    elsewhere = arrival(5000, 0, committed=50, is_at_source=False, unjudged="it is another source's")
    found = with_freshness(result(withheld=Withheld.NOT_CONFIRMED), TABLE, elsewhere)

    assert found.error is None
    assert found.freshness == {
        "connector": "whether its connector runs is not known: Kafka Connect was not asked",
        "connector_runs": True,
        "at_source": False,
        "source_position": "0/C8",
        "withheld": "it is another source's",
        "fresh_within": "1h",
    }


def test_a_table_whose_reading_a_person_ended_lacks_nothing():
    """Also where its connector was retired with it, and commits nothing any more."""
    retired = arrival(5000, 0, committed=50, is_at_source=False, has_ended=True)
    found = with_freshness(result(50), TABLE, retired)

    assert (found.error, "lacks_since" in found.freshness) == (None, False)


def test_without_a_promise_nothing_is_red():
    table = TABLE.model_copy(update={"fresh_within": None})
    found = with_freshness(result(50), table, arrival(5000, 0, committed=50, connector=STOPPED))

    assert (found.error, found.freshness["stale_seconds"]) == (None, 300_000.0)


def test_an_error_of_the_table_stays_and_comes_first():
    error = BrokerUnavailableError(bootstrap="kafka:9092", reason="gone").as_table_error()
    found = with_freshness(result(50, error=error), TABLE, arrival(5000, 0, committed=50))

    assert (found.error, found.freshness["stale_seconds"]) == (error, 300_000.0)


def test_a_promise_that_nothing_can_show_is_refused_and_not_green():
    refusal = MissingConnectionError(connection="CDC_LAKEHOUSE_CONN_SOURCE", problem="it is not set")
    found = with_freshness(result(), TABLE, Arrival(NOON, (), refusal=refusal))

    assert (code(found), int(found.exit_code)) == ("MISSING_CONNECTION", 78)


def test_a_source_that_is_away_breaks_the_promise_by_what_was_known_before():
    refusal = SourceUnavailableError(address="db:5432/shop", reason="gone")
    found = with_freshness(result(150), TABLE, Arrival(NOON, moments(120, 90), refusal=refusal))

    assert code(found) == "NOT_FRESH"
    assert found.error is not None
    assert "db:5432/shop did not answer: gone" in found.error.sentence
