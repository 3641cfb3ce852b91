"""The preflight as a job: each finding reaches the report of its table, and a problem is red."""

from __future__ import annotations

from cdc_lakehouse.config.models import Table
from cdc_lakehouse.contract import ExitCode, Job, JobResult, TableStatus
from cdc_lakehouse.preflight.findings import Finding
from cdc_lakehouse.preflight.job import WHOLE, results_of

ORDERS = Table.model_validate({"name": "orders", "topics": ["shop.public.orders"]})
CUSTOMERS = Table.model_validate({"name": "clients", "topics": ["shop.public.customers"]})
FINDINGS = [
    Finding.fine("kafka", "cluster c1"),
    Finding.warning("registry", "nothing encrypts it", "Use https."),
    Finding.fine("topic shop.public.orders", "partitions 1"),
    Finding.problem(
        "source table public.customers", "it has no key", advice="Add one.", exit_code=ExitCode.DATA
    ),
    Finding.note("keys of clients", "they differ", "Look."),
    Finding.fine("topic shop.public.new", "partitions 1"),
]


def test_a_finding_is_in_the_result_of_the_table_whose_topic_or_source_table_it_names():
    results = results_of(FINDINGS, [ORDERS, CUSTOMERS])

    assert [(result.table, [each["subject"] for each in result.findings]) for result in results] == [
        (WHOLE, ["kafka", "registry", "topic shop.public.new"]),
        ("orders", ["topic shop.public.orders"]),
        ("clients", ["source table public.customers", "keys of clients"]),
    ]
    assert results[0].findings[1] == {
        "level": "warning",
        "subject": "registry",
        "sentence": "nothing encrypts it",
        "advice": "Use https.",
    }


def test_a_problem_is_red_and_warnings_are_counted_in_green():
    pipeline, orders, clients = results_of(FINDINGS, [ORDERS, CUSTOMERS])

    assert (orders.status, orders.error) == (TableStatus.VERIFIED, None)
    assert pipeline.counts == {"ok": 2, "note": 0, "warning": 1, "problem": 0}
    assert clients.error is not None
    assert (clients.error.code, clients.error.exit_code) == ("NOT_READY", ExitCode.CONFIG)
    assert clients.error.sentence == ("clients is not ready: source table public.customers: it has no key")
    green = JobResult(Job.PREFLIGHT, "shop", "a", (pipeline, orders))
    assert green.headline() == "2 of 2 tables ready"
    assert JobResult.from_json(green.to_json()).tables == green.tables
