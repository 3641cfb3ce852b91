"""The report that Airflow shows: what to press first, then a row for each table, whatever names hold."""

from __future__ import annotations

from dataclasses import replace

from cdc_lakehouse.contract import ExitCode, Job, TableError
from cdc_lakehouse.orchestration.report_text import report_text, run_report_text
from recorded_results import recorded  # type: ignore[import-not-found]

LOST = TableError("OFFSETS_LOST", ExitCode.DATA, "records are gone", "Take a snapshot.")


def test_errors_come_first_with_their_advice_and_then_all_tables():
    done = recorded(Job.BRONZE_INGEST)
    failed = replace(done.tables[0], table="lost", error=LOST)
    result = replace(done, tables=(*done.tables, failed))

    lines = report_text(result, headline="1 of 2 tables failed").splitlines()

    assert lines[:5] == [
        "## 1 of 2 tables failed",
        "",
        "**lost** `OFFSETS_LOST`: records are gone",
        "",
        "> Take a snapshot.",
    ]
    rows = [line.split(" | ")[:2] for line in lines if line.startswith("| ")]
    assert rows == [["| table", "outcome"], ["| orders", "advanced"], ["| lost", "OFFSETS_LOST"]]


def test_a_name_with_markup_stays_in_its_cell():
    result = recorded(Job.SILVER_MERGE)
    named = replace(result.tables[0], table="a|b\n# <i>`x`", error=replace(LOST, sentence="[a](b)"))

    text = report_text(replace(result, tables=(named,)), headline="x\ny")

    assert "\\[a\\](b)" in text
    assert [line for line in text.splitlines() if line.startswith("#")] == [text.splitlines()[0]]
    assert "a\\|b" in text.splitlines()[-1]


def test_the_report_of_a_run_has_a_line_for_each_task_and_the_reports_of_red_ones():
    states = {"main.bronze_ingest": "failed", "main.silver_merge": "success"}
    headlines = {"main.silver_merge": "1 of 1 tables advanced"}

    text = run_report_text(states, headlines, {"main.bronze_ingest": "## red"}, failed=["main.bronze_ingest"])

    assert text.split("\n\n") == [
        "# 1 of 2 tasks are not a success",
        "- `main.bronze_ingest` failed: see its log\n- `main.silver_merge` success: 1 of 1 tables advanced",
        "## red",
    ]
