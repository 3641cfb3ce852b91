"""The registry is away when a run meets records of a schema that it has not read yet.

The connector needs the registry too before it can write such records: it goes away right after that.
"""

from __future__ import annotations

import pytest
from driver import DAG_ID, GREEN, INGEST  # type: ignore[import-not-found]

from cdc_lakehouse.inspection.snapshot import newest_snapshot

WAITING = frozenset({"up_for_retry", "failed", "success"})


def version_of_bronze(chain) -> int:
    snapshot = newest_snapshot(chain.lake.bronze("orders"))
    assert snapshot is not None
    return snapshot.version


@pytest.fixture(scope="module")
def outage(chain):
    """The run, its ingest after the first try, and bronze's version before."""
    chain.run()
    chain.change(
        "ALTER TABLE orders ADD COLUMN channel text",
        "INSERT INTO orders VALUES (9001, 1, 'new', 10, now(), 'unseen', '2026-06-01', NULL, 'web')",
    )
    before = version_of_bronze(chain)
    chain.stack.stop("registry")
    run_id = chain.airflow.trigger(DAG_ID)
    tried = chain.airflow.wait_for_task(DAG_ID, run_id, INGEST, states=WAITING, seconds=120)
    log = chain.airflow.log(DAG_ID, run_id, INGEST, try_number=1)
    after = version_of_bronze(chain)
    chain.stack.start("registry")
    return run_id, tried, log, (before, after)


@pytest.fixture(scope="module")
def cleared(chain, outage):
    chain.airflow.clear(DAG_ID, outage[0], INGEST)
    return chain.finish(DAG_ID, outage[0])


def test_an_outage_is_tried_again_and_not_failed(outage):
    assert outage[1].state == "up_for_retry"


def test_the_log_names_the_error_and_says_what_to_do(outage):
    assert "orders REGISTRY_UNAVAILABLE" in outage[2]
    assert "Nothing was written or quarantined." in outage[2]


def test_an_outage_writes_nothing(outage):
    before, after = outage[3]

    assert after == before


def test_clearing_the_task_is_all_that_is_needed(cleared):
    assert (cleared.state, cleared.states) == ("success", GREEN)


def test_nothing_was_quarantined(chain, cleared):
    errors = chain.bronze("orders")["decode_error"]

    assert errors.null_count == len(errors)


def test_silver_equals_its_source_after_the_outage(chain, cleared):
    assert chain.differences() == []
