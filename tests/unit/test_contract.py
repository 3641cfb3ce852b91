"""What Airflow and a job tell each other keeps its form."""

from __future__ import annotations

import json

import pytest

from cdc_lakehouse import contract
from cdc_lakehouse.contract import (
    AirflowContext,
    ExitCode,
    Job,
    JobRequest,
    JobResult,
    TableError,
    TableResult,
    TableStatus,
    combined_exit_code,
)

LOST = TableError(code="OFFSETS_LOST", exit_code=ExitCode.DATA, sentence="gone", advice="Snapshot.")
AWAY = TableError(code="BROKER_UNAVAILABLE", exit_code=ExitCode.RETRY, sentence="away", advice="Wait.")
ORDERS = TableResult(
    table="orders",
    status=TableStatus.ADVANCED,
    ranges={"shop.public.orders": {"0": (0, 120)}},
    rows=120,
    counts={"appended": 120, "undecodable": 1},
    errors_by_code={"BAD_MAGIC": 1},
    seen_through="2026-01-01T00:00:00Z",
    lag_seconds=1.5,
    seconds={"decode": 0.25},
    versions={"bronze": 3},
    batches=2,
    schema_ids={"key": [1], "value": [2, 9]},
    registry={"source": "archive", "calls": 3},
    decode_seconds=0.5,
    decoded_per_second=240.0,
    decisions={"accept_gap": {"shop.public.orders@id1": {"0": [5, 9]}}},
    gaps={"shop.public.orders": {"0": [[5, 9]]}},
    time_to_loss={"seconds": 90.5, "estimated": False},
    verification={"verdict": "open", "mark": "0/16B3748"},
    bad_rows={"bad_frame": [{"topic": "t", "partition": 0, "offset": 7, "value_schema_id": None}]},
)


def result(*tables: TableResult, error: TableError | None = None) -> JobResult:
    return JobResult(
        job=Job.BRONZE_INGEST,
        pipeline="shop",
        attempt="20260101T000000Z-0011aabb",
        tables=tables,
        error=error,
        seconds={"all": 9.5},
    )


def failed(name: str, error: TableError) -> TableResult:
    return TableResult(table=name, status=TableStatus.FAILED, error=error)


def test_a_result_survives_its_json():
    told = result(ORDERS, failed("customers", LOST), error=AWAY)

    assert JobResult.from_json(told.to_json()) == told


def test_a_result_of_a_release_that_counted_no_rows_still_loads():
    document = json.loads(result(ORDERS).to_json())
    del document["tables"][0]["rows"]

    assert JobResult.from_json(json.dumps(document)).tables[0].rows == 0


def test_a_result_of_another_version_is_refused():
    document = {**json.loads(result(ORDERS).to_json()), "v": 2}

    with pytest.raises(ValueError, match="result has version 2, this code reads 1"):
        JobResult.from_json(json.dumps(document))


def test_what_is_not_given_is_absent_from_the_arguments():
    request = JobRequest(job=Job.SILVER_MERGE, pipeline="shop", tables=("orders", "customers"))

    assert request.to_arguments() == ["--pipeline", "shop", "--tables", "orders,customers"]


def test_everything_that_is_given_becomes_an_argument():
    request = JobRequest(
        job=Job.BRONZE_INGEST,
        pipeline="shop",
        tables=("orders",),
        airflow=AirflowContext("cdc_shop", "scheduled__2026-01-01", "main.bronze_ingest", 2),
        from_time="2026-01-01T00:00:00Z",
        until_time="2026-01-02T00:00:00Z",
        accept_gap=("orders", "customers"),
        source_epoch={"orders": 2},
        dry_run=True,
    )

    assert request.to_arguments() == [
        "--pipeline", "shop", "--tables", "orders",
        "--dag-id", "cdc_shop", "--dag-run-id", "scheduled__2026-01-01",
        "--task-id", "main.bronze_ingest", "--try", "2",
        "--from-time", "2026-01-01T00:00:00Z", "--until-time", "2026-01-02T00:00:00Z",
        "--accept-gap", "orders", "--accept-gap", "customers",
        "--source-epoch", "orders=2",
        "--dry-run",
    ]  # fmt: skip


def test_exit_codes_are_the_published_numbers():
    assert {code.name: code.value for code in ExitCode} == {
        "DONE": 0, "DATA": 65, "BUG": 70, "RETRY": 75, "CONFIG": 78,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([], 0),
        ([0, 0], 0),
        ([0, 65], 65),
        ([78, 65], 65),
        ([0, 78], 78),
        ([65, 75], 75),
        ([78, 75], 75),
        ([75, 70], 70),
        ([65, 70, 78], 70),
    ],
)
def test_a_group_gives_its_healthy_tables_their_retry(codes, expected):
    assert combined_exit_code(map(ExitCode, codes)) == expected


def test_every_exit_code_is_combined():
    assert [code for code in ExitCode if combined_exit_code([code]) is not code] == []


def test_a_results_exit_code_counts_its_own_error_and_its_tables():
    assert result(ORDERS).exit_code == 0
    assert result(ORDERS, failed("a", LOST)).exit_code == 65
    assert result(failed("a", LOST), error=AWAY).exit_code == 75


STOPPED = {"connector": "connector shop: task 0 is FAILED", "connector_runs": False}


@pytest.mark.parametrize(
    ("told", "headline"),
    [
        (result(ORDERS, failed("a", LOST), failed("b", AWAY)),
         "2 of 3 tables failed: a OFFSETS_LOST, b BROKER_UNAVAILABLE"),
        (result(error=AWAY), "bronze_ingest failed: BROKER_UNAVAILABLE"),
        (result(ORDERS, TableResult(table="a", status=TableStatus.IDLE)), "1 of 2 tables advanced"),
        (result(*(TableResult(table=name, status=TableStatus.IDLE, freshness=STOPPED) for name in "ab")),
         "0 of 2 tables advanced; connector shop: task 0 is FAILED"),
    ],
)  # fmt: skip
def test_the_headline_is_what_a_person_needs_first(told, headline):
    assert told.headline() == headline


def test_the_names_of_environment_variables_are_published():
    assert {name: getattr(contract, name) for name in dir(contract) if name.startswith("ENV_")} == {
        "ENV_RESULT": "CDC_LAKEHOUSE_RESULT",
        "ENV_OPTIONS": "CDC_LAKEHOUSE_OPTIONS",
        "ENV_PIPELINES": "CDC_LAKEHOUSE_PIPELINES",
        "ENV_CONNECTION_KAFKA": "CDC_LAKEHOUSE_CONN_KAFKA",
        "ENV_CONNECTION_REGISTRY": "CDC_LAKEHOUSE_CONN_REGISTRY",
        "ENV_CONNECTION_STORAGE": "CDC_LAKEHOUSE_CONN_STORAGE",
        "ENV_CONNECTION_SOURCE": "CDC_LAKEHOUSE_CONN_SOURCE",
        "ENV_CONNECTION_CONNECT": "CDC_LAKEHOUSE_CONN_CONNECT",
        "ENV_SPARK_SECRET": "CDC_LAKEHOUSE_SPARK_SECRET",
    }


@pytest.mark.parametrize(
    ("job", "counts", "said"),
    [
        (
            Job.OPTIMIZE,
            {"files_packed": 12, "files_written": 2, "skipped": 1},
            "12 files packed, 2 files written, 1 skipped",
        ),
        (
            Job.VACUUM,
            {"files_deleted": 3, "bytes_reclaimed": 4096, "restated": 0},
            "3 files deleted, 4096 bytes reclaimed",
        ),
        (Job.CLEAN_CHECKPOINTS, {"checkpoints": 4}, "4 checkpoints"),
    ],
)
def test_maintenance_says_what_it_did(job: Job, counts: dict[str, int], said: str):
    tables = (
        TableResult("orders", TableStatus.MAINTAINED, counts=counts),
        TableResult("customers", TableStatus.IDLE, counts=dict.fromkeys(counts, 0)),
    )

    assert JobResult(job, "shop", "a", tables).headline() == f"1 of 2 tables maintained: {said}"


def test_maintenance_says_for_how_many_nights_a_table_was_skipped():
    nights = {"silver/shop/orders": {"conflict_nights": 3}, "bronze/shop/orders": {"conflict_nights": 0}}
    tables = (
        TableResult("orders", TableStatus.IDLE, counts={"files_packed": 0, "skipped": 1}, maintenance=nights),
    )

    said = JobResult(Job.OPTIMIZE, "shop", "a", tables).headline()

    assert said == "0 of 1 tables maintained: 1 skipped, for 3 nights at most"


def test_the_cleanup_says_what_it_deleted_beside_the_tables():
    tables = (TableResult("orders", TableStatus.MAINTAINED, counts={"checkpoints": 4}),)
    notes = {"cleaned": ["96 reports of old runs"]}

    said = JobResult(Job.CLEAN_CHECKPOINTS, "shop", "a", tables, notes=notes).headline()

    assert said == "1 of 1 tables maintained: 4 checkpoints, 96 reports of old runs"


def test_a_dry_run_of_maintenance_claims_nothing():
    tables = (
        TableResult("orders", TableStatus.PLANNED, counts={"checkpoints": 4}),
        TableResult("customers", TableStatus.IDLE, counts={"checkpoints": 0}),
    )

    said = JobResult(Job.CLEAN_CHECKPOINTS, "shop", "a", tables).headline()

    assert said == "dry run: 1 of 2 tables have work"


def test_maintenance_without_work_says_so():
    tables = (TableResult("orders", TableStatus.IDLE, counts={"files_packed": 0}),)

    assert (
        JobResult(Job.OPTIMIZE, "shop", "a", tables).headline() == "0 of 1 tables maintained: nothing to do"
    )
