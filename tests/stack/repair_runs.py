"""A run of a repair DAG as people take it through: trigger, read the plan, answer, see what came of it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any, Self

from driver import Chain, Run  # type: ignore[import-not-found]

from cdc_lakehouse.contract import Job
from cdc_lakehouse.repair.records import RepairRecord, read_record
from local_stack.airflow_client import AirflowClient

PLANNED, ANSWERED = 900.0, 1200.0
"""Seconds that a plan, and what follows an answer, may take on a busy machine."""


def dag_of(repair: Job) -> str:
    return f"cdc_shop_{repair}"


@dataclass(frozen=True)
class RepairRun:
    """The user `admin` has triggered it, about one table; `oncall` answers, unless another user is named."""

    chain: Chain
    repair: Job
    table: str
    run_id: str

    @classmethod
    def trigger(cls, chain: Chain, repair: Job, table: str, **options: Any) -> Self:
        conf = {"tables": [table], "note": "ticket 7", **options}
        return cls(chain, repair, table, chain.airflow.trigger(dag_of(repair), conf=conf))

    @property
    def dag_id(self) -> str:
        return dag_of(self.repair)

    def read_question(self) -> str:
        """Wait until the run asks for an approval, and return the text that it shows."""
        self.chain.airflow.wait_for_question(self.dag_id, self.run_id, "approve", seconds=PLANNED)
        return str(self._question()["body"])

    def shown_plan(self) -> str:
        """Return `<table>=<digest>`, the field of the form that says what is approved."""
        return str(self._question()["params"]["plan"]["value"])

    def answer(
        self, option: str, *, confirm: str | None = None, plan: str | None = None, user: str = "oncall"
    ) -> None:
        """Answer as the form would send it; `plan` is that of a form that was opened earlier."""
        fields = {"plan": plan or self.shown_plan(), "confirm": confirm}
        with closing(AirflowClient(self.chain.stack.airflow.client(user))) as airflow:
            airflow.answer(self.dag_id, self.run_id, "approve", option, fields)

    def approve(self) -> Run:
        """Approve as the form asks for it, and wait for the end of the run."""
        self.answer("Approve", confirm=self.table)
        return self.finish()

    def carry_out(self) -> Run:
        """Wait for the plan, approve it, and wait for the end of the run."""
        self.read_question()
        return self.approve()

    def finish(self) -> Run:
        return self.chain.finish(self.dag_id, self.run_id, seconds=ANSWERED)

    def clear(self, *task_ids: str, downstream: bool = True) -> None:
        self.chain.airflow.clear(self.dag_id, self.run_id, *task_ids, downstream=downstream)

    def report(self, task_id: str) -> str:
        return str(self.chain.airflow.xcom(self.dag_id, self.run_id, task_id, key="report"))

    def digest(self) -> str:
        """Return that of the newest plan of the run."""
        plans = self.chain.airflow.xcom(self.dag_id, self.run_id, "plan")["plans"]
        return str(plans[self.table])

    def record(self) -> RepairRecord:
        """Return what the lake keeps of the newest plan of the run."""
        return read_record(self.chain.lake, self.table, self.digest(), operation=self.repair)

    def _question(self) -> dict[str, Any]:
        question: dict[str, Any] = self.chain.airflow.question(self.dag_id, self.run_id, "approve")
        return question
