"""What `make tables` knows of a table, from the reports that the lake keeps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cdc_lakehouse.config.models import Pipeline
from cdc_lakehouse.connect.connectors import Connector, Part
from cdc_lakehouse.contract import ExitCode, Job, JobResult, TableError, TableResult, TableStatus
from cdc_lakehouse.database.positions import LogPosition, Moment
from cdc_lakehouse.inspection.overview import TableOverview, counted, overview
from cdc_lakehouse.lake.claims import Withheld
from cdc_lakehouse.lake.confirmations import Confirmations
from cdc_lakehouse.lake.confirmations_file import write_confirmations
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


@pytest.mark.parametrize("reason", [Withheld.BEGAN_ANEW, Withheld.BEGINS_LATE])
def test_what_only_a_full_snapshot_ends_is_told_with_its_statement(merged, reason):
    found = merged(said(withheld=str(reason)))

    assert '\'{"data-collections": ["public.orders"], "type": "blocking"}\');' in found.way_out
    assert merged(COMPLETE).way_out == ""


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


PROMISED = Pipeline.model_validate(
    {**PIPELINE.model_dump(mode="json", exclude_defaults=True), "defaults": {"fresh_within": "1h"}}
)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
STOPPED = {
    "shop": Connector(
        "shop", {"topic.prefix": "shop"}, (Part("the connector", "RUNNING"), Part("task 0", "FAILED"))
    )
}


@pytest.fixture
def looked_at(tmp_path):
    """What is told at noon of silver at 0/64, where the source's log was at these places before."""
    lake = Lake(tmp_path.as_uri(), "shop")

    def found(*places: tuple[int, int], pipeline: Pipeline = PROMISED, **more: Any) -> TableOverview:
        known = Confirmations("db")
        for minutes, position in places:
            moment = Moment(NOON - timedelta(minutes=minutes), LogPosition(position))
            known = known.having_seen(moment, address="db")
        write_confirmations(lake.confirmations("main"), known)
        result = JobResult(Job.SILVER_MERGE, "shop", "20260101T000000Z-0011aabb", tables=(COMPLETE,))
        write_reports(lake, result, airflow=None)
        (told,) = overview(tmp_path.as_uri(), [pipeline], now=NOON, **more)
        return told

    return found


def test_silver_that_lacks_changes_for_longer_than_promised_is_stalled_when_somebody_looks(looked_at):
    assert looked_at((120, 0x60), (61, 0x70), (1, 0x80)).stalled == (
        "silver lacks changes that the source had by 2026-01-01 10:59:00 UTC, 1 h 1 min ago "
        "(`fresh_within: 1h`)"
    )
    assert looked_at((120, 0x60), (59, 0x70)).stalled == ""
    assert looked_at((120, 0x60), (61, 0x70), pipeline=PIPELINE).stalled == ""


def test_a_connector_that_does_not_run_now_makes_its_tables_a_problem_without_any_promise(looked_at):
    found = looked_at((1, 0x60), pipeline=PIPELINE, connectors=STOPPED)

    assert found.stalled == "connector shop: task 0 is FAILED"
    assert counted([found])["failed"] == 1
    assert looked_at((1, 0x60), pipeline=PIPELINE, connectors={"shop": RUNNING}).stalled == ""


def test_where_nobody_can_be_asked_the_newest_ingest_says_that_the_connector_does_not_run(
    looked_at, tmp_path
):
    freshness = {"connector": "connector shop: task 0 is FAILED", "connector_runs": False}
    ingest = TableResult(table="orders", status=TableStatus.IDLE, freshness=freshness)
    result = JobResult(Job.BRONZE_INGEST, "shop", "20260101T110000Z-0011aabb", tables=(ingest,))
    write_reports(Lake(tmp_path.as_uri(), "shop"), result, airflow=None)

    assert looked_at((1, 0x60)).stalled == "connector shop: task 0 is FAILED"
    assert looked_at((1, 0x60), connectors={"shop": RUNNING}).stalled == ""


def test_a_table_that_is_gone_at_the_source_lacks_nothing(looked_at, tmp_path):
    gone = TableResult(table="orders", status=TableStatus.IDLE, freshness={"at_source": False})
    result = JobResult(Job.BRONZE_INGEST, "shop", "20260101T110000Z-0011aabb", tables=(gone,))
    write_reports(Lake(tmp_path.as_uri(), "shop"), result, airflow=None)

    assert looked_at((120, 0x60), (61, 0x70), connectors=STOPPED).stalled == ""


def test_a_promise_that_nobody_judges_is_a_problem_when_somebody_looks(looked_at, tmp_path):
    freshness = {"at_source": False, "withheld": "it is another source's"}
    elsewhere = TableResult(table="orders", status=TableStatus.IDLE, freshness=freshness)
    result = JobResult(Job.BRONZE_INGEST, "shop", "20260101T110000Z-0011aabb", tables=(elsewhere,))
    write_reports(Lake(tmp_path.as_uri(), "shop"), result, airflow=None)

    assert looked_at((120, 0x60)).stalled == "`fresh_within: 1h` is not judged: it is another source's"
    assert looked_at((120, 0x60), pipeline=PIPELINE).stalled == ""
    assert looked_at((1, 0x60), connectors=STOPPED).stalled == "connector shop: task 0 is FAILED"


RUNNING = Connector(
    "shop", {"topic.prefix": "shop"}, (Part("the connector", "RUNNING"), Part("task 0", "RUNNING"))
)
