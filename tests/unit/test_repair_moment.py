"""The moment that a rewind goes back to: what a person says, and the version of ours that it means."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from delta_logs import commit_of, ledger_of, write_log  # type: ignore[import-not-found]

from cdc_lakehouse.errors import RepairRefusedError
from cdc_lakehouse.lake.versions import OwnVersion, own_versions
from cdc_lakehouse.repair.moment import Layer, Moment, find_version

FOREIGN: list[dict[str, object]] = [
    {"commitInfo": {"timestamp": 2, "operation": "DELETE", "operationParameters": {}}}
]


def asked_for(**options: str) -> Moment:
    return Moment.asked_for(options, table="orders", timezone="Europe/Berlin")


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Versions 1 and 3 are ours."""
    uri = (tmp_path / "orders").as_uri()
    first = ledger_of("orders", topic="t", end=3)
    second = first.advanced({"t@id1": {0: (3, 5)}}, attempt="20260101T000000Z-00000002", seen_through=None)
    write_log(uri, commit_of(first), FOREIGN, commit_of(second))
    return uri


def found(uri: str, moment: Moment, *, broken: tuple[int, ...] = ()) -> OwnVersion:
    def problem_of(version: OwnVersion) -> str | None:
        return f"version {version.version} is broken" if version.version in broken else None

    return find_version(uri, moment, table="orders", newest=3, problem_of=problem_of)


def test_a_moment_is_a_version_or_a_time_of_the_timezone_of_the_pipeline():
    assert asked_for(to_version=" 12 ", layer="") == Moment(Layer.SILVER, version=12)
    assert asked_for(layer="bronze", to_time="2026-07-01T14:00:00") == Moment(
        Layer.BRONZE, time=datetime(2026, 7, 1, 12, tzinfo=UTC)
    )


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "`to_version` or `to_time`, one of them"),
        ({"to_version": "1", "to_time": "2026-01-01"}, "`to_version` or `to_time`, one of them"),
        ({"to_version": "latest"}, "'latest' is no version"),
        ({"to_time": "noon"}, "'noon' is no time"),
        ({"to_version": "1", "layer": "gold"}, "not 'gold'"),
    ],
)
def test_what_is_no_moment_is_refused(options, problem):
    with pytest.raises(RepairRefusedError, match=problem):
        asked_for(**options)


@pytest.mark.parametrize(("version", "ours"), [(3, 3), (2, 1), (1, 1)])
def test_the_newest_commit_of_ours_at_or_before_a_version_is_meant(uri, version, ours):
    assert found(uri, Moment(Layer.SILVER, version=version)).version == ours


def test_a_time_means_the_newest_commit_of_ours_by_then(uri):
    assert [each.version for each in own_versions(uri, table="orders")] == [3, 1]
    assert found(uri, Moment(Layer.SILVER, time=datetime(2026, 1, 1, tzinfo=UTC))).version == 3


@pytest.mark.parametrize(
    ("moment", "broken", "problem"),
    [
        (Moment(Layer.SILVER, version=9), (), "silver has no version 9; its newest is 3"),
        (Moment(Layer.SILVER, version=0), (), "at version 0, or before; the oldest .* version 1,"),
        (Moment(Layer.SILVER, version=1), (1,), "is broken; the oldest that is possible is version 3,"),
        (Moment(Layer.SILVER, version=1), (1, 3), "is broken; no version is possible: rebuild it"),
        (Moment(Layer.SILVER, time=datetime(1969, 1, 1, tzinfo=UTC)), (), "at 1969-01-01T.*, or before"),
    ],
)
def test_a_version_that_is_gone_is_refused_with_the_oldest_that_is_possible(uri, moment, broken, problem):
    with pytest.raises(RepairRefusedError, match=problem):
        found(uri, moment, broken=broken)
