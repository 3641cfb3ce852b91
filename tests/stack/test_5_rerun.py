"""Runs that are done again: taken over by backfills, cleared, beside each other, and killed in the middle."""

from __future__ import annotations

import os
import re
import signal
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import httpx
import psutil
import pytest
from confluent_kafka import OFFSET_END, TopicPartition
from confluent_kafka.admin import AdminClient
from driver import DAG_ID, GREEN, INGEST, MERGE, rows  # type: ignore[import-not-found]

from cdc_lakehouse.contract import Job
from cdc_lakehouse.lake.snapshot import newest_snapshot
from cdc_lakehouse.lake.state import read_state
from local_stack.process import wait_until

MAINTENANCE = "cdc_shop_maintenance"
pytestmark = [pytest.mark.timeout(1800), pytest.mark.long]
LONG = 1200.0
"""Seconds that runs beside each other may take on a busy machine."""
QUARTER = timedelta(minutes=15)
TOPIC = "shop.public.customers"
WHOLE = ["orders", "vouchers"]
"""Tables that Kafka has lost nothing of: an interval of the others is red."""


@pytest.fixture(scope="module")
def morning() -> datetime:
    """The begin of a quarter of an hour, some hours ago, of which no run has been made."""
    now = datetime.now(UTC)
    return now.replace(minute=now.minute // 15 * 15, second=0, microsecond=0) - timedelta(hours=6)


def gaps(chain) -> dict[str, dict[int, tuple[tuple[int, int], ...]]]:
    state = read_state(chain.lake.bronze("customers"), table="customers")
    assert state is not None
    assert state.ledger is not None
    return state.ledger.gaps()


def versions(chain) -> list[int]:
    tables = ("customers", "orders", "vouchers")
    found = [
        newest_snapshot(uri)
        for table in tables
        for uri in (chain.lake.bronze(table), chain.lake.silver(table))
    ]
    return [each.version for each in found if each is not None]


@pytest.fixture(scope="module")
def drained(chain):
    """A run that has read all there was."""
    chain.stack.connector.wait_until_captured()
    return chain.run()


@pytest.fixture(scope="module")
def accepted(chain, drained, morning):
    """A manual run of the morning whose form gave up a record that Kafka had lost; it is green."""
    chain.change("UPDATE customers SET name = 'lost' WHERE id = 2")
    admin = AdminClient(chain.stack.kafka.client_settings())
    for future in admin.delete_records([TopicPartition(TOPIC, 0, OFFSET_END)]).values():
        future.result(10)
    chain.change("UPDATE customers SET name = 'kept' WHERE id = 2")
    refused = chain.run()
    said = chain.airflow.log(DAG_ID, refused.run_id, INGEST, try_number=1)
    value = re.search(r"accept_gap:\s+`([^`]+)`", said)
    assert value is not None, said
    run_id = chain.airflow.trigger(DAG_ID, conf={"accept_gap": [value[1]]}, logical_date=morning)
    return chain.finish(DAG_ID, run_id)


@pytest.fixture(scope="module")
def taken_over(chain, accepted, morning):
    """The same run, taken over by a backfill of all runs, behind a change that no run has read."""
    chain.change("INSERT INTO vouchers VALUES ('TAKEN', 1, NULL)")
    run_ids = chain.airflow.backfill(
        DAG_ID, from_date=morning, to_date=morning, reprocess="completed", max_active_runs=10, backwards=True
    )
    assert run_ids == [accepted.run_id]
    run = chain.finish(DAG_ID, accepted.run_id)
    return run, chain.report(Job.BRONZE_INGEST, "customers")


@pytest.fixture(scope="module")
def cleared_twice(chain, taken_over):
    """Its merge is cleared, then its ingest while another run drains a change; with the reports of these."""
    run_id = taken_over[0].run_id
    chain.airflow.clear(DAG_ID, run_id, MERGE)
    runs = [chain.finish(DAG_ID, run_id)]
    reports = [chain.airflow.xcom(DAG_ID, run_id, MERGE, key="report")]
    chain.change("INSERT INTO vouchers VALUES ('BESIDE', 1, NULL)")
    other = chain.airflow.trigger(DAG_ID)
    chain.airflow.clear(DAG_ID, run_id, INGEST)
    # A merge that the other run has overtaken is tried again after minutes.
    runs += [chain.finish(DAG_ID, each, seconds=LONG) for each in (run_id, other)]
    reports.append(chain.airflow.xcom(DAG_ID, run_id, INGEST, key="report"))
    return runs, reports


def test_a_green_run_that_a_backfill_takes_over_drains_and_completes_its_interval(
    chain, accepted, taken_over
):
    run, ingested = taken_over
    vouchers = rows(chain.silver("vouchers"), ("code",), lambda row: row["code"] == "TAKEN")

    assert (accepted.state, accepted.states) == ("success", GREEN)
    assert (chain.airflow.run_type(DAG_ID, run.run_id), run.state, run.states) == (
        "backfill",
        "success",
        GREEN,
    )
    assert (vouchers, ingested.decisions["interval"]["recompute"]) == ([("TAKEN",)], "changed")


def test_a_decision_of_its_form_is_not_carried_out_twice(chain, taken_over, cleared_twice):
    ((gap,),) = (partitions.values() for partitions in gaps(chain).values())

    assert (len(gap), gap[0][1] - gap[0][0]) == (1, 1)
    assert "accept_gap" not in taken_over[1].decisions


def test_a_run_that_is_cleared_twice_beside_another_one_is_green(chain, cleared_twice):
    runs, reports = cleared_twice

    assert [(run.state, run.states) for run in runs] == [("success", GREEN)] * 3
    assert ["\n\nTry 3 did " in reports[0], "\n\nTry 3 did " in reports[1]] == [True, True]
    assert chain.differences() == []


@pytest.fixture(scope="module")
def beside(chain, drained, morning):
    """Two backfill runs, each over all of the last hours, beside a drain and maintenance."""
    now = datetime.now(UTC)
    span = {"from_time": (now - timedelta(hours=6)).isoformat(), "until_time": now.isoformat()}
    conf = {**span, "tables": WHOLE}
    dates = {"from_date": morning + QUARTER, "to_date": morning + 2 * QUARTER}
    assert wait_until(lambda: not chain.airflow.open_backfills(DAG_ID), 120)
    chain.change("INSERT INTO vouchers VALUES ('RUNS', 1, NULL)")
    run_ids = chain.airflow.backfill(DAG_ID, **dates, max_active_runs=10, backwards=True, conf=conf)
    with pytest.raises(httpx.HTTPStatusError) as refused:
        chain.airflow.backfill(DAG_ID, **dates)
    others = [(DAG_ID, chain.airflow.trigger(DAG_ID)), (MAINTENANCE, chain.airflow.trigger(MAINTENANCE))]
    started = [*((DAG_ID, run_id) for run_id in run_ids), *others]
    runs = [chain.finish(*run, seconds=LONG) for run in started]
    return runs, refused.value.response.status_code


def test_runs_of_a_backfill_beside_the_schedule_and_maintenance_are_green_and_right(chain, beside):
    assert [run.state for run in beside[0]] == ["success"] * 4
    assert chain.differences() == []


def test_a_second_backfill_beside_a_running_one_is_refused(beside):
    assert beside[1] == httpx.codes.CONFLICT


def test_runs_of_a_cancelled_backfill_are_taken_over_by_the_next(chain, drained, morning):
    span = {"from_date": morning + 4 * QUARTER, "to_date": morning + 5 * QUARTER}
    first = chain.airflow.backfill(DAG_ID, **span)
    chain.airflow.cancel_backfill(DAG_ID)
    assert wait_until(lambda: not set(chain.airflow.open_runs(DAG_ID)) & set(first), 120)

    again = chain.airflow.backfill(DAG_ID, **span, reprocess="failed", max_active_runs=10)
    runs = [chain.finish(DAG_ID, run_id) for run_id in again]

    assert sorted(again) == sorted(first)
    assert [run.state for run in runs] == ["success"] * 2


@pytest.mark.parametrize(
    ("conf", "sentence"),
    [
        ({"from_time": "2026-02-02", "until_time": "2026-02-01"}, "it ends before it begins"),
        ({"tables": ["nope"]}, "nope"),
    ],
    ids=["inverted", "unknown table"],
)
def test_a_form_that_means_nothing_is_refused_with_a_sentence_and_changes_nothing(
    chain, drained, conf, sentence
):
    before = versions(chain)
    run = chain.finish(DAG_ID, chain.airflow.trigger(DAG_ID, conf=conf))
    said = chain.airflow.xcom(DAG_ID, run.run_id, INGEST, key="report")

    assert (run.state, run.states[INGEST]) == ("failed", "failed")
    assert sentence in said
    assert versions(chain) == before


def spark_of(job: Job) -> psutil.Process | None:
    """Return the JVM that runs a job."""
    for process in psutil.process_iter(["name", "cmdline"]):
        line = process.info["cmdline"] or ()
        if process.info["name"] == "java" and any(part.endswith(f"{job}.py") for part in line):
            return process
    return None


def kill_in_merge(chain, *, generation: int, but: int | None = None) -> int:
    """Kill the JVM of the merge that runs now, or an ancestor of it; return which JVM it was."""

    def is_new() -> bool:
        jvm = spark_of(Job.SILVER_MERGE)
        return jvm is not None and jvm.pid != but

    assert wait_until(is_new, 240)
    jvm = spark_of(Job.SILVER_MERGE)
    assert jvm is not None
    os.kill([jvm, *jvm.parents()][generation].pid, signal.SIGKILL)
    return int(jvm.pid)


JVM, SUPERVISOR = 0, 2
"""Generations above the JVM: it is the child of a task, whose parent is the task's supervisor."""


def test_a_merge_that_is_killed_with_its_jvm_and_then_with_its_supervisor_heals(chain, drained):
    chain.change("INSERT INTO vouchers VALUES ('KILLED', 1, NULL)")
    now = datetime.now(UTC)
    run_id = chain.airflow.trigger(DAG_ID, interval=(now - timedelta(hours=6), now), conf={"tables": WHOLE})
    first = kill_in_merge(chain, generation=JVM)
    kill_in_merge(chain, generation=SUPERVISOR, but=first)

    run = chain.finish(DAG_ID, run_id, seconds=LONG)
    chain.run()

    assert (run.state, run.states) == ("success", GREEN)
    assert chain.differences() == []


SCHEDULER = "airflow-scheduler"


def wait_for_merge() -> None:
    assert wait_until(lambda: spark_of(Job.SILVER_MERGE) is not None, 240)


def test_a_run_whose_scheduler_is_killed_amid_the_merge_ends_green(chain, drained):
    chain.change("INSERT INTO vouchers VALUES ('NO SCHEDULER', 1, NULL)")
    run_id = chain.airflow.trigger(DAG_ID)
    wait_for_merge()
    keeper = psutil.Process(chain.stack.state.processes[SCHEDULER].pid)
    (scheduler,) = keeper.children()
    scheduler.kill()

    run = chain.finish(DAG_ID, run_id, seconds=LONG)

    assert (run.state, run.states) == ("success", GREEN)
    assert keeper.children() != [scheduler]
    assert chain.differences() == []


def test_a_run_during_which_all_processes_of_the_machine_are_killed_ends_green(chain, drained):
    chain.change("INSERT INTO vouchers VALUES ('NO POWER', 1, NULL)")
    run_id = chain.airflow.trigger(DAG_ID)
    wait_for_merge()
    records = chain.stack.state.processes
    keepers = [psutil.Process(record.pid) for record in records.values()]
    for process in [*keepers, *(child for keeper in keepers for child in keeper.children(recursive=True))]:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    assert wait_until(lambda: spark_of(Job.SILVER_MERGE) is None, 60)
    chain.stack.start()

    run = chain.finish(DAG_ID, run_id, seconds=LONG)

    assert (run.state, run.states) == ("success", GREEN)
    assert chain.differences() == []


@pytest.fixture(scope="module")
def scheduled(chain, drained):
    """The newest run that the schedule made, which is green, taken over by a backfill and then cleared."""
    assert wait_until(lambda: bool(chain.airflow.scheduled_runs(DAG_ID)), QUARTER.total_seconds() + 60)
    run_id, logical_date = next(iter(chain.airflow.scheduled_runs(DAG_ID).items()))
    first = chain.finish(DAG_ID, run_id)
    chain.change("INSERT INTO vouchers VALUES ('SCHEDULED', 1, NULL)")
    chain.airflow.backfill(DAG_ID, from_date=logical_date, to_date=logical_date, reprocess="completed")
    taken_over = chain.finish(DAG_ID, run_id)
    chain.airflow.clear(DAG_ID, run_id, INGEST)
    return first, taken_over, chain.finish(DAG_ID, run_id)


def test_a_run_of_the_schedule_that_a_backfill_took_over_still_drains_and_is_green_when_cleared(
    chain, scheduled
):
    vouchers = rows(chain.silver("vouchers"), ("code",), lambda row: row["code"] == "SCHEDULED")

    assert [(run.state, run.states) for run in scheduled] == [("success", GREEN)] * 3
    assert (chain.airflow.run_type(DAG_ID, scheduled[0].run_id), vouchers) == ("backfill", [("SCHEDULED",)])
    assert chain.differences() == []
