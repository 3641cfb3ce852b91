"""Exit code and result file in, verdict out: without Airflow."""

import signal
from dataclasses import replace

import pytest
from fake_spark import BROKER_AWAY, OFFSETS_LOST, failed, idle, ingested, result  # type: ignore[import-not-found]

from cdc_lakehouse.contract import ExitCode, Job, JobResult, TableError
from cdc_lakehouse.orchestration.results import Decision, Verdict, decision_for, judge, refused


def verdict_on(
    outcome: JobResult | None,
    *,
    exit_code: int | None = None,
    tables: tuple[str, ...] = ("orders", "customers"),
) -> Verdict:
    text = outcome.to_json() if outcome is not None else None
    code = exit_code if exit_code is not None else int(outcome.exit_code if outcome is not None else 0)
    return judge(Job.BRONZE_INGEST, pipeline="shop", tables=tables, exit_code=code, text=text)


NOT_FRESH = TableError("NOT_FRESH", ExitCode.DATA, "orders lacks changes.", "Look at the connector.")
STOPPED = {"connector": "connector shop: task 0 is FAILED", "connector_runs": False}
EVERY_EXIT_CODE = {
    ExitCode.DONE: Decision.SUCCEED,
    ExitCode.DATA: Decision.FAIL,
    ExitCode.CONFIG: Decision.FAIL,
    ExitCode.RETRY: Decision.RETRY,
    ExitCode.BUG: Decision.RETRY,
}


@pytest.mark.parametrize("code", list(ExitCode))
def test_every_exit_code_has_its_decision(code):
    assert decision_for(int(code)) is EVERY_EXIT_CODE[code]


@pytest.mark.parametrize("code", [137, 143, -9, -15, 1, 2, 255])
def test_killed_and_foreign_exit_codes_are_retried(code):
    assert decision_for(code) is Decision.RETRY


def test_first_line_counts_the_failed_tables_and_each_has_one_line_below():
    verdict = verdict_on(result(Job.BRONZE_INGEST, failed("orders", OFFSETS_LOST), idle("customers")))
    assert verdict.decision is Decision.FAIL
    first, *below = verdict.message.splitlines()
    assert first == "1 of 2 tables failed: orders OFFSETS_LOST"
    assert " ".join(map(str.strip, below)) == f"orders: {OFFSETS_LOST.sentence}. {OFFSETS_LOST.advice}"
    assert max(map(len, below)) <= 110


def test_a_retryable_table_wins_over_one_that_failed_for_good():
    both = result(Job.BRONZE_INGEST, failed("orders", OFFSETS_LOST), failed("customers", BROKER_AWAY))
    assert verdict_on(both).decision is Decision.RETRY


def test_an_idle_table_whose_promise_is_broken_is_red_although_its_look_ended_with_0():
    late = replace(idle("orders"), error=NOT_FRESH, freshness=STOPPED)
    verdict = verdict_on(result(Job.BRONZE_INGEST, late, idle("customers")), exit_code=0)

    assert verdict.decision is Decision.FAIL
    assert verdict.message.splitlines()[0] == (
        "1 of 2 tables failed: orders NOT_FRESH; connector shop: task 0 is FAILED"
    )
    assert verdict.log_line == "orders NOT_FRESH; idle: customers; connector shop: task 0 is FAILED"


def test_an_error_beside_the_tables_is_told_too():
    error = TableError(
        "MISSING_CONNECTION", ExitCode.CONFIG, "the connection x is not usable: gone", "Make it."
    )
    outcome = JobResult(job=Job.VACUUM, pipeline="shop", attempt="a", tables=(), error=error)
    assert verdict_on(outcome).message.splitlines() == [
        "vacuum failed: MISSING_CONNECTION",
        "vacuum: the connection x is not usable: gone. Make it.",
    ]


def test_a_run_without_a_result_is_never_green():
    verdict = verdict_on(None, exit_code=0)
    assert verdict.decision is Decision.RETRY
    assert verdict.message.splitlines()[0] == "bronze_ingest ended without an error and left no result"


def test_a_result_that_says_nothing_about_a_table_is_never_green():
    verdict = verdict_on(result(Job.BRONZE_INGEST, ingested("orders")))
    assert verdict.decision is Decision.RETRY
    assert verdict.message == "bronze_ingest said nothing about customers"


def test_a_result_with_a_failed_table_is_not_green_although_the_application_ended_with_0():
    outcome = result(Job.BRONZE_INGEST, failed("orders", OFFSETS_LOST), idle("customers"))
    assert verdict_on(outcome, exit_code=0).decision is Decision.FAIL


def test_an_application_that_dies_after_a_good_result_is_tried_again():
    outcome = result(Job.BRONZE_INGEST, ingested("orders"), idle("customers"))
    verdict = verdict_on(outcome, exit_code=1)
    assert verdict.decision is Decision.RETRY
    assert verdict.message == "1 of 2 tables advanced, but then bronze_ingest ended with exit code 1"


@pytest.mark.parametrize("code", [-signal.SIGKILL, 128 + signal.SIGKILL])
def test_a_killed_application_is_named_by_its_signal(code):
    assert verdict_on(None, exit_code=code).message.startswith(
        "bronze_ingest was killed by SIGKILL and left no"
    )


@pytest.mark.parametrize("text", ["{", "[]", '{"v": 99}', '{"v": 1}', '"x"'])
def test_an_unreadable_result_is_a_sentence_and_a_retry(text):
    verdict = judge(Job.OPTIMIZE, pipeline="shop", tables=["orders"], exit_code=0, text=text)
    assert verdict.decision is Decision.RETRY
    assert verdict.message.startswith("optimize ended without an error and its result cannot be read (")


def test_the_last_log_line_says_what_happened_to_every_table():
    outcome = result(Job.BRONZE_INGEST, idle("orders"), ingested("customers"), failed("clicks", OFFSETS_LOST))
    verdict = verdict_on(outcome, tables=("orders", "customers", "clicks"))
    assert verdict.log_line == "customers advanced appended=10; clicks OFFSETS_LOST; idle: orders"


def test_a_table_that_went_on_from_the_archive_says_so_in_the_last_log_line():
    without = replace(ingested("customers"), registry={"source": "archive", "calls": 3})
    verdict = verdict_on(result(Job.BRONZE_INGEST, without), tables=("customers",))
    assert verdict.log_line == "customers advanced appended=10 registry=archive"


def test_the_summary_is_small_and_names_the_failed_and_the_advanced():
    outcome = result(Job.BRONZE_INGEST, failed("orders", OFFSETS_LOST), ingested("customers"))
    assert verdict_on(outcome).summary == {
        "job": "bronze_ingest",
        "pipeline": "shop",
        "attempt": "20260101T000000Z-00000001",
        "headline": "1 of 2 tables failed: orders OFFSETS_LOST",
        "tables": {"orders": "OFFSETS_LOST", "customers": "advanced"},
        "failed": {"orders": "OFFSETS_LOST"},
        "left": [],
        "counts": {"appended": 10, "out_of_range": 0, "undecodable": 0},
        "advanced": {
            "customers": {
                "rows": 10,
                "ranges": {"shop.public.customers": {"0": [0, 10]}},
                "seen_through": "2023-11-14T22:13:20.123000+00:00",
                "valid_through": "2026-01-01T12:05:00+00:00",
                "valid_position": "0/1F4",
                "versions": {"bronze": 2},
                "attempts": ["20260101T000000Z-00000001"],
            }
        },
    }


def test_a_job_that_was_not_started_fails_as_its_error_says():
    error = TableError(
        "NOT_SUPPORTED_YET", ExitCode.CONFIG, "a backfill is not supported yet", "Take it out."
    )
    verdict = refused(Job.SILVER_MERGE, pipeline="shop", error=error)
    assert verdict.decision is Decision.FAIL
    assert verdict.message.splitlines() == [
        "silver_merge was not started: NOT_SUPPORTED_YET",
        "silver_merge: a backfill is not supported yet. Take it out.",
    ]
