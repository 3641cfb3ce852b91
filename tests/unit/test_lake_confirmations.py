"""What is remembered of a source's connector, and when it says something (decision 0033)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cdc_lakehouse.database.positions import LogPosition
from cdc_lakehouse.database.slots import Slot, SlotLook
from cdc_lakehouse.lake.confirmations import MOST, MOST_MOMENTS, Confirmations, Reach
from cdc_lakehouse.lake.confirmations_file import read_confirmations, write_confirmations
from cdc_lakehouse.lake.files import write_text

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
REACH = {"orders": Reach(0, {"shop.public.orders@id1": {0: 5, 1: 0}})}


def slot(confirmed: int | None, *, reader: int | None = 77, name: str = "shop") -> Slot:
    known = None if confirmed is None else LogPosition(confirmed)
    return Slot(name, active=reader is not None, confirmed=known, reader=reader)


def look(minute: int, position: int, *slots: Slot) -> SlotLook:
    return SlotLook(NOON + timedelta(minutes=minute), LogPosition(position), slots, frozenset())


def seen(*looks: SlotLook) -> Confirmations:
    known = Confirmations()
    for each in looks:
        known = known.having_seen(each, address="db")
    return known


def test_a_reader_that_confirmed_something_since_it_was_first_seen_is_believed():
    now = look(1, 150, slot(120))

    assert seen(look(0, 100, slot(90)), now).confirmed_in(now) == LogPosition(120)


@pytest.mark.parametrize(
    "before",
    [
        (),
        (look(0, 120, slot(90)),),
        (look(0, 100, slot(90, reader=76)),),
        (look(0, 100, slot(90, reader=None)),),
    ],
    ids=["seen for the first time", "nothing since", "another reader", "nobody read it then"],
)
def test_a_reader_that_may_still_bring_a_snapshot_is_not(before):
    now = look(1, 150, slot(120))

    assert seen(*before, now).confirmed_in(now) is None


@pytest.mark.parametrize("silent", [slot(None, name="b"), slot(140, reader=None, name="b")])
def test_every_slot_must_be_read(silent):
    now = look(1, 150, slot(120), silent)

    assert seen(look(0, 100, slot(90), silent), now).confirmed_in(now) is None


def test_of_several_slots_the_one_furthest_behind_decides():
    now = look(1, 150, slot(120), slot(110, name="b"))

    assert seen(look(0, 100, slot(90), slot(90, name="b")), now).confirmed_in(now) == LogPosition(110)


def test_no_slot_at_all_says_nothing():
    assert seen(look(0, 100), look(1, 150)).confirmed_in(look(1, 150)) is None


def test_a_position_is_as_late_as_the_newest_moment_below_it():
    known = seen(look(0, 100), look(1, 150), look(2, 200))

    assert known.time_at(LogPosition(150)) == NOON + timedelta(minutes=1)
    assert known.time_at(LogPosition(99)) is None


def test_another_source_begins_from_nothing():
    known = seen(look(0, 100, slot(90))).with_reach(LogPosition(90), REACH)
    moved = known.having_seen(look(1, 150, slot(120)), address="elsewhere")

    assert (moved.known, moved.time_at(LogPosition(120))) == ((), None)


def test_moments_are_few_and_reach_far_back():
    known = seen(*(look(minute, 1_000 + minute) for minute in range(1_000)))

    assert len(known.moments) <= MOST_MOMENTS
    assert known.moments[0].at == NOON
    assert known.time_at(LogPosition(1_400)) is not None
    assert known.time_at(LogPosition(5_000)) == NOON + timedelta(minutes=999)


def test_the_newest_confirmation_of_a_table_comes_first():
    known = seen(look(0, 100))
    for position in range(MOST + 2):
        known = known.with_reach(LogPosition(position), REACH)

    assert [each.position.number for each in known.of("orders")] == [7, 6, 5, 4, 3, 2]
    assert list(known.of("customers")) == []


def test_a_memory_survives_its_file(tmp_path):
    known = seen(look(0, 100, slot(90)), look(1, 150, slot(120))).with_reach(LogPosition(120), REACH)
    uri = f"{tmp_path.as_uri()}/confirmed/main.json"
    write_confirmations(uri, known)

    assert read_confirmations(uri) == known


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"v": 2}', '{"v": 1, "address": ""}'])
def test_a_file_that_is_lost_or_odd_is_nothing_more_than_that(tmp_path, text):
    write_text(f"{tmp_path.as_uri()}/odd.json", text)

    assert read_confirmations(f"{tmp_path.as_uri()}/odd.json") == Confirmations()
    assert read_confirmations(f"{tmp_path.as_uri()}/lost.json") == Confirmations()


def test_a_memory_that_was_lost_is_made_again_by_two_looks():
    lost = replace(seen(look(0, 100, slot(90)), look(1, 150, slot(120))), readers={}, moments=(), known=())
    first, second = look(2, 200, slot(170)), look(3, 250, slot(220))
    after = lost.having_seen(first, address="db")

    assert after.confirmed_in(first) is None
    assert after.having_seen(second, address="db").confirmed_in(second) == LogPosition(220)
