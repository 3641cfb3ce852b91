"""Somebody creates a table in PostgreSQL and does nothing else; and runs that find nothing at all."""

from __future__ import annotations

import pytest
from driver import GREEN, INGEST, MERGE, rows  # type: ignore[import-not-found]

from cdc_lakehouse.contract import Job
from cdc_lakehouse.lake.reports import newest_results
from local_stack.proof import compare_pipeline


@pytest.fixture(scope="module")
def created(chain):
    chain.change(
        "CREATE TABLE gift_cards (id int PRIMARY KEY, amount numeric(8,2) NOT NULL, note text)",
        "INSERT INTO gift_cards VALUES (1, 25.00, NULL), (2, 50.00, 'Oma'), (3, 10.00, '')",
        "UPDATE gift_cards SET amount = 12.34 WHERE id = 1",
        "DELETE FROM gift_cards WHERE id = 3",
    )
    return chain.run()


@pytest.fixture(scope="module")
def nothing_new(chain, created):
    return chain.run()


def test_a_run_after_create_table_is_green_and_its_tasks_are_the_same(created):
    assert (created.state, created.states) == ("success", GREEN)


def test_a_table_that_nobody_listed_equals_its_source_in_silver(chain, created):
    (found,) = [each for each in compare_pipeline(chain.stack) if each.table == "gift_cards"]

    assert (found.source_rows, found.sentence()) == (
        2,
        f"gift_cards is equal: 2 rows, checksum {found.source_checksum}",
    )
    assert rows(chain.silver("gift_cards"), ("id", "note"), lambda row: row["id"] == 2) == [(2, "Oma")]


def test_the_signal_table_and_other_control_topics_became_no_tables(chain, created):
    newest = next(result for result in newest_results(chain.lake) if result.job is Job.BRONZE_INGEST)

    assert {table.table for table in newest.tables} == {
        *("customers", "orders", "order_lines", "products", "vouchers", "gift_cards")
    }


def test_a_run_without_news_is_green_and_starts_no_jvm(chain, nothing_new):
    of_this_run = [line for line in chain.command_lines if nothing_new.run_id in line]

    assert (nothing_new.state, nothing_new.states) == ("success", GREEN)
    assert [line for line in of_this_run if "java" in line or "SparkSubmit" in line] == []


def test_a_run_without_news_keeps_its_reports(chain, nothing_new):
    newest = [
        result for result in newest_results(chain.lake) if result.job in (Job.BRONZE_INGEST, Job.SILVER_MERGE)
    ]

    for result in newest[:2]:
        print(result.job, result.seconds)
    assert [{table.status for table in result.tables} for result in newest[:2]] == [{"idle"}, {"idle"}]
    assert {INGEST, MERGE} < nothing_new.states.keys()
