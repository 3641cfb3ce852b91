"""When a table says up to when it is complete, and when it does not (decision 0033)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from orders_in_kafka import SOURCE, TOPIC, ledger, ledger_of  # type: ignore[import-not-found]

from cdc_lakehouse.database.positions import LogPosition
from cdc_lakehouse.lake.applied import Applied
from cdc_lakehouse.lake.claims import Claim, Withheld, claim_of_bronze, claim_of_silver
from cdc_lakehouse.lake.confirmations import Confirmation
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.place import Place
from cdc_lakehouse.lake.progress import Progress
from cdc_lakehouse.lake.valid_through import ValidThrough

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
AT_NOON = ValidThrough("0/64", NOON.isoformat(), 0)


def confirmation(position: int, *ends: int, epoch: int = 0, source: str = SOURCE) -> Confirmation:
    return Confirmation(LogPosition(position), NOON, epoch, {source: dict(enumerate(ends))})


def silver_claim(silver: Ledger, *known: Confirmation, open_cases: int = 0) -> Claim:
    return claim_of_silver(silver, known, bronze=silver, open_cases=open_cases)


def one(*, floor: int = 0, **progress: Any) -> Ledger:
    found: Ledger = ledger_of({SOURCE: {0: Progress(floor=floor, end=9, **progress)}})
    return found


def test_who_has_read_all_ends_has_every_change_before_the_position():
    assert claim_of_bronze(ledger(p0=5, p1=3), [confirmation(100, 5, 3)]) == Claim(AT_NOON, None)


@pytest.mark.parametrize("ends", [(6, 3), (5, 4), (5, 3, 1)])
def test_one_partition_that_is_behind_is_enough_to_say_nothing(ends):
    assert claim_of_bronze(ledger(p0=5, p1=3), [confirmation(100, *ends)]).withheld is Withheld.NOT_CONFIRMED


def test_the_newest_confirmation_that_was_reached_counts():
    known = [confirmation(300, 9), confirmation(200, 5), confirmation(100, 4)]

    assert claim_of_bronze(ledger(p0=5), known).valid == ValidThrough("0/C8", NOON.isoformat(), 0)


def test_what_was_said_once_is_never_taken_back():
    said = replace(ledger(p0=5), valid_through=AT_NOON)

    assert claim_of_bronze(said, []).valid == AT_NOON
    assert claim_of_bronze(said, [confirmation(99, 5)]).valid == AT_NOON
    assert claim_of_bronze(said, [replace(confirmation(101, 5), time=None)]).valid == ValidThrough(
        "0/65", NOON.isoformat(), 0
    )


def test_a_new_source_epoch_empties_it():
    said = replace(one(epochs=((9, 1),)), valid_through=AT_NOON)

    assert claim_of_bronze(said, [confirmation(100, 9)]).valid is None
    assert claim_of_bronze(said, [confirmation(50, 9, epoch=1)]).valid == ValidThrough(
        "0/32", NOON.isoformat(), 1
    )


def test_a_topic_that_was_made_again_since_says_nothing():
    again = f"{TOPIC}@id2"
    both = ledger_of({SOURCE: {0: Progress(0, 9)}, again: {0: Progress(floor=0, end=2, epochs=((0, 1),))}})

    assert claim_of_bronze(both, [confirmation(100, 9, epoch=1)]).valid is None
    assert claim_of_bronze(both, [confirmation(100, 2, epoch=1, source=again)]).valid is not None


def test_gaps_withhold_it_in_both_layers():
    holed = one(gaps=((3, 4),))

    assert claim_of_bronze(holed, [confirmation(100, 9)]) == Claim(None, Withheld.GAPS)
    assert silver_claim(holed, confirmation(100, 9)) == Claim(None, Withheld.GAPS)


def test_records_that_wait_and_events_that_are_parked_withhold_it_in_silver():
    level = ledger(p0=9)

    assert silver_claim(level, confirmation(100, 9)).valid == AT_NOON
    assert silver_claim(level, confirmation(100, 9), open_cases=1).withheld is Withheld.UNDECODABLE
    assert silver_claim(replace(level, parked=True), confirmation(100, 9)).withheld is Withheld.PARKED


def test_what_withholds_it_wins_over_what_was_said_before():
    said = replace(ledger(p0=9), valid_through=AT_NOON)

    assert silver_claim(said, open_cases=1) == Claim(None, Withheld.UNDECODABLE)


def test_a_table_that_began_behind_the_first_record_waits_for_a_full_snapshot():
    known = confirmation(100, 9), confirmation(90, 9, epoch=1)
    late, healed = one(floor=4), one(floor=4, epochs=((6, 1),))
    healed = replace(healed, applied=Applied(cleared=Place.beginning_of(1)))

    assert silver_claim(late, *known).withheld is Withheld.BEGINS_LATE
    assert silver_claim(healed, *known).valid is not None


def test_a_source_that_began_anew_withholds_it_until_a_full_snapshot_is_complete():
    anew, known = one(epochs=((6, 1),)), confirmation(100, 9, epoch=1)
    half = replace(anew, applied=Applied(complete=1))
    whole = replace(anew, applied=Applied(cleared=Place.beginning_of(1)))

    assert silver_claim(anew, known).withheld is Withheld.BEGAN_ANEW
    assert silver_claim(half, known).withheld is Withheld.BEGAN_ANEW
    assert silver_claim(whole, known).valid == ValidThrough("0/64", NOON.isoformat(), 1)


def test_a_topic_that_was_made_again_is_read_from_its_first_record():
    fresh = one(epochs=((0, 1),))

    assert silver_claim(fresh, confirmation(100, 9, epoch=1)).withheld is None


def test_it_is_told_with_its_age_or_with_the_reason():
    told = Claim(replace(AT_NOON, time=None), None).told()

    assert told == {
        "valid_through": None,
        "valid_position": "0/64",
        "valid_lag_seconds": None,
        "withheld": None,
    }
    assert AT_NOON.lag_seconds(NOON.replace(minute=1)) == 60.0
    assert Claim(None, Withheld.GAPS).told()["withheld"] == "gaps"


def test_it_survives_the_ledgers_document_and_older_ledgers_have_none():
    said = replace(ledger(p0=5), valid_through=AT_NOON)

    assert Ledger.from_json(said.to_json(), table="orders") == said
    assert '"valid_through": null' in ledger(p0=5).to_json()
