"""Commit times of a run report."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cdc_lakehouse.lake.instants import age_in_words, instant


def test_a_commit_time_is_exact():
    assert instant(1_767_268_800_000_001) == datetime(2026, 1, 1, 12, 0, 0, 1, tzinfo=UTC)
    assert instant(253_402_300_799_999_999) == datetime.max.replace(tzinfo=UTC)


@pytest.mark.parametrize("micros", [None, 2**63 - 1, -(2**63), 253_402_300_800_000_000])
def test_a_commit_time_beyond_the_calendar_is_none_and_not_an_error(micros):
    assert instant(micros) is None


def test_an_age_is_told_in_its_two_largest_units():
    assert [age_in_words(age) for age in (0.4, 59, 3_600, 3_725, 97_200)] == [
        "0 s",
        "59 s",
        "1 h",
        "1 h 2 min",
        "1 d 3 h",
    ]
