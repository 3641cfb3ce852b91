"""What `make tables` knows of a table, from the reports that the lake keeps."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cdc_lakehouse.config.models import Pipeline
from cdc_lakehouse.contract import ExitCode, Job, JobResult, TableError, TableResult, TableStatus
from cdc_lakehouse.inspection.overview import TableOverview, overview
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.reports import write_reports

PIPELINE = Pipeline.model_validate(
    {
        "version": 1,
        "name": "shop",
        "owner": "tests",
        "schedule": "0 * * * *",
        "start_date": "2026-01-01",
        "tables": [{"name": "orders", "topics": ["shop.public.orders"]}],
    }
)
DIFFERS = TableError(code="SILVER_DIFFERS", exit_code=ExitCode.DATA, sentence="it differs", advice="Look.")


@pytest.fixture
def reported(tmp_path):
    def after(table: TableResult) -> TableOverview:
        result = JobResult(Job.VERIFY, "shop", "20260101T000000Z-0011aabb", tables=(table,))
        write_reports(Lake(tmp_path.as_uri(), "shop"), result, airflow=None)
        (found,) = overview(tmp_path.as_uri(), [PIPELINE], now=datetime(2026, 1, 2, tzinfo=UTC))
        return found

    return after


@pytest.fixture
def merged(tmp_path):
    def after(*tables: TableResult) -> TableOverview:
        """The oldest first."""
        for number, table in enumerate(tables):
            result = JobResult(Job.SILVER_MERGE, "shop", f"20260101T00000{number}Z-0011aabb", tables=(table,))
            write_reports(Lake(tmp_path.as_uri(), "shop"), result, airflow=None)
        (found,) = overview(tmp_path.as_uri(), [PIPELINE], now=datetime(2026, 1, 2, tzinfo=UTC))
        return found

    return after


def said(**fields: str) -> TableResult:
    return TableResult(table="orders", status=TableStatus.IDLE, **fields)  # type: ignore[arg-type]


COMPLETE = said(valid_through="2026-01-01T10:00:00+00:00", valid_position="0/64")


def test_an_idle_merge_says_up_to_when_a_table_is_complete(merged):
    found = merged(said(withheld="gaps"), COMPLETE)

    assert found.valid_through == datetime(2026, 1, 1, 10, tzinfo=UTC)
    assert (found.valid_position, found.withheld) == ("0/64", "")


def test_what_the_newest_merge_withholds_is_withheld(merged):
    found = merged(COMPLETE, said(withheld="gaps"))

    assert (found.valid_through, found.withheld) == (None, "gaps")


def test_a_merge_that_failed_takes_nothing_back(merged):
    failed = TableResult(table="orders", status=TableStatus.FAILED, error=DIFFERS)

    assert merged(COMPLETE, failed).valid_position == "0/64"


def verified(verdict: str, error: TableError | None = None) -> TableResult:
    status = TableStatus.VERIFIED if error is None else TableStatus.FAILED
    return TableResult(table="orders", status=status, error=error, verification={"verdict": verdict})


def test_a_table_is_told_with_what_its_newest_comparison_found(reported):
    found = reported(verified("equal"))

    assert (found.verified, found.problem) == ("equal", "")


def test_a_table_that_differs_has_a_problem(reported):
    found = reported(verified("different", DIFFERS))

    assert (found.verified, found.problem) == ("different", "verify: it differs")
