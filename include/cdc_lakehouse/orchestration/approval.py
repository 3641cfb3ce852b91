"""A person approves the plan of a repair, exactly the one that the form showed.

Tasks may be cleared in any order, so a form that is open may show a plan that was made again meanwhile. The
digest of the plan is a field of the form: the answer is compared with the plan that stands then, and `act`
gets the digest from the answer, not from the plan.

Airflow keeps the form of a task for good: one that is cleared shows the same text and fields again, whatever
it passes. So a run asks about its first plan only, and a newer plan takes a new run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Context, Param
from airflow.sdk.definitions.param import ParamsDict
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from airflow.sdk.execution_time.context import NEVER_EXPIRE

from cdc_lakehouse.contract import Job
from cdc_lakehouse.orchestration.operator import RESULT_KEY
from cdc_lakehouse.orchestration.report_text import REPORT_KEY

PLAN_TASK, APPROVE_TASK = "plan", "approve"
ANSWER_KEY = "answer"
"""The XCom with a person's answer: Airflow keeps no return value of a task that skips those below it."""
PLAN_FIELD = "plan"
CONFIRM_FIELD = "confirm"
_ASKED_KEY = "asked"
"""What `approve` keeps in its task's state: the plans that the form of the run shows."""
_TRIGGER_AGAIN = (
    "Trigger this DAG again with the same form: Airflow shows one plan for each run, the first one."
)
TIME_TO_ANSWER = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person answered."""

    is_approval: bool
    plans: str
    """As the form showed them (`in_one_line`)."""
    user: str | None

    @property
    def approved_plans(self) -> tuple[str, ...]:
        """Return `<table>=<digest>` of each plan; none where the plans were rejected."""
        plans = (plan.strip() for plan in self.plans.split(","))
        return tuple(filter(None, plans)) if self.is_approval else ()


class PlanApprovalOperator(ApprovalOperator):
    """Waits for a person; the XCom `answer` holds what was decided, by whom, about which plans."""

    def __init__(self, *, repair: Job, four_eyes: bool, **kwargs: Any) -> None:
        """Refuse, with `four_eyes`, an approval by the person who triggered the run."""
        super().__init__(
            subject=f"Approve the plan of this {repair}", response_timeout=TIME_TO_ANSWER, **kwargs
        )
        self.repair = repair
        self.four_eyes = four_eyes

    def execute(self, context: Context) -> Any:
        """Show the plan and wait. A plan that changes nothing needs no answer."""
        plans = plans_of(context)
        if not plans:
            raise AirflowSkipException("the plan changes nothing: there is nothing to approve")
        _refuse_newer_plans(context, plans)
        self._show_plan(context, plans)
        return super().execute(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Keep the answer. Raise for an approval of another plan, or without the table's name."""
        plans = plans_of(context)
        self._show_plan(context, plans)
        if "error" not in event:
            answer = Answer(
                is_approval=event["chosen_options"] == [self.APPROVE],
                plans=str((event["params_input"] or {}).get(PLAN_FIELD) or ""),
                user=_user_of(event),
            )
            if answer.is_approval:
                self._refuse_wrong_answer(context, event, plans)
            context["ti"].xcom_push(key=ANSWER_KEY, value=asdict(answer))
        return super().execute_complete(context, event)

    def process_trigger_event_error(self, event: dict[str, Any]) -> None:
        if event.get("error_type") == "timeout":
            hours = int(TIME_TO_ANSWER.total_seconds() // 3600)
            raise AirflowFailException(
                f"nobody answered within {hours} hours: nothing was changed. Trigger this DAG again with the "
                "same form: it makes a new plan."
            )
        super().process_trigger_event_error(event)

    def _show_plan(self, context: Context, plans: Mapping[str, str]) -> None:
        self.body = str(context["ti"].xcom_pull(task_ids=PLAN_TASK, key=REPORT_KEY) or "")
        shown, names = in_one_line(plans), ", ".join(plans)
        # The form of an approval shows `description`, and never `description_md`.
        self.params = ParamsDict(
            {
                PLAN_FIELD: Param(
                    shown, type="string", enum=[shown], title="Plan", description="What is approved."
                ),
                CONFIRM_FIELD: Param(
                    "",
                    type=["null", "string"],
                    title="Type the table's name",
                    description=f"To approve, type: {names}. To reject, leave it empty.",
                ),
            }
        )

    def _refuse_wrong_answer(
        self, context: Context, event: Mapping[str, Any], plans: Mapping[str, str]
    ) -> None:
        answer = event["params_input"] or {}
        if answer.get(PLAN_FIELD) != in_one_line(plans):
            raise AirflowFailException(
                f"the answer is about the plan {answer.get(PLAN_FIELD)}, and the newest plan is "
                f"{in_one_line(plans)}: nothing was changed. {_TRIGGER_AGAIN}"
            )
        names = ", ".join(plans)
        if str(answer.get(CONFIRM_FIELD) or "").strip() != names:
            raise AirflowFailException(
                f"the approval does not name the table: type `{names}` to approve. Nothing was changed. "
                "Clear `approve` to be asked again."
            )
        asked_by = getattr(context["dag_run"], "triggering_user_name", None)
        if self.four_eyes and _user_of(event) == asked_by:
            raise AirflowFailException(
                f"{asked_by} triggered this run and cannot approve it too (`four_eyes`): nothing was "
                "changed. Clear `approve`, and let somebody else answer."
            )


def _refuse_newer_plans(context: Context, plans: Mapping[str, str]) -> None:
    """Raise where the run has asked about other plans before: its form would show those."""
    store, shown = context["task_state_store"], in_one_line(plans)
    asked = store.get(_ASKED_KEY)
    if asked is None:
        store.set(_ASKED_KEY, shown, retention=NEVER_EXPIRE)
    elif asked != shown:
        raise AirflowFailException(
            f"this run has asked about the plan {asked}, and the newest plan is {shown}: nothing was "
            f"changed. {_TRIGGER_AGAIN}"
        )


def plans_of(context: Context) -> dict[str, str]:
    """Return table -> digest of the plans that the run has made and that would change something."""
    summary = context["ti"].xcom_pull(task_ids=PLAN_TASK, key=RESULT_KEY) or {}
    return dict(summary.get("plans") or {})


def in_one_line(plans: Mapping[str, str]) -> str:
    """Return `orders=1a2b3c4d5e6f, customers=…`, as the form shows it."""
    return ", ".join(f"{table}={digest}" for table, digest in plans.items())


def answer_of(context: Context) -> Answer | None:
    """Return what a person answered in this run; None before that."""
    document = context["ti"].xcom_pull(task_ids=APPROVE_TASK, key=ANSWER_KEY)
    return None if document is None else Answer(**document)


def _user_of(event: Mapping[str, Any]) -> str | None:
    """Return the name of the user who answered; None where Airflow does not tell."""
    user = event.get("responded_by_user") or {}
    name = user.get("name") or user.get("id")
    return None if name is None else str(name)
