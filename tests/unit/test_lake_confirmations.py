"""What is remembered of a source and of what its connector has committed (decision 0033)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cdc_lakehouse.database.positions import LogPosition, Moment
from cdc_lakehouse.lake.confirmations import MOST, MOST_MOMENTS, Confirmation, Confirmations
from cdc_lakehouse.lake.confirmations_file import read_confirmations, write_confirmations

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def seen(*positions: int) -> Confirmations:
    """A moment each minute."""
    known = Confirmations()
    for minute, position in enumerate(positions):
        moment = Moment(NOON + timedelta(minutes=minute), LogPosition(position))
        known = known.having_seen(moment, address="db")
    return known


def observed(position: int, *, time: datetime | None = NOON) -> dict[str, Confirmation]:
    return {"orders": Confirmation(LogPosition(position), time, 0, {"shop.public.orders@id1": {0: 5, 1: 0}})}


def test_a_position_is_as_late_as_the_newest_moment_below_it():
    known = seen(100, 150, 200)

    assert known.time_at(LogPosition(150)) == NOON + timedelta(minutes=1)
    assert known.time_at(LogPosition(99)) is None


def test_another_source_begins_from_nothing():
    known = seen(100).observing(observed(90))
    moved = known.having_seen(Moment(NOON, LogPosition(150)), address="elsewhere")

    assert (moved.known, moved.time_at(LogPosition(120))) == ((), None)


def test_a_log_that_went_back_begins_from_nothing():
    known = seen(100, 200).observing(observed(190))
    restored = known.having_seen(Moment(NOON + timedelta(hours=1), LogPosition(150)), address="db")

    assert (restored.known, len(restored.moments)) == ((), 1)


def test_moments_are_few_and_reach_far_back():
    known = seen(*range(1_000, 2_000))

    assert len(known.moments) <= MOST_MOMENTS
    assert known.moments[0].at == NOON
    assert known.time_at(LogPosition(1_400)) is not None
    assert known.time_at(LogPosition(5_000)) == NOON + timedelta(minutes=999)


def test_the_newest_observation_of_a_table_comes_first():
    known = seen(100)
    for position in range(MOST + 2):
        known = known.observing(observed(position))

    assert [each.position.number for each in known.of("orders")] == [7, 6, 5, 4, 3, 2]
    assert list(known.of("customers")) == []


def test_nothing_that_was_observed_pushes_nothing_out():
    known = seen(100).observing(observed(1))

    assert known.observing({}) == known


def test_a_memory_survives_its_file(tmp_path):
    known = seen(100, 150).observing(observed(120)).observing(observed(130, time=None))
    uri = f"{tmp_path.as_uri()}/confirmed/main.json"
    write_confirmations(uri, known)

    assert read_confirmations(uri) == known


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"v": 2}', b'{"v": 1, "address": ""}', b"\xff\xfe"])
def test_a_file_that_is_lost_or_odd_is_nothing_more_than_that(tmp_path, content):
    (tmp_path / "odd.json").write_bytes(content)

    assert read_confirmations(f"{tmp_path.as_uri()}/odd.json") == Confirmations()
    assert read_confirmations(f"{tmp_path.as_uri()}/lost.json") == Confirmations()
