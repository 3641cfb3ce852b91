"""What several tries of one task moved, told as one."""

from dataclasses import replace

from fake_spark import idle, ingested, result  # type: ignore[import-not-found]

from cdc_lakehouse.contract import Job
from cdc_lakehouse.orchestration.advances import advances_of, joined
from recorded_results import recorded_table  # type: ignore[import-not-found]

RECORDED = recorded_table(Job.BRONZE_INGEST)
FIRST = advances_of(result(Job.BRONZE_INGEST, ingested("orders", 0, 10), ingested("clicks"), attempt="try-1"))
SECOND = advances_of(result(Job.BRONZE_INGEST, ingested("orders", 10, 15), idle("clicks"), attempt="try-2"))


def test_a_table_that_only_the_first_try_moved_is_still_told():
    assert joined(FIRST, SECOND)["clicks"] == FIRST["clicks"]


def test_a_table_that_both_tries_moved_is_told_once_with_the_whole_way():
    assert joined(FIRST, SECOND)["orders"] == {
        "rows": 15,
        "ranges": {"shop.public.orders": {"0": [0, 15]}},
        "seen_through": RECORDED.seen_through,
        "valid_through": RECORDED.valid_through,
        "valid_position": RECORDED.valid_position,
        "versions": RECORDED.versions,
        "attempts": ["try-1", "try-2"],
    }


def test_a_later_try_that_cannot_say_up_to_when_a_table_is_complete_wins():
    unsure = replace(ingested("orders", 15, 20), valid_through=None, valid_position=None)
    third = advances_of(result(Job.BRONZE_INGEST, unsure, attempt="try-3"))

    assert joined(SECOND, third)["orders"]["valid_through"] is None


def test_joining_the_same_attempt_twice_changes_nothing():
    assert joined(joined(FIRST, SECOND), SECOND) == joined(FIRST, SECOND)


def test_an_idle_table_is_not_told():
    assert advances_of(result(Job.SILVER_MERGE, idle("orders"))) == {}
