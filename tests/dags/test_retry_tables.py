"""Tables that failed for the moment are tried again by a task of their own, and hold no other."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from fake_spark import (  # type: ignore[import-not-found]
    BROKER_AWAY,
    OFFSETS_LOST,
    call_of,
    failed,
    idle,
    ingested,
    merged,
    played,
    result,
    script,
    was_called,
)
from test_operator import Store, TaskInstance, context, operator  # type: ignore[import-not-found]

from cdc_lakehouse.config.models import Connections
from cdc_lakehouse.contract import Job
from cdc_lakehouse.orchestration.operator import RESULT_KEY, SparkJobOperator
from cdc_lakehouse.orchestration.retry_tables import RetryTablesOperator

INGEST = "main.bronze_ingest"


class Events(dict[Any, Any]):
    """What a task says of assets."""

    def __init__(self) -> None:
        self.told: dict[str, Any] = {}

    def __missing__(self, key: object) -> Events:
        return self

    def add(self, asset: Any, *, extra: Any) -> None:
        self.told[asset.name] = extra


def leaving() -> SparkJobOperator:
    found: SparkJobOperator = operator()
    found.leaves_rest = True
    return found


def retrying() -> RetryTablesOperator:
    return RetryTablesOperator(
        task_id="retry_tables", pipeline="shop", connections=Connections(), ingest=INGEST, alias="shop.main"
    )


def retry_context(left: list[str] | None, *, store: Store | None = None, conf: Any = None) -> Any:
    found = context(store=store, conf=conf)
    pulled = {} if left is None else {INGEST: {"left": left}}
    found["ti"] = TaskInstance(**{**vars(found["ti"]), "task_id": "main.retry_tables"})
    found["ti"].xcom_pull = lambda *, task_ids, key: pulled.get(task_ids) if key == RESULT_KEY else None
    found["outlet_events"] = Events()
    return found


def arguments_of(job: Job) -> list[str]:
    argv: list[str] = call_of(job)["argv"]
    return argv[argv.index("--tables") : argv.index("--tables") + 2]


def test_an_ingest_leaves_what_may_succeed_at_another_try_and_is_green():
    script(
        bronze_ingest=played(result(Job.BRONZE_INGEST, failed("orders", BROKER_AWAY), ingested("customers")))
    )

    summary = leaving().execute(context())

    assert (summary["left"], summary["failed"]) == (["orders"], {})
    assert summary["tables"] == {"orders": "BROKER_UNAVAILABLE", "customers": "advanced"}
    assert summary["headline"].endswith("tried again without holding the others: orders")


def test_an_ingest_that_failed_for_all_its_tables_is_retried_itself():
    both = (failed("orders", BROKER_AWAY), failed("customers", BROKER_AWAY))
    script(bronze_ingest=played(result(Job.BRONZE_INGEST, *both)))

    with pytest.raises(AirflowException) as caught:
        leaving().execute(context())

    assert not isinstance(caught.value, AirflowFailException)


def test_a_table_that_needs_a_person_makes_it_red_at_once_and_the_other_is_still_left():
    three = (failed("orders", BROKER_AWAY), failed("customers", OFFSETS_LOST), ingested("clicks"))
    script(bronze_ingest=played(result(Job.BRONZE_INGEST, *three)))
    told = context()

    with pytest.raises(AirflowFailException):
        leaving().execute(told)

    pushed = told["ti"].pushed[RESULT_KEY]
    assert (pushed["left"], pushed["failed"]) == (["orders"], {"customers": "OFFSETS_LOST"})


def test_an_ingest_that_was_killed_leaves_nothing_and_is_retried():
    both = result(Job.BRONZE_INGEST, failed("orders", BROKER_AWAY), ingested("customers"))
    script(bronze_ingest=played(both, exit=137))

    with pytest.raises(AirflowException):
        leaving().execute(context())


@pytest.mark.parametrize("left", [[], None])
def test_where_nothing_was_left_nothing_is_started(left):
    script()

    retrying().execute(retry_context(left))

    assert not was_called(Job.BRONZE_INGEST)


def test_the_tables_that_were_left_are_read_merged_and_announced():
    script(
        bronze_ingest=played(result(Job.BRONZE_INGEST, ingested("orders"))),
        silver_merge=played(result(Job.SILVER_MERGE, merged("orders"))),
    )
    told = retry_context(["orders"])

    retrying().execute(told)

    assert arguments_of(Job.BRONZE_INGEST) == ["--tables", "orders"]
    assert arguments_of(Job.SILVER_MERGE) == ["--tables", "orders"]
    assert set(told["outlet_events"].told) == {"shop.bronze.orders", "shop.silver.orders"}


def test_a_merge_gets_no_connection_that_only_an_ingest_needs():
    script(
        bronze_ingest=played(result(Job.BRONZE_INGEST, ingested("orders"))),
        silver_merge=played(result(Job.SILVER_MERGE, merged("orders"))),
    )

    retrying().execute(retry_context(["orders"]))

    known = {name for name in call_of(Job.SILVER_MERGE)["environ"] if name.startswith("CDC_LAKEHOUSE_CONN_")}
    assert known == {"CDC_LAKEHOUSE_CONN_STORAGE"}


def test_tables_that_still_fail_are_retried_and_the_others_merged_meanwhile():
    script(
        bronze_ingest=played(result(Job.BRONZE_INGEST, failed("orders", BROKER_AWAY), ingested("customers"))),
        silver_merge=played(result(Job.SILVER_MERGE, merged("customers"))),
    )
    told = retry_context(["orders", "customers"])

    with pytest.raises(AirflowException) as caught:
        retrying().execute(told)

    assert not isinstance(caught.value, AirflowFailException)
    assert str(caught.value).splitlines()[0] == "1 of 2 tables failed: orders BROKER_UNAVAILABLE"
    assert arguments_of(Job.SILVER_MERGE) == ["--tables", "customers"]
    assert told["ti"].pushed[RESULT_KEY]["failed"] == {"orders": "BROKER_UNAVAILABLE"}


def test_what_an_earlier_try_advanced_is_announced_by_the_one_that_succeeds():
    store = Store()
    script(
        bronze_ingest=played(result(Job.BRONZE_INGEST, failed("orders", BROKER_AWAY), ingested("customers"))),
        silver_merge=played(result(Job.SILVER_MERGE, merged("customers"))),
    )
    with pytest.raises(AirflowException):
        retrying().execute(retry_context(["orders", "customers"], store=store))
    script(
        bronze_ingest=played(result(Job.BRONZE_INGEST, ingested("orders"), idle("customers"), attempt="b")),
        silver_merge=played(result(Job.SILVER_MERGE, merged("orders"), idle("customers"), attempt="b")),
    )
    told = retry_context(["orders", "customers"], store=store)

    retrying().execute(told)

    assert set(told["outlet_events"].told) == {
        f"shop.{layer}.{table}" for layer in ("bronze", "silver") for table in ("orders", "customers")
    }


def test_a_merge_that_needs_a_person_makes_it_red_at_once():
    script(
        bronze_ingest=played(result(Job.BRONZE_INGEST, ingested("orders"))),
        silver_merge=played(result(Job.SILVER_MERGE, failed("orders", OFFSETS_LOST))),
    )

    with pytest.raises(AirflowFailException, match="orders OFFSETS_LOST"):
        retrying().execute(retry_context(["orders"]))


def test_a_decision_about_a_table_that_was_left_reaches_its_next_try():
    script(
        bronze_ingest=played(result(Job.BRONZE_INGEST, ingested("orders"))),
        silver_merge=played(result(Job.SILVER_MERGE, merged("orders"))),
    )
    conf = {"fill_gaps": ["orders", "customers"]}

    retrying().execute(retry_context(["orders"], conf=conf))

    argv = call_of(Job.BRONZE_INGEST)["argv"]
    assert [argv[i + 1] for i, word in enumerate(argv) if word == "--fill-gaps"] == ["orders"]
