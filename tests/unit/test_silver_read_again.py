"""What silver could not take, and whether bronze may hold other rows in its place by now."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lakehouse.lake.ledger import Kind, Ledger
from cdc_lakehouse.lake.progress import Progress
from cdc_lakehouse.silver.plan import (
    MOST_PARTS,
    is_level,
    knows_all_of,
    plan_read_again,
    standing_on,
    stands_on_other_rows,
)

SOURCE = "shop.public.orders@id1"
BRONZE = Ledger(
    Kind.BRONZE, "shop", "orders", "c1", seq=3, attempt="b3", sources={SOURCE: {0: Progress(floor=0, end=10)}}
)
SILVER = Ledger(
    Kind.SILVER,
    "shop",
    "orders",
    "c1",
    seq=2,
    sources={SOURCE: {0: Progress(floor=0, end=10)}},
    redone=3,
    stands_on=(5, "b3"),
    passed_over={SOURCE: {0: ((4, 5), (7, 9))}},
)


def test_the_same_step_is_known_whole():
    assert knows_all_of(SILVER, BRONZE)


@pytest.mark.parametrize("other", [replace(BRONZE, seq=4), replace(BRONZE, attempt="b9")])
def test_another_step_is_asked_about(other):
    assert not knows_all_of(SILVER, other)
    assert knows_all_of(replace(SILVER, passed_over={}), other)


def test_rows_are_the_same_while_the_log_says_what_it_said():
    newer = replace(BRONZE, seq=9, attempt="b9")

    assert not stands_on_other_rows(SILVER, newer, found=BRONZE)


@pytest.mark.parametrize("found", [None, replace(BRONZE, attempt="of a table that was made again")])
def test_rows_are_others_where_the_log_says_something_else(found):
    assert stands_on_other_rows(SILVER, BRONZE, found=found)
    assert not is_level(BRONZE, SILVER, holds=False, other_rows=True)


def test_rows_are_others_that_were_read_again_behind_a_restore():
    assert stands_on_other_rows(SILVER, replace(BRONZE, seq=5, untold=4), found=BRONZE)
    assert not stands_on_other_rows(SILVER, replace(BRONZE, seq=5, untold=3), found=BRONZE)


def test_a_silver_from_a_copy_is_told_of_replays_that_bronze_has_forgotten():
    first = BRONZE.redecoded(1, {SOURCE: {0: (4, 5)}}, attempt="replay", known=3)
    second = first.redecoded(1, {SOURCE: {0: (7, 8)}}, attempt="another", known=first.seq)

    assert not stands_on_other_rows(SILVER, first, found=BRONZE)
    assert stands_on_other_rows(SILVER, second, found=BRONZE)
    assert not stands_on_other_rows(replace(SILVER, redone=first.seq), second, found=BRONZE)


def test_where_silver_could_take_all_it_makes_no_difference():
    assert not stands_on_other_rows(replace(SILVER, passed_over={}), BRONZE, found=None)


def test_read_again_is_what_bronze_holds_of_it():
    holed = replace(BRONZE, sources={SOURCE: {0: Progress(floor=0, end=10, gaps=((8, 10),))}})

    assert plan_read_again(holed, SILVER) == {SOURCE: {0: ((4, 5), (7, 8))}}


def test_what_was_looked_at_again_stays_only_where_it_is_still_undecodable():
    again = {SOURCE: {0: ((4, 5), (7, 8))}}

    after = standing_on(BRONZE, SILVER, version=6, undecodable={SOURCE: {0: ((7, 8),)}}, read_again=again)

    assert after.stands_on == (6, "b3")
    assert after.passed_over == {SOURCE: {0: ((7, 9),)}}


def test_a_ledger_remembers_no_more_places_than_it_can_bear():
    many = {SOURCE: {0: tuple((n, n + 1) for n in range(100, 100 + 3 * MOST_PARTS, 2))}}

    after = standing_on(BRONZE, SILVER, version=6, undecodable=many, read_again={})

    assert after.passed_over == {SOURCE: {0: ((4, 98 + 3 * MOST_PARTS + 1),)}}


def test_the_document_keeps_it():
    assert Ledger.from_json(SILVER.to_json(), table="orders") == SILVER
    assert Ledger.from_json(replace(BRONZE, untold=2).to_json(), table="orders") == replace(BRONZE, untold=2)
