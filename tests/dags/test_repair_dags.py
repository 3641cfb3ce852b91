"""Repairs in Airflow: what may be approved, what `act` is asked for, what a run without work looks like."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from airflow_home import PROJECT  # type: ignore[import-not-found]
from fake_spark import call_of, played, result, script, was_called  # type: ignore[import-not-found]
from test_operator import Store, TaskInstance  # type: ignore[import-not-found]

from cdc_lakehouse.config.models import Connections
from cdc_lakehouse.contract import REPAIRS, Job, TableResult, TableStatus
from cdc_lakehouse.orchestration.approval import PlanApprovalOperator
from cdc_lakehouse.orchestration.operator import WITHOUT_SPARK
from cdc_lakehouse.orchestration.repair_forms import REPAIR_FORMS
from cdc_lakehouse.orchestration.repair_operator import RepairOutcomeOperator, RepairStepOperator
from cdc_lakehouse.repair.erase import Erase
from cdc_lakehouse.repair.plan import TablePlan
from cdc_lakehouse.repair.quarantine import Quarantine
from cdc_lakehouse.repair.rebuild import Rebuild
from cdc_lakehouse.repair.resync import Resync
from cdc_lakehouse.repair.retire import Retire
from cdc_lakehouse.repair.rewind import Rewind
from cdc_lakehouse.run_modes import RepairStep

PLAN = TablePlan(
    operation=Job.REBUILD,
    pipeline="shop",
    table="orders",
    options={},
    basis={"repairs": []},
    effects={"rows_changed": 3},
    summary="silver is replaced by what bronze gives",
)
SHOWN = f"orders={PLAN.digest}"
OPERATIONS = (Rebuild(), Resync(), Rewind(), Quarantine(), Retire(), Erase())
USER = {"id": "7", "name": "eve"}
APPROVED = {"is_approval": True, "plans": SHOWN, "user": "eve"}
REJECTED = {**APPROVED, "is_approval": False}
SUMMARY = {"failed": {}, "plans": {"orders": PLAN.digest}}


def answer(
    option: str = "Approve", *, plan: str = SHOWN, confirm: str | None = "orders", user: str = "eve"
) -> dict[str, Any]:
    return {
        "chosen_options": [option],
        "params_input": {"plan": plan, "confirm": confirm},
        "responded_at": SimpleNamespace(isoformat=lambda: "2026-11-03T14:00:00+00:00"),
        "responded_by_user": {**USER, "name": user},
    }


class Puller(TaskInstance):  # type: ignore[misc]
    """A task instance that finds these XComs of others."""

    def xcom_pull(self, *, task_ids: str, key: str) -> Any:
        return self.xcoms.get((task_ids, key))


def context(*, approved: dict[str, Any] | None = None, summary: dict[str, Any] | None = None) -> Any:
    xcoms = {
        ("plan", "return_value"): SUMMARY if summary is None else summary,
        ("plan", "report"): "### orders",
        ("approve", "answer"): approved,
    }
    ti = Puller(
        dag_id="cdc_shop_rebuild", run_id="manual__1", task_id="act", try_number=1, pushed={}, xcoms=xcoms
    )
    run = SimpleNamespace(
        run_id="manual__1",
        conf={"tables": ["orders"], "note": "ticket 7"},
        triggering_user_name="ann",
    )
    return {"ti": ti, "task_instance": ti, "dag_run": run, "task_state_store": Store()}


def approval(*, four_eyes: bool = False) -> PlanApprovalOperator:
    return PlanApprovalOperator(task_id="approve", repair=Job.REBUILD, four_eyes=four_eyes)


def step(which: RepairStep) -> RepairStepOperator:
    return RepairStepOperator(
        task_id=which.value,
        job=Job.REBUILD,
        step=which,
        repair_form=REPAIR_FORMS[Job.REBUILD],
        pipeline="shop",
        connections=Connections(),
    )


def test_every_kind_of_repair_has_a_dag_without_a_schedule_that_does_not_wait_for_other_runs():
    dags = DagBag(dag_folder=str(PROJECT / "dags")).dags

    for job in REPAIR_FORMS:
        dag = dags[f"cdc_shop_{job}"]
        downstream = {task.task_id: task.downstream_task_ids for task in dag.tasks}
        assert downstream == {
            "plan": {"approve"},
            "approve": {"act"},
            "act": {"verify"},
            "verify": {"outcome"},
            "outcome": set(),
        }
        assert dag.max_active_runs > 1
        assert dag.get_task("approve").retries == 0
        assert dag.get_task("approve").execution_timeout is None


def test_every_repair_of_the_contract_has_a_form_and_a_file_of_its_own():
    assert {*REPAIR_FORMS} == {*REPAIRS}
    assert [job for job in REPAIRS if not (PROJECT / "spark_jobs" / f"{job}.py").exists()] == []


def test_a_check_of_the_pipeline_is_one_task_that_starts_no_spark():
    dag = DagBag(dag_folder=str(PROJECT / "dags")).dags["cdc_shop_preflight"]

    assert [task.task_id for task in dag.tasks] == ["preflight"]
    assert Job.PREFLIGHT in WITHOUT_SPARK


def test_forms_have_the_options_that_the_jobs_know():
    known = {each.job: each.options for each in OPERATIONS}

    assert {job: {*form.options} for job, form in REPAIR_FORMS.items()} == known


def test_a_run_asks_about_its_first_plan_only(monkeypatch):
    """Airflow shows the form of the first try again, whatever a later one passes."""
    forms: list[str] = []
    monkeypatch.setattr(
        ApprovalOperator, "execute", lambda operator, _context: forms.append(operator.params["plan"])
    )
    first, store = context(), Store()
    newer = context(summary={"failed": {}, "plans": {"orders": "0123456789ab"}})
    first["task_state_store"] = newer["task_state_store"] = store

    approval().execute(first)
    approval().execute(first)
    with pytest.raises(
        AirflowFailException, match=r"newest plan is orders=0123456789ab: .* Trigger this DAG again"
    ):
        approval().execute(newer)

    assert forms == [SHOWN, SHOWN]


def test_options_reach_the_job_by_its_environment_and_not_by_its_command_line():
    planned = TableResult(table="orders", status=TableStatus.PLANNED, plan=PLAN.to_report())
    script(rebuild=played(result(Job.REBUILD, planned)))
    run = context()
    run["dag_run"].conf["undo"] = " `1a2b3c4d5e6f` "

    step(RepairStep.PLAN).execute(run)

    call = call_of(Job.REBUILD)
    assert json.loads(call["environ"]["CDC_LAKEHOUSE_OPTIONS"]) == {"undo": "1a2b3c4d5e6f"}
    assert not any("1a2b3c4d5e6f" in argument for argument in call["argv"])


@pytest.mark.parametrize(("option", "is_approval"), [("Approve", True), ("Reject", False)])
def test_an_answer_is_handed_on_with_the_plan_that_it_is_about(option, is_approval):
    run = context()

    approval().execute_complete(run, answer(option))

    assert run["ti"].pushed["answer"] == {"is_approval": is_approval, "plans": SHOWN, "user": "eve"}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (answer(plan="orders=000000000000"), "the newest plan is"),
        (answer(confirm=""), "type `orders` to approve"),
        (answer(confirm="customers"), "type `orders` to approve"),
    ],
    ids=["another plan", "no name", "another name"],
)
def test_an_approval_of_another_plan_or_without_the_tables_name_is_refused(given, sentence):
    with pytest.raises(AirflowFailException, match=sentence):
        approval().execute_complete(context(), given)


def test_the_form_of_an_approval_says_what_to_type():
    """Airflow shows the `description` of a field there, and never its `description_md`."""
    operator = approval()

    operator.execute_complete(context(), answer("Reject"))

    fields = {name: operator.params.get_param(name) for name in ("plan", "confirm")}
    assert {name: field.description for name, field in fields.items()} == {
        "plan": "What is approved.",
        "confirm": "To approve, type: orders. To reject, leave it empty.",
    }


def test_with_four_eyes_nobody_approves_what_they_asked_for():
    with pytest.raises(AirflowFailException, match="four_eyes"):
        approval(four_eyes=True).execute_complete(context(), answer(user="ann"))
    assert approval(four_eyes=True).execute_complete(context(), answer(user="eve"))


def test_nobody_who_answers_is_red_and_says_that_nothing_was_changed():
    with pytest.raises(AirflowFailException, match="nothing was changed"):
        approval().execute_complete(context(), {"error": "late", "error_type": "timeout"})


def test_a_plan_that_changes_nothing_asks_nobody():
    with pytest.raises(AirflowSkipException):
        approval().execute(context(summary={"failed": {}}))


def test_act_is_asked_for_the_plan_of_the_answer_and_told_who_approved():
    done = TableResult(table="orders", status=TableStatus.REPAIRED, plan=PLAN.to_report())
    script(rebuild=played(result(Job.REBUILD, done)))

    step(RepairStep.ACT).execute(context(approved=APPROVED))

    arguments = call_of(Job.REBUILD)["argv"]
    assert arguments[arguments.index("--step") + 1] == "act"
    assert arguments[arguments.index("--plan") + 1] == SHOWN
    assert {"--approved-by=eve", "--triggered-by=ann", "--note=ticket 7"} <= {*arguments}


@pytest.mark.parametrize("given", [None, REJECTED], ids=["no answer", "rejected"])
def test_act_does_nothing_without_an_approval(given):
    script()

    with pytest.raises(AirflowFailException, match="nobody approved"):
        step(RepairStep.ACT).execute(context(approved=given))
    assert not was_called(Job.REBUILD)


def test_the_report_of_a_plan_shows_what_would_change_and_its_digest():
    planned = TableResult(table="orders", status=TableStatus.PLANNED, plan=PLAN.to_report())
    script(rebuild=played(result(Job.REBUILD, planned)))
    run = context()

    summary = step(RepairStep.PLAN).execute(run)

    assert summary["plans"] == {"orders": PLAN.digest}
    assert f"plan `{PLAN.digest}`" in run["ti"].pushed["report"]
    assert "- rows changed: 3" in run["ti"].pushed["report"]


@pytest.mark.parametrize(
    ("approved", "summary", "sentence"),
    [
        (REJECTED, SUMMARY, "# nothing was changed: eve rejected the plan"),
        (None, {"failed": {}}, "# nothing was changed: the plan changes nothing"),
    ],
    ids=["rejected", "nothing to do"],
)
def test_a_run_that_changed_nothing_by_decision_is_green_and_says_so(approved, summary, sentence):
    run = context(approved=approved, summary=summary)

    RepairOutcomeOperator(task_id="outcome", watched=["plan", "act"], table_count=0).execute(run)

    assert run["ti"].pushed["report"] == sentence
