"""What a merge has to do: decisions on values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lakehouse.errors import BronzeBehindError
from cdc_lakehouse.lake.applied import Applied
from cdc_lakehouse.lake.ledger import Kind, Ledger
from cdc_lakehouse.lake.progress import Progress
from cdc_lakehouse.silver.plan import (
    first_ledger,
    is_level,
    is_small,
    next_ledger,
    plan_redo,
    plan_work,
    rows_committed,
)

SOURCE = "shop.public.orders@id1"


def ledger(kind: Kind, **ends: int) -> Ledger:
    """`p0=5`: partition 0 from its floor 2 up to 5."""
    partitions = {int(name[1:]): Progress(floor=2, end=end) for name, end in ends.items()}
    return Ledger(
        kind=kind, pipeline="shop", table="orders", cluster_id="c1", seq=3, sources={SOURCE: partitions}
    )


def work(silver: dict[str, int], bronze: dict[str, int]):
    return plan_work(ledger(Kind.BRONZE, **bronze), ledger(Kind.SILVER, **silver))


def test_the_work_is_what_bronze_holds_and_silver_has_not_applied():
    assert work({"p0": 5, "p1": 8}, {"p0": 9, "p1": 8}) == {SOURCE: {0: (5, 9)}}


def test_a_partition_that_silver_never_saw_is_applied_from_its_floor():
    assert work({"p0": 9}, {"p0": 9, "p1": 4}) == {SOURCE: {1: (2, 4)}}


def test_a_level_silver_has_no_work():
    assert work({"p0": 9}, {"p0": 9}) == {}


def test_rows_that_bronze_decoded_again_are_work_until_a_merge_has_seen_them():
    bronze = ledger(Kind.BRONZE, p0=9).redecoded(2, {SOURCE: {0: (3, 5)}}, attempt="a", known=0)
    silver = ledger(Kind.SILVER, p0=9)
    after = next_ledger(silver, bronze, {}, attempt="b", seen_through=None, applied=Applied())

    assert not is_level(bronze, silver, holds=False)
    assert plan_redo(bronze, silver) == bronze.redo
    assert is_level(bronze, after, holds=False)
    assert plan_redo(bronze, first_ledger(bronze)) == ()


@pytest.mark.parametrize(("parked", "holds"), [(False, False), (False, True), (True, True)])
def test_what_is_parked_waits_while_the_table_holds(parked, holds):
    silver = replace(ledger(Kind.SILVER, p0=9), parked=parked)

    assert is_level(ledger(Kind.BRONZE, p0=9), silver, holds=holds)
    assert not is_level(ledger(Kind.BRONZE, p0=9), replace(silver, parked=True), holds=False)


def test_the_work_goes_across_gaps_and_silver_remembers_them():
    bronze = ledger(Kind.BRONZE, p0=5)
    holed = replace(
        bronze, sources={SOURCE: {0: Progress(floor=2, end=9, gaps=((6, 8),), epochs=((2, 1), (7, 2)))}}
    )
    silver = ledger(Kind.SILVER, p0=5)

    found = plan_work(holed, silver)
    after = next_ledger(silver, holed, found, attempt="a", seen_through=None, applied=Applied())

    assert found == {SOURCE: {0: (5, 9)}}
    assert after.sources == holed.sources
    assert (after.seq, after.added) == (4, found)


def test_a_gap_alone_is_no_work_yet():
    holed = replace(ledger(Kind.BRONZE), sources={SOURCE: {0: Progress(floor=2, end=9, gaps=((5, 9),))}})

    assert plan_work(holed, ledger(Kind.SILVER, p0=5)) == {}


def test_bronze_that_went_back_stops_the_table():
    with pytest.raises(BronzeBehindError) as caught:
        work({"p0": 9}, {"p0": 5})

    error = caught.value
    assert (error.source, error.partition, error.applied, error.end) == (SOURCE, 0, 9, 5)


def test_the_first_ledger_of_silver_stands_where_bronze_begins():
    first = first_ledger(ledger(Kind.BRONZE, p0=9))

    assert (first.kind, first.seq, first.cluster_id) == (Kind.SILVER, 0, "c1")
    assert first.sources == {SOURCE: {0: Progress(floor=2, end=2)}}
    assert plan_work(ledger(Kind.BRONZE, p0=9), first) == {SOURCE: {0: (2, 9)}}


@pytest.mark.parametrize(
    ("offsets", "size", "small"), [(20_000, 1024, True), (20_001, 1024, False), (1, 33 * 2**20, False)]
)
def test_work_is_small_when_both_sides_are(offsets, size, small):
    half = offsets // 2
    late = {SOURCE: {1: ((0, half),)}}

    assert is_small({SOURCE: {0: (0, offsets - half)}}, late=late, table_bytes=size) is small


@pytest.mark.parametrize(
    ("bronze", "silver", "seq", "expected"),
    [
        ((0, 9), None, 0, 9),
        ((0, 9), (0, 4), 3, 5),
        ((5, 2), None, 0, None),
        ((5, 2), (0, 4), 3, None),
        ((0, 9), None, 3, None),
        (None, (0, 4), 3, None),
    ],
    ids=["first", "later", "counted from later on", "counted anew", "silver of before", "bronze of before"],
)
def test_rows_are_expected_where_all_of_them_were_counted(bronze, silver, seq, expected):
    held = replace(ledger(Kind.BRONZE), counted=bronze)

    assert rows_committed(held, replace(ledger(Kind.SILVER), seq=seq, counted=silver)) == expected


def test_silver_remembers_what_bronze_had_counted():
    bronze = replace(ledger(Kind.BRONZE, p0=9), counted=(0, 7))
    after = next_ledger(
        ledger(Kind.SILVER, p0=5),
        bronze,
        {SOURCE: {0: (5, 9)}},
        attempt="a",
        seen_through=None,
        applied=Applied(),
    )

    assert after.counted == (0, 7)
