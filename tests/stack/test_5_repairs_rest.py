"""Every kind of repair through Airflow's REST API: planned, answered, carried out, verified, on real tables.

Each has a table of its own. One run of the pipeline, in the end and beside a repair, takes them all further.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from backlogs import fill, make_topic, one_record, register_like, run_job  # type: ignore[import-not-found]
from confluent_kafka.admin import AdminClient
from driver import DAG_ID, GREEN, MERGE, Run, rows  # type: ignore[import-not-found]
from repair_runs import ANSWERED, RepairRun, dag_of  # type: ignore[import-not-found]

from cdc_lakehouse.contract import Job
from cdc_lakehouse.lake.quarantine import listed_cases, name_of_cases
from cdc_lakehouse.lake.rows import read_rows
from cdc_lakehouse.lake.snapshot import newest_snapshot
from cdc_lakehouse.preflight.job import WHOLE

pytestmark = [pytest.mark.timeout(3600), pytest.mark.long]

ALL_GREEN = dict.fromkeys(("plan", "approve", "act", "verify", "outcome"), "success")
REFUSED = {**ALL_GREEN, "act": "failed", "verify": "upstream_failed", "outcome": "failed"}
SECRET = "555-0100"
"""A telephone number, which only order 1 has."""
LEFT = "leftover"
"""A table of the lake that the pipeline file does not have any more."""
PUBLISH = "ALTER PUBLICATION shop SET (publish = '{}')"


def version_of(uri: str) -> int:
    snapshot = newest_snapshot(uri)
    assert snapshot is not None
    return snapshot.version


def open_cases(chain, table: str) -> list[Any]:
    return [case for case in listed_cases(chain.lake.bronze(table)) if case.closed is None]


def read_a_table_that_is_taken_out(chain, folder: Path) -> None:
    """Read `leftover` by a pipeline file that has it, and the newest voucher into bronze alone."""
    topic = f"old.public.{LEFT}"
    make_topic(chain.stack, topic)
    register_like(chain.stack, topic, like="shop.public.vouchers")
    key, value = one_record(chain.stack, "shop.public.vouchers")
    fill(chain.stack, topic, key=key, value=value, counts={0: 1})
    shutil.copy(Path(__file__).parents[2] / "include/pipelines/shop.yaml", folder)
    with (folder / "shop.yaml").open("a") as file:
        file.write(f"  - name: {LEFT}\n    topics: [{topic}]\n")
    for job, tables in ((Job.BRONZE_INGEST, f"{LEFT},vouchers"), (Job.SILVER_MERGE, LEFT)):
        result, log = run_job(chain.stack, folder, job, pipeline="shop", options=["--tables", tables])
        assert result.failed == (), log[-3000:]


def lose(chain, *statements: str) -> None:
    """Change the source while the publication sends none of it."""
    with chain.stack.postgres.connect("shop") as connection:
        connection.autocommit = True
        connection.execute(PUBLISH.format("truncate"))
        for statement in statements:
            connection.execute(statement)
        connection.execute(PUBLISH.format("insert, update, delete, truncate"))
    chain.stack.connector.wait_until_captured()


def change_all(chain) -> dict[str, int]:
    """Change every table in two runs; return versions of the tables to rewind from between the two."""
    chain.change(
        "CREATE TABLE parcels (id int PRIMARY KEY, weight int NOT NULL)",
        "INSERT INTO parcels VALUES (1, 10), (2, 20)",
        "CREATE TABLE kiosks (id int PRIMARY KEY)",
        "INSERT INTO kiosks VALUES (1)",
        f"UPDATE orders SET note = 'call {SECRET}' WHERE id = 1",
    )
    assert chain.run().state == "success"
    versions = {
        "products": version_of(chain.lake.silver("products")),
        "order_lines": version_of(chain.lake.bronze("order_lines")),
    }
    chain.change(
        "UPDATE products SET name = 'renamed' WHERE id = 1",
        "UPDATE order_lines SET quantity = 99 WHERE order_id IN (2, 3) AND line_no = 1",
        "DELETE FROM orders WHERE id = 1",
        "UPDATE orders SET total = total + 1",
        "UPDATE customers SET active = NOT active",
    )
    for table, count in (("orders", 1), ("customers", 2)):
        topic = f"shop.public.{table}"
        key, _ = one_record(chain.stack, topic)
        fill(chain.stack, topic, key=key, value=f"broken {SECRET}".encode(), counts={0: count})
    assert chain.run().state == "success"
    return versions


def lose_what_the_source_has(chain) -> None:
    """Change `parcels` unseen by Kafka, and drop `kiosks` there and at the source."""
    chain.change("DROP TABLE kiosks")
    lose(
        chain,
        "UPDATE parcels SET weight = 21 WHERE id = 2",
        "DELETE FROM parcels WHERE id = 1",
        "INSERT INTO parcels VALUES (3, 30)",
    )
    admin = AdminClient(chain.stack.kafka.client_settings())
    for future in admin.delete_topics(["shop.public.kiosks"]).values():
        future.result(30)


def layers_with(text: str, chain, table: str) -> dict[str, bool]:
    """Return of each layer of a table whether a value of it holds the text."""
    layers = {
        "bronze": chain.bronze(table),
        "silver": chain.silver(table),
        "history": chain.silver(f"{table}__history"),
    }
    return {name: text in str(layer.to_pylist()) for name, layer in layers.items()}


def look(chain) -> dict[str, Any]:
    """Return what the repairs are about."""
    return {
        "name of product 1": rows(chain.silver("products"), ("name",), lambda row: row["id"] == 1),
        "offsets of order_lines": set(chain.bronze("order_lines")["offset"].to_pylist()),
        "open cases of customers": [case.offset for case in open_cases(chain, "customers")],
        "open cases of orders": len(open_cases(chain, "orders")),
        "layers with the number": layers_with(SECRET, chain, "orders"),
        "parcels": sorted(rows(chain.silver("parcels"), ("id", "weight"), lambda _: True)),
    }


@dataclass(frozen=True)
class Repairs:
    """Repairs that went beside each other, one for each table."""

    by_table: Mapping[str, RepairRun]
    questions: Mapping[str, str]
    runs: Mapping[str, Run]
    before: Mapping[str, Any]
    """As `look` returned it."""
    after: Mapping[str, Any]

    def effects(self, table: str) -> Mapping[str, int]:
        effects: Mapping[str, int] = self.by_table[table].record().plan.effects
        return effects


@pytest.fixture(scope="module")
def repairs(chain, tmp_path_factory) -> Repairs:
    """All are planned, then all are approved."""
    for job in (Job.REWIND, Job.QUARANTINE_REPAIR, Job.RETIRE, Job.ERASE, Job.RESYNC, Job.PREFLIGHT):
        chain.airflow.wait_for_dag(dag_of(job))
    versions = change_all(chain)
    chain.change("INSERT INTO vouchers VALUES ('BEHIND', 1, NULL)")
    read_a_table_that_is_taken_out(chain, tmp_path_factory.mktemp("pipelines"))
    lose_what_the_source_has(chain)
    cases = name_of_cases("bad_frame", open_cases(chain, "customers"))
    asked: dict[str, tuple[Job, dict[str, Any]]] = {
        "products": (Job.REWIND, {"to_version": str(versions["products"])}),
        "order_lines": (Job.REWIND, {"layer": "bronze", "to_version": str(versions["order_lines"])}),
        "customers": (Job.QUARANTINE_REPAIR, {"do": "close", "cases": [f"customers={cases}"]}),
        "orders": (Job.ERASE, {"keys": ['{"id": 1}']}),
        "parcels": (Job.RESYNC, {}),
        "kiosks": (Job.RETIRE, {"what": "keep"}),
    }
    before = look(chain)
    by_table = {
        table: RepairRun.trigger(chain, job, table, **options) for table, (job, options) in asked.items()
    }
    questions = {table: repair.read_question() for table, repair in by_table.items()}
    for table, repair in by_table.items():
        repair.answer("Approve", confirm=table)
    runs = {table: repair.finish() for table, repair in by_table.items()}
    return Repairs(by_table, questions, runs, before, look(chain))


@pytest.mark.parametrize("table", ["products", "order_lines", "customers", "orders", "parcels", "kiosks"])
def test_an_approved_repair_is_carried_out_and_verified_beside_others(repairs, table):
    assert (repairs.runs[table].state, repairs.runs[table].states) == ("success", ALL_GREEN)


def test_the_record_names_who_asked_and_why_and_who_approved(repairs):
    record = repairs.by_table["products"].record()

    assert (record.planned["user"], record.planned["note"]) == ("admin", "ticket 7")
    assert (record.approved["user"], record.is_done) == ("oncall", True)


def test_silver_goes_back_to_the_version_that_the_form_named(repairs):
    assert "rows changed: 1" in repairs.questions["products"]
    assert repairs.before["name of product 1"] == [("renamed",)]
    assert repairs.after["name of product 1"] == [("Product 1",)]


def test_bronze_goes_back_with_its_offsets(repairs):
    before, after = (state["offsets of order_lines"] for state in (repairs.before, repairs.after))
    effects = repairs.effects("order_lines")

    assert (len(before - after), after - before) == (2, set())
    assert (effects["offsets_read_again"], effects["offsets_lost"]) == (2, 0)


def test_erased_keys_are_gone_in_every_layer_and_in_quarantine(chain, repairs):
    before, after = repairs.before, repairs.after
    effects = repairs.effects("orders")

    assert before["layers with the number"] == {"bronze": True, "silver": False, "history": True}
    assert after["layers with the number"] == {"bronze": False, "silver": False, "history": False}
    assert (before["open cases of orders"], after["open cases of orders"]) == (1, 0)
    assert (effects["keys_named"], effects["quarantined_records"]) == (1, 1)
    assert rows(chain.silver("orders__history"), ("id",), lambda row: row["id"] == 1) == []


def test_a_table_with_lost_changes_is_equal_to_its_source_after_a_resync(repairs):
    assert (repairs.before["parcels"], repairs.after["parcels"]) == ([(1, 10), (2, 20)], [(2, 21), (3, 30)])
    assert repairs.effects("parcels") == {
        "rows_sent": 2,
        "rows_added": 1,
        "rows_changed": 1,
        "rows_removed": 1,
    }
    assert "silver beside its source: equal" in repairs.by_table["parcels"].report("verify")


@pytest.fixture(scope="module")
def reopened(chain, repairs):
    """One of the two cases that were closed."""
    offset = repairs.before["open cases of customers"][0]
    case = f"customers=shop.public.customers/0@{offset}"
    run = RepairRun.trigger(chain, Job.QUARANTINE_REPAIR, "customers", do="reopen", cases=[case]).carry_out()
    return run, offset, [case.offset for case in open_cases(chain, "customers")]


def test_cases_are_closed_and_one_of_them_is_reopened(repairs, reopened):
    run, offset, left = reopened

    assert len(repairs.before["open cases of customers"]) == 2
    assert repairs.after["open cases of customers"] == []
    assert (run.state, run.states, left) == ("success", ALL_GREEN, [offset])


@pytest.fixture(scope="module")
def archived_and_back(chain, reopened):
    """The table's rows before, its folders in the archive, and its rows after the archiving is undone."""
    whole = chain.bronze(LEFT).to_pylist(), chain.silver(LEFT).to_pylist()
    archiving = RepairRun.trigger(chain, Job.RETIRE, LEFT, what="archive")
    runs = [archiving.carry_out()]
    archive = Path(urlsplit(chain.lake.archive(LEFT)).path) / archiving.digest()
    folders = sorted(folder.name for folder in archive.iterdir())
    gone = read_rows(chain.lake.bronze(LEFT)), read_rows(chain.lake.silver(LEFT))
    runs.append(RepairRun.trigger(chain, Job.RETIRE, LEFT, undo=archiving.digest()).carry_out())
    return runs, (folders, gone), whole


def test_an_archived_table_is_no_table_and_comes_back(chain, archived_and_back):
    runs, (folders, gone), whole = archived_and_back

    assert [(run.state, run.states) for run in runs] == [("success", ALL_GREEN)] * 2
    assert (folders, gone) == (["bronze", "silver", "tombstones"], (None, None))
    assert (chain.bronze(LEFT).to_pylist(), chain.silver(LEFT).to_pylist()) == whole


def test_a_preflight_reports_what_it_found_of_everything(chain, repairs):
    run = chain.run(dag_of(Job.PREFLIGHT))
    whole = chain.report(Job.PREFLIGHT, WHOLE)

    assert (run.state, run.states) == ("success", {"preflight": "success"})
    assert {finding["level"] for finding in whole.findings} == {"ok", "note"}
    assert "source" in {finding["subject"] for finding in whole.findings}


@dataclass(frozen=True)
class TwoRebuilds:
    """What became of two rebuilds of one table that waited at the same time."""

    first: RepairRun
    second: RepairRun
    viewer_status: int
    outdated: tuple[Run, str]
    """An answer about a plan that was made again, and why it was refused."""
    asked_again: tuple[Run, str]
    """The same run, whose `approve` was cleared."""
    misnamed: tuple[Run, str]
    carried_out: Run
    beside: Run
    """The run of the pipeline beside it."""


def refused_answer(rebuild: RepairRun, **answer: Any) -> tuple[Run, str]:
    """Answer in a way that `approve` refuses; return the run, and the reason in the log of that try."""
    rebuild.answer("Approve", **answer)
    return rebuild.finish(), log_of_approve(rebuild)


def log_of_approve(rebuild: RepairRun) -> str:
    """Return the log of the newest try."""
    airflow, task = rebuild.chain.airflow, (rebuild.dag_id, rebuild.run_id, "approve")
    text: str = airflow.log(*task, try_number=airflow.task(*task).try_number)
    return text


@pytest.fixture(scope="module")
def two_rebuilds(chain, archived_and_back) -> TwoRebuilds:
    first, second = (RepairRun.trigger(chain, Job.REBUILD, "vouchers") for _ in range(2))
    first.read_question()
    second.read_question()
    with pytest.raises(httpx.HTTPStatusError) as forbidden:
        second.answer("Approve", confirm="vouchers", user="viewer")
    old_form = second.shown_plan()
    second.clear("plan", downstream=False)
    plan = chain.airflow.wait_for_task(
        second.dag_id, second.run_id, "plan", states=frozenset({"success", "failed"}), seconds=ANSWERED
    )
    assert plan.state == "success"
    outdated = refused_answer(second, confirm="vouchers", plan=old_form)
    second.clear("approve")
    asked_again = second.finish(), log_of_approve(second)
    second = RepairRun.trigger(chain, Job.REBUILD, "vouchers")
    second.read_question()
    misnamed = refused_answer(second, confirm="customers")
    second.clear("approve")
    second.read_question()
    beside = chain.airflow.trigger(DAG_ID)
    chain.airflow.wait_for_task(DAG_ID, beside, MERGE, states=frozenset({"running"}), seconds=ANSWERED)
    carried_out = second.approve()
    merged = chain.finish(DAG_ID, beside, seconds=ANSWERED)
    status = forbidden.value.response.status_code
    return TwoRebuilds(first, second, status, outdated, asked_again, misnamed, carried_out, merged)


NOT_APPROVED: Mapping[str, str] = {
    "plan": "success",
    "approve": "failed",
    "act": "upstream_failed",
    "verify": "upstream_failed",
    "outcome": "failed",
}


def test_a_viewer_cannot_answer(two_rebuilds):
    assert two_rebuilds.viewer_status == httpx.codes.FORBIDDEN


def test_an_answer_about_a_plan_that_was_made_again_is_refused(two_rebuilds):
    run, reason = two_rebuilds.outdated

    assert (run.state, run.states) == ("failed", NOT_APPROVED)
    assert "the newest plan is vouchers=" in reason


def test_a_run_whose_plan_was_made_again_says_to_trigger_its_dag_again(two_rebuilds):
    run, reason = two_rebuilds.asked_again

    assert (run.state, run.states) == ("failed", NOT_APPROVED)
    assert "Trigger this DAG again with the same form" in reason


def test_an_answer_that_names_another_table_is_refused(two_rebuilds):
    run, reason = two_rebuilds.misnamed

    assert (run.state, run.states) == ("failed", NOT_APPROVED)
    assert "the approval does not name the table: type `vouchers` to approve" in reason


def test_a_repair_beside_a_merge_of_the_schedule_leaves_silver_as_the_source_is(chain, two_rebuilds):
    assert (two_rebuilds.carried_out.state, two_rebuilds.carried_out.states) == ("success", ALL_GREEN)
    assert (two_rebuilds.beside.state, two_rebuilds.beside.states) == ("success", GREEN)
    assert chain.differences() == []


def test_what_was_rewound_is_read_and_merged_again(chain, repairs, two_rebuilds):
    before, now = repairs.before, look(chain)

    assert now["offsets of order_lines"] == before["offsets of order_lines"]
    assert now["name of product 1"] == [("renamed",)]


def test_a_table_that_is_kept_has_its_rows_and_is_missed_by_no_run(chain, two_rebuilds):
    assert two_rebuilds.beside.states == GREEN
    assert rows(chain.silver("kiosks"), ("id",), lambda _: True) == [(1,)]


def test_an_approval_that_waited_while_another_repair_was_carried_out_is_refused(chain, two_rebuilds):
    standing = version_of(chain.lake.silver("vouchers"))
    run = two_rebuilds.first.approve()

    assert (run.state, run.states) == ("failed", REFUSED)
    assert "PLAN_CHANGED" in two_rebuilds.first.report("act")
    assert version_of(chain.lake.silver("vouchers")) == standing


def test_act_keeps_to_the_plan_that_was_answered_when_it_was_made_again(chain, two_rebuilds):
    standing = version_of(chain.lake.silver("vouchers"))
    two_rebuilds.second.clear("plan", "act", downstream=False)
    run = two_rebuilds.second.finish()

    assert (run.state, run.states) == ("success", ALL_GREEN)
    assert "this try changed nothing" in two_rebuilds.second.report("act")
    assert version_of(chain.lake.silver("vouchers")) == standing
