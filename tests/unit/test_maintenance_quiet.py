"""OPTIMIZE of silver begins when no merge runs, and does not wait for ever."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cdc_lakehouse.contract import Job
from cdc_lakehouse.lake.attempts import AttemptRecord, RunningAttempt
from cdc_lakehouse.lake.names import Lake, new_attempt
from cdc_lakehouse.maintenance.quiet import QuietMoments, running_merges

NOW = datetime(2026, 1, 10, 3, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(root=tmp_path.as_uri(), pipeline="shop")


def begun(lake: Lake, job: Job) -> RunningAttempt:
    running = RunningAttempt(lake, new_attempt(datetime.now(UTC)), job=job)
    running.begin()
    return running


@pytest.mark.parametrize(
    ("job", "seen", "ended", "counts"),
    [
        (Job.SILVER_MERGE, NOW, None, True),
        (Job.SILVER_MERGE, NOW, NOW, False),
        (Job.SILVER_MERGE, NOW - timedelta(minutes=9), None, True),
        (Job.SILVER_MERGE, NOW - timedelta(minutes=10), None, False),  # it was killed
        (Job.BRONZE_INGEST, NOW, None, False),
    ],
)
def test_only_merges_that_are_alive_are_waited_for(job, seen, ended, counts):
    record = AttemptRecord("a", job, began=NOW - HOUR, seen=seen, ended=ended)

    assert running_merges([record], now=NOW) == (["a"] if counts else [])


def test_optimize_waits_until_the_merge_has_ended(lake):
    merge, slept = begun(lake, Job.SILVER_MERGE), []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            merge.end()

    assert QuietMoments(lake, longest_attempt=HOUR, sleep=sleep).wait()
    assert slept == [10.0, 10.0, 10.0]


def test_optimize_does_not_wait_for_an_ingest(lake):
    ingest = begun(lake, Job.BRONZE_INGEST)

    assert QuietMoments(lake, longest_attempt=HOUR, sleep=_fail).wait()
    ingest.end()


def test_all_tables_of_a_run_share_one_budget(lake):
    merge, slept = begun(lake, Job.SILVER_MERGE), []
    quiet = QuietMoments(
        lake, longest_attempt=HOUR, budget=timedelta(seconds=20), sleep=lambda seconds: slept.append(seconds)
    )

    waited = [quiet.wait(), quiet.wait()]
    merge.end()

    assert (waited, slept) == ([False, False], [10.0, 10.0])


def _fail(_seconds: float) -> None:
    raise AssertionError("nothing is waited for")
