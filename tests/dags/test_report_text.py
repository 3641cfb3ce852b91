"""The report that Airflow shows: what to press first, then a row for each table, whatever names hold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lakehouse.contract import ExitCode, Job, TableError, TableStatus
from cdc_lakehouse.orchestration.report_text import report_text, run_report_text, with_tries
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


def test_a_dry_run_of_maintenance_says_what_it_would_do():
    result = recorded(Job.VACUUM)
    facts = {"silver/shop/orders": {"kind": "lite"}}
    done = replace(result.tables[0], maintenance=facts)
    planned = replace(done, status=TableStatus.PLANNED)

    text = report_text(replace(result, tables=(planned,)), headline="dry run: 1 of 1 tables have work")

    assert text.splitlines()[-1] == "- silver/shop/orders: kind lite"
    assert "kind lite" not in report_text(replace(result, tables=(done,)), headline="done")


def test_the_report_says_for_how_many_nights_a_table_was_skipped():
    result = recorded(Job.OPTIMIZE)
    skipped = {"reason": "5 files", "commits": 0, "conflict_nights": 2}
    table = replace(result.tables[0], maintenance={"silver/shop/orders": skipped})

    text = report_text(replace(result, tables=(table,)), headline="1 skipped")

    assert text.splitlines()[-1] == "- silver/shop/orders: reason 5 files, conflict_nights 2"


def test_the_report_of_a_run_has_a_line_for_each_task_and_the_reports_of_red_ones():
    states = {"main.bronze_ingest": "failed", "main.silver_merge": "success"}
    headlines = {"main.silver_merge": "1 of 1 tables advanced"}

    text = run_report_text(states, headlines, {"main.bronze_ingest": "## red"}, failed=["main.bronze_ingest"])

    assert text.split("\n\n") == [
        "# 1 of 2 tasks are not a success",
        "- `main.bronze_ingest` failed: see its log\n- `main.silver_merge` success: 1 of 1 tables advanced",
        "## red",
    ]


@pytest.mark.parametrize(
    ("earlier", "now", "sentence"),
    [
        ([], [], "Try 3 did nothing, and no earlier one did."),
        (["orders"], [], "Try 3 did nothing; earlier tries moved orders."),
        (["orders"], ["customers"], "Try 3 did the rest: customers; earlier tries moved orders."),
        ([], ["orders", "customers"], "Try 3 did everything: customers, orders."),
    ],
    ids=["nothing at all", "nothing", "the rest", "all"],
)
def test_the_report_of_a_later_try_says_what_it_did_itself(earlier, now, sentence):
    report = with_tries("## headline\n\n| table |", try_number=3, earlier=earlier, now=now)

    assert report == f"## headline\n\n| table |\n\n{sentence}"


def test_the_report_of_a_first_try_says_nothing_of_tries():
    assert with_tries("## headline\n\nall", try_number=1, earlier=[], now=["orders"]) == "## headline\n\nall"
