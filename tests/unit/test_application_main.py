"""A job as a process: what goes out whatever happens inside."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cdc_lakehouse.application.main import run, run_look
from cdc_lakehouse.application.per_table import each_table
from cdc_lakehouse.contract import (
    ENV_CONNECTION_STORAGE,
    ENV_PIPELINES,
    ENV_RESULT,
    HAS_WORK,
    ExitCode,
    Job,
    JobResult,
    TableError,
    TableResult,
    TableStatus,
)
from cdc_lakehouse.errors import (
    BrokerUnavailableError,
    IntervalIncompleteError,
    StorageUnavailableError,
    SupersededError,
)
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.reports import newest_results

PIPELINE = """
version: 1
name: shop
owner: tests
schedule: "0 * * * *"
start_date: 2026-01-01
tables:
  - {name: orders, topics: [shop.public.orders]}
  - {name: customers, topics: [shop.public.customers]}
"""


@pytest.fixture(autouse=True)
def _process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What a job finds around it; the log is put back afterwards."""
    (tmp_path / "shop.yaml").write_text(PIPELINE)
    monkeypatch.setenv(ENV_PIPELINES, str(tmp_path))
    monkeypatch.setenv(ENV_RESULT, str(tmp_path / "result.json"))
    monkeypatch.setenv(ENV_CONNECTION_STORAGE, json.dumps({"extra": {"root": f"file://{tmp_path}/lake"}}))
    monkeypatch.setattr("sys.argv", ["vacuum.py", "--pipeline", "shop"])
    logger = logging.getLogger("cdc_lakehouse")
    before = logger.handlers, logger.level, logger.propagate
    yield
    logger.handlers, logger.level, logger.propagate = before


def handed_over(tmp_path: Path) -> JobResult:
    return JobResult.from_json((tmp_path / "result.json").read_text())


def code_of(error: TableError | None) -> str | None:
    return None if error is None else error.code


def all_idle(application) -> list[TableResult]:
    return [TableResult(table.name, TableStatus.IDLE) for table in application.tables]


def test_what_a_job_notes_beside_its_tables_is_in_its_result_and_its_report(tmp_path):
    def noting(application) -> list[TableResult]:
        application.notes["topics_left_alone"] = ["shop.transaction"]
        return all_idle(application)

    run(Job.VACUUM, noting)

    (reported,) = newest_results(Lake(root=f"file://{tmp_path}/lake", pipeline="shop"))
    assert reported.notes == handed_over(tmp_path).notes == {"topics_left_alone": ["shop.transaction"]}


@pytest.mark.parametrize("entry", [run, run_look])
def test_every_result_of_a_pipeline_that_accepts_an_unproven_source_says_so(tmp_path, entry):
    (tmp_path / "shop.yaml").write_text(f"{PIPELINE}unproven_source: true\n")

    def named(application) -> list[TableResult]:
        orders, customers = all_idle(application)
        return [replace(orders, unproven_source="mariadb"), customers]

    entry(Job.BRONZE_INGEST, named)

    (reported,) = newest_results(Lake(root=f"file://{tmp_path}/lake", pipeline="shop"))
    told = [table.unproven_source for table in reported.tables]
    assert told == [table.unproven_source for table in handed_over(tmp_path).tables]
    assert told == ["mariadb", "accepted by the pipeline"]


def test_a_run_hands_over_its_result_and_keeps_a_report(tmp_path):
    code = run(Job.VACUUM, all_idle)

    result = handed_over(tmp_path)
    assert code == ExitCode.DONE
    assert [table.table for table in result.tables] == ["orders", "customers"]
    assert newest_results(Lake(root=f"file://{tmp_path}/lake", pipeline="shop")) == [result]


def test_tables_can_be_chosen_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["vacuum.py", "--pipeline", "shop", "--tables", "customers"])

    run(Job.VACUUM, all_idle)

    assert [table.table for table in handed_over(tmp_path).tables] == ["customers"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--pipeline", "shop", "--tables", "orders,unknown"], "UNKNOWN_NAME"),
        (["--pipeline", "unknown"], "INVALID_PIPELINE"),
        (["--pipeline", "shop", "--accept-gap", "orders"], "NOT_SUPPORTED_YET"),
    ],
)
def test_a_request_that_a_person_must_correct_ends_with_78(tmp_path, monkeypatch, arguments, code):
    monkeypatch.setattr("sys.argv", ["vacuum.py", *arguments])

    assert run(Job.VACUUM, all_idle) == ExitCode.CONFIG
    assert code_of(handed_over(tmp_path).error) == code


@pytest.mark.parametrize(
    ("exc", "exit_code", "code"),
    [
        (BrokerUnavailableError(bootstrap="b", reason="away"), ExitCode.RETRY, "BROKER_UNAVAILABLE"),
        (ZeroDivisionError("a bug"), ExitCode.BUG, "BUG"),
    ],
)
def test_work_that_raises_has_its_code_and_its_report(tmp_path, exc, exit_code, code):
    def work(_application):
        raise exc

    assert run(Job.VACUUM, work) == exit_code
    assert code_of(handed_over(tmp_path).error) == code
    (reported,) = newest_results(Lake(root=f"file://{tmp_path}/lake", pipeline="shop"))
    assert code_of(reported.error) == code


def test_a_run_whose_report_could_not_be_kept_is_not_green(tmp_path):
    (tmp_path / "lake").write_text("a file where the lake should be")

    assert run(Job.VACUUM, all_idle) == ExitCode.RETRY
    assert code_of(handed_over(tmp_path).error) == StorageUnavailableError.code
    assert len(handed_over(tmp_path).tables) == 2


def test_an_engine_that_cannot_stop_does_not_take_the_result_with_it(tmp_path):
    class Dead:
        def stop(self) -> None:
            raise ConnectionRefusedError("the JVM is gone")

    def work(application):
        application.spark._session = Dead()
        return all_idle(application)

    assert run(Job.VACUUM, work) == ExitCode.DONE
    assert handed_over(tmp_path).exit_code == ExitCode.DONE


def test_a_table_that_fails_stops_no_other(tmp_path):
    def work(application):
        def each(table):
            if table.name == "orders":
                raise ValueError("only this one")
            return TableResult(table.name, TableStatus.ADVANCED)

        return each_table(application, each)

    assert run(Job.VACUUM, work) == ExitCode.BUG
    orders, customers = handed_over(tmp_path).tables
    assert (orders.status, code_of(orders.error)) == (TableStatus.FAILED, "BUG")
    assert customers.status is TableStatus.ADVANCED


def test_a_table_that_another_attempt_advanced_is_superseded(tmp_path):
    def work(application):
        def each(table):
            raise SupersededError(table=table.name, seq=1, attempt=application.attempt)

        return each_table(application, each)

    assert run(Job.VACUUM, work) == ExitCode.RETRY
    assert {table.status for table in handed_over(tmp_path).tables} == {TableStatus.SUPERSEDED}


def test_every_line_of_a_job_is_json_and_the_last_tells_the_end(capsys):
    run(Job.VACUUM, all_idle)

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[-1]["event"] == "job finished"
    assert (lines[-1]["exit_code"], lines[-1]["headline"]) == (0, "0 of 2 tables maintained: nothing to do")
    assert {line["pipeline"] for line in lines} == {"shop"}


def test_the_line_of_a_table_tells_what_it_cost_where_that_is_known(capsys):
    told: dict[str, Any] = {
        "decode_seconds": 2.5,
        "decoded_per_second": 40.0,
        "registry": {"source": "registry", "calls": 1},
    }

    def work(_):
        return [
            TableResult("orders", TableStatus.ADVANCED, batches=2, **told),
            TableResult("customers", TableStatus.IDLE),
        ]

    run(Job.BRONZE_INGEST, work)

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (orders,) = (line for line in lines if line["event"] == "table done")
    assert {name: orders[name] for name in ("batches", *told)} == {"batches": 2, **told}


def test_tables_that_had_nothing_to_do_share_one_line(capsys):
    run(Job.BRONZE_INGEST, all_idle)

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    told = [(line["count"], line["tables"]) for line in lines if line["event"] == "tables idle"]
    assert told == [(2, ["orders", "customers"])]


def test_a_look_at_idle_tables_hands_over_and_reports_like_the_job(tmp_path):
    assert run_look(Job.BRONZE_INGEST, all_idle) == ExitCode.DONE

    (kept,) = newest_results(Lake(root=f"file://{tmp_path}/lake", pipeline="shop"))
    assert handed_over(tmp_path) == kept
    assert (kept.job, len(kept.tables)) == (Job.BRONZE_INGEST, 2)


@pytest.mark.parametrize("status", [TableStatus.PLANNED, TableStatus.FAILED, TableStatus.SUPERSEDED])
def test_a_look_at_a_table_that_is_not_idle_says_and_leaves_nothing(tmp_path, status):
    def one_of_two(application):
        return [*all_idle(application)[1:], TableResult("orders", status)]

    assert run_look(Job.BRONZE_INGEST, one_of_two) == HAS_WORK
    assert not (tmp_path / "result.json").exists()
    assert newest_results(Lake(root=f"file://{tmp_path}/lake", pipeline="shop")) == []


def test_a_look_at_a_table_that_misses_what_nobody_has_ends_like_the_job(tmp_path):
    lost = IntervalIncompleteError(table="orders", offsets="orders/0:3-5").as_table_error()

    def one_of_two(application):
        return [*all_idle(application)[1:], TableResult("orders", TableStatus.FAILED, error=lost)]

    assert run_look(Job.BRONZE_INGEST, one_of_two) == ExitCode.DATA
    (kept,) = newest_results(Lake(root=f"file://{tmp_path}/lake", pipeline="shop"))
    assert handed_over(tmp_path) == kept
    assert [table.table for table in kept.failed] == ["orders"]


def test_a_look_that_fails_leaves_the_word_to_the_job(tmp_path):
    def failing(_application):
        raise BrokerUnavailableError(bootstrap="b", reason="away")

    assert run_look(Job.BRONZE_INGEST, failing) == HAS_WORK
    assert not (tmp_path / "result.json").exists()


def test_a_look_whose_report_could_not_be_kept_is_not_green(tmp_path):
    (tmp_path / "lake").write_text("a file where the lake should be")

    assert run_look(Job.BRONZE_INGEST, all_idle) == HAS_WORK
    assert not (tmp_path / "result.json").exists()
