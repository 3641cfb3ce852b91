"""A change that never reached Kafka: the run itself finds it, names the row, and is content once it came."""

from __future__ import annotations

import pytest
from driver import GREEN, MERGE, VERIFY  # type: ignore[import-not-found]

from cdc_lakehouse.contract import Job

pytestmark = pytest.mark.long
TABLE = "customers"


@pytest.fixture(scope="module")
def looked(chain):
    """The publication leaves an update out; then the first look at it."""
    chain.stack.connector.wait_until_captured()
    chain.run()
    with chain.stack.postgres.connect("shop") as connection:
        connection.autocommit = True
        connection.execute("ALTER PUBLICATION shop SET (publish = 'insert, delete, truncate')")
        connection.execute("UPDATE customers SET name = 'never sent' WHERE id = 3")
        connection.execute("ALTER PUBLICATION shop SET (publish = 'insert, update, delete, truncate')")
    chain.change("UPDATE customers SET balance = balance + 1 WHERE id = 4")
    return chain.run(), chain.report(Job.VERIFY, TABLE)


@pytest.fixture(scope="module")
def looked_again(chain, looked):
    chain.change("UPDATE customers SET balance = balance + 1 WHERE id = 4")
    return chain.run(), chain.report(Job.VERIFY, TABLE)


@pytest.fixture(scope="module")
def sent(chain, looked_again):
    chain.change("UPDATE customers SET active = NOT active WHERE id = 3")
    return chain.run(), chain.report(Job.VERIFY, TABLE)


def test_at_first_sight_it_may_be_on_its_way(looked):
    run, report = looked

    assert (run.state, run.states) == ("success", GREEN)
    assert report.word == "open"


def test_at_second_sight_the_task_is_red_and_names_the_row(looked_again):
    run, report = looked_again

    assert (run.state, run.states[MERGE], run.states[VERIFY]) == ("failed", "success", "failed")
    told = [
        (d["key"]["id"], d["kind"], d["state"], *d["columns"]) for d in report.verification["differences"]
    ]
    assert told == [("3", "changed", "different", "name")]


def test_the_log_says_what_to_do(chain, looked_again):
    run, _ = looked_again
    log = chain.airflow.log(run.dag_id, run.run_id, VERIFY, try_number=1)

    assert "SILVER_DIFFERS" in log
    assert "id=3" in log


def test_the_next_change_of_the_row_mends_it(sent):
    run, report = sent

    assert (run.state, report.word) == ("success", "equal")
