"""How long until retention overtakes a table, and what of it is an estimate."""

from __future__ import annotations

import pytest

from cdc_lakehouse.bronze.time_to_loss import TimeToLoss, offsets_to_date, time_to_loss
from cdc_lakehouse.kafka.facts import PartitionOffsets, Retention, TopicFacts

NOW = 1_000_000_000
HOUR = 3_600_000
BY_TIME = Retention(milliseconds=8 * HOUR, size_bytes=None)
BY_SIZE = Retention(milliseconds=None, size_bytes=10**9)


def topics(retention: Retention | None, **partitions: tuple[int, int]) -> dict[str, TopicFacts]:
    offsets = {int(name[1:]): PartitionOffsets(*pair) for name, pair in partitions.items()}
    return {"t": TopicFacts("t", "id1", offsets, retention)}


def left(retention: Retention | None, end: int = 5, *, unread=None, oldest=None) -> TimeToLoss | None:
    known = topics(retention, p0=(2, 9))
    return time_to_loss(known, {"t": {0: end}}, unread=unread or {}, oldest=oldest or {}, now=NOW)


def test_a_table_that_read_everything_has_the_whole_retention():
    assert left(BY_TIME, end=9) == TimeToLoss(8 * 3600, "t", 0, "retention.ms", False, 8 * 3600)


def test_the_first_unread_record_is_kept_until_it_is_as_old_as_the_retention():
    found = left(BY_TIME, unread={("t", 0): NOW - 5 * HOUR})

    assert found is not None
    assert (found.seconds, found.is_short) == (3 * 3600, False)


@pytest.mark.parametrize(("age", "short"), [(6 * HOUR, False), (6 * HOUR + 1, True), (99 * HOUR, True)])
def test_less_than_a_quarter_is_short(age, short):
    found = left(BY_TIME, unread={("t", 0): NOW - age})

    assert found is not None
    assert found.is_short is short
    assert found.seconds >= 0


def test_a_record_from_the_future_has_no_more_than_the_retention():
    found = left(BY_TIME, unread={("t", 0): NOW + 99 * HOUR})

    assert found is not None
    assert found.seconds == 8 * 3600


@pytest.mark.parametrize("unread", [{}, {("t", 0): -1}], ids=["not told", "no timestamp"])
def test_a_record_without_a_time_tells_nothing(unread):
    assert left(BY_TIME, unread=unread) is None


def test_a_limit_of_size_is_estimated_from_what_is_deleted_now():
    """Kafka's oldest record is 10 hours old and the first unread one 4: six hours of records lie between."""
    found = left(BY_SIZE, unread={("t", 0): NOW - 4 * HOUR}, oldest={("t", 0): NOW - 10 * HOUR})

    assert found == TimeToLoss(6 * 3600, "t", 0, "retention.bytes", True, 10 * 3600)


def test_of_two_limits_and_many_partitions_the_first_counts():
    both = Retention(milliseconds=8 * HOUR, size_bytes=10**9)
    found = time_to_loss(
        topics(both, p0=(2, 9), p1=(0, 9)),
        {"t": {0: 5, 1: 9}},
        unread={("t", 0): NOW - HOUR},
        oldest={("t", 0): NOW - 2 * HOUR},
        now=NOW,
    )

    assert found == TimeToLoss(3600, "t", 0, "retention.bytes", True, 2 * 3600)


@pytest.mark.parametrize("retention", [None, Retention(None, None)], ids=["may not ask", "kept for ever"])
def test_where_nothing_is_deleted_or_told_there_is_no_time(retention):
    assert left(retention, end=9) is None


def test_only_times_that_are_needed_are_asked_for():
    both = Retention(milliseconds=8 * HOUR, size_bytes=10**9)
    known = topics(both, p0=(2, 9), p1=(0, 9), p2=(4, 9), p3=(7, 9))

    unread, oldest = offsets_to_date(known, {"t": {0: 5, 1: 9, 2: 9, 3: 6, 8: 1}, "gone": {0: 1}})

    assert unread == {("t", 0): 5}
    assert oldest == {("t", 0): 2, ("t", 2): 4, ("t", 3): 7}


@pytest.mark.parametrize(
    ("settings", "retention"),
    [
        ({"retention.ms": "60000", "retention.bytes": "-1"}, Retention(60_000, None)),
        ({"retention.ms": "-1", "retention.bytes": "5", "cleanup.policy": "delete"}, Retention(None, 5)),
        ({"retention.ms": "60000", "cleanup.policy": "compact"}, Retention(None, None)),
        ({"retention.ms": "60000", "cleanup.policy": "compact,delete"}, Retention(60_000, None)),
    ],
)
def test_retention_is_what_the_topic_says(settings, retention):
    assert Retention.from_settings(settings) == retention
