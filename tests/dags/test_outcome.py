"""What a red run says first."""

from cdc_lakehouse.orchestration.outcome import outcome_message


def test_tables_and_codes_come_first_and_then_a_line_per_task():
    message = outcome_message(
        failed={"main.bronze_ingest": "failed", "main.silver_merge": "failed"},
        summaries={
            "main.bronze_ingest": {
                "failed": {"orders": "OFFSETS_LOST"},
                "headline": "1 of 2 tables failed: …",
            },
            "main.silver_merge": {"failed": {"orders": "LEDGER_LOST"}, "headline": "1 of 2 tables failed: …"},
        },
        table_count=12,
    )
    assert message.splitlines() == [
        "1 of 12 tables failed: orders OFFSETS_LOST/LEDGER_LOST",
        "main.bronze_ingest (failed): 1 of 2 tables failed: …",
        "main.silver_merge (failed): 1 of 2 tables failed: …",
    ]


def test_a_task_that_left_no_summary_is_named():
    message = outcome_message(failed={"vacuum": "skipped"}, summaries={"vacuum": {}}, table_count=3)
    assert message.splitlines() == ["failed: vacuum", "vacuum (skipped): see its log"]
