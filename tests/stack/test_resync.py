"""A table is read from its source again by a real connector: what was lost on the way comes, ghosts go.

The stack is its own, without Airflow: the steps run as their tasks run them, as processes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cdc_lakehouse.contract import ENV_RESULT, ExitCode, Job, JobResult, TableError, TableResult, TableStatus
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.rows import read_rows
from cdc_lakehouse.repair.records import RepairRecord
from local_stack import LocalStack, RunningStack
from local_stack.shop import seed

pytestmark = pytest.mark.long

TABLE = "vouchers"
ROOT = Path(__file__).parents[2]
LOST = (
    "DELETE FROM vouchers WHERE code = 'SPRING'",
    "UPDATE vouchers SET percent = 31 WHERE code = 'STAFF'",
    "INSERT INTO vouchers VALUES ('NEVER SENT', 7, NULL)",
)
AT_SOURCE = {"WELCOME": 10, "STAFF": 31, "NEVER SENT": 7}


@dataclass(frozen=True)
class Shop:
    stack: RunningStack
    lake: Lake
    folder: Path

    def job(self, job: Job, *arguments: str) -> TableResult:
        """Run a job for the table as a process of its own, and return what it handed over."""
        self._result.unlink(missing_ok=True)
        subprocess.run(self._command(job, *arguments), env=self._environment(), check=False, timeout=900)
        (table,) = JobResult.from_json(self._result.read_text()).tables
        return table

    def kill_act_at(self, event: str, plan: TableResult) -> None:
        """Start `act`, and kill its processes as soon as its log has `event`."""
        command = self._command(Job.RESYNC, "--step", "act", *self._approved(plan))
        with subprocess.Popen(
            command, env=self._environment(), stdout=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            assert process.stdout is not None
            try:
                was_reached = any(f'"event": "{event}"' in line for line in process.stdout)
            finally:
                os.killpg(process.pid, signal.SIGKILL)
        assert was_reached, event

    @property
    def _result(self) -> Path:
        return self.folder / "result.json"

    def _command(self, job: Job, *arguments: str) -> list[str]:
        submit = [str(Path(sys.executable).parent / "spark-submit"), "--master", "local[2]"]
        script = str(ROOT / "spark_jobs" / f"{job}.py")
        return [*submit, script, "--pipeline", "shop", "--tables", TABLE, *arguments]

    def _environment(self) -> dict[str, str]:
        bin_folder = str(Path(sys.executable).parent)
        return {
            **os.environ,
            **self.stack.job_environment(),
            "PATH": os.pathsep.join([bin_folder, os.environ.get("PATH", os.defpath)]),
            "PYTHONPATH": str(ROOT / "include"),
            ENV_RESULT: str(self._result),
        }

    def _approved(self, plan: TableResult) -> tuple[str, ...]:
        return "--plan", f"{TABLE}={plan.plan['digest']}", "--approved-by", "eve"

    def plan(self, *arguments: str) -> TableResult:
        return self.job(Job.RESYNC, "--step", "plan", *arguments)

    def step(self, step: str, plan: TableResult) -> TableResult:
        return self.job(Job.RESYNC, "--step", step, *self._approved(plan))

    def lose(self, *statements: str) -> None:
        """Change the source while the publication sends none of it."""
        with self.stack.postgres.connect("shop") as connection:
            connection.autocommit = True
            connection.execute("ALTER PUBLICATION shop SET (publish = 'truncate')")
            for statement in statements:
                connection.execute(statement.encode())
            connection.execute("ALTER PUBLICATION shop SET (publish = 'insert, update, delete, truncate')")
        self.stack.connector.wait_until_captured()

    def silver(self) -> dict[str, int]:
        rows = read_rows(self.lake.silver(TABLE))
        assert rows is not None
        return {row["code"]: row["percent"] for row in rows.to_pylist()}

    def signals(self) -> list[str]:
        with self.stack.postgres.connect("shop") as connection:
            query = "SELECT id FROM debezium_signal WHERE type = 'execute-snapshot'"
            return [row[0] for row in connection.execute(query)]

    def record(self, plan: TableResult) -> Path:
        return Path(urlsplit(f"{self.lake.repairs(TABLE)}/{plan.plan['digest']}.json").path)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with LocalStack(tmp_path_factory.mktemp("resync")).running("connector", airflow=False) as stack:
        with stack.postgres.connect(user="shop") as connection:
            seed(connection, customers=5, products=5, orders=5)
        stack.connector.wait_until_captured()
        started = Shop(
            stack, Lake(root=stack.lake_root(), pipeline="shop"), tmp_path_factory.mktemp("result")
        )
        for job in (Job.BRONZE_INGEST, Job.SILVER_MERGE):
            assert started.job(job).error is None
        started.lose(*LOST)
        yield started


def error_of(result: TableResult) -> TableError:
    assert result.error is not None
    return result.error


def test_a_resync_is_planned_carried_out_once_and_verified(shop: Shop):
    refused = shop.plan("--option=condition=nothing = 1")
    plan = shop.plan()
    before = shop.silver()
    done = shop.step("act", plan)
    after = shop.silver()
    verified = shop.step("verify", plan)
    again = shop.step("act", plan)
    record = RepairRecord.from_json(shop.record(plan).read_text())
    document = {**json.loads(replace(record, done_at=None).to_json())}
    shop.record(plan).write_text(json.dumps(document))
    after_kill = shop.step("act", plan)

    assert (error_of(refused).code, "nothing" in error_of(refused).sentence) == ("REPAIR_REFUSED", True)
    assert plan.counts == {"rows_sent": 3, "rows_added": 1, "rows_changed": 1, "rows_removed": 1}
    assert before == {"WELCOME": 10, "SPRING": 15, "STAFF": 30}
    assert (done.status, done.counts["rows_sent"], done.counts["rows_removed"]) == (
        TableStatus.REPAIRED,
        3,
        1,
    )
    assert after == AT_SOURCE
    assert (verified.error, verified.plan["summary"]) == (None, "silver beside its source: equal")
    assert (again.status, after_kill.status) == (TableStatus.IDLE, TableStatus.REPAIRED)
    assert after_kill.plan["summary"] == "carried out by an earlier try"
    assert shop.signals() == [f"resync-{plan.plan['digest']}"]


def test_a_resync_that_is_killed_again_and_again_is_finished_by_one_signal(shop: Shop):
    shop.lose("DELETE FROM vouchers WHERE code = 'STAFF'", "INSERT INTO vouchers VALUES ('AGAIN', 9, NULL)")
    plan = shop.plan()
    before = shop.silver()
    for event in ("signal sent", "snapshot", "batch committed"):
        shop.kill_act_at(event, plan)
    waiting = shop.silver()
    shop.kill_act_at("merge committed", plan)
    merged = shop.silver()
    beside = [shop.job(job) for job in (Job.BRONZE_INGEST, Job.SILVER_MERGE)]
    early = shop.step("verify", plan)
    shop.kill_act_at("rows that the source does not have", plan)
    shop.kill_act_at("merge committed", plan)
    swept = shop.silver()
    finished, verified = shop.step("act", plan), shop.step("verify", plan)

    assert before == waiting == AT_SOURCE
    assert merged == {**AT_SOURCE, "AGAIN": 9}
    assert ([result.error for result in beside], error_of(early).code) == ([None, None], "PLAN_CHANGED")
    assert swept == {"WELCOME": 10, "NEVER SENT": 7, "AGAIN": 9}
    assert (finished.status, finished.plan["summary"]) == (
        TableStatus.REPAIRED,
        "carried out by an earlier try",
    )
    assert (verified.error, verified.plan["summary"]) == (None, "silver beside its source: equal")
    assert shop.signals().count(f"resync-{plan.plan['digest']}") == 1
    assert shop.silver() == swept


def test_a_signal_that_the_connector_does_not_carry_out_removes_nothing(shop: Shop):
    shop.lose("DELETE FROM vouchers WHERE code = 'WELCOME'")
    plan = shop.plan()
    with shop.stack.postgres.connect("shop") as connection:
        connection.execute("REVOKE SELECT ON vouchers FROM debezium")
        connection.execute("REVOKE shop FROM debezium")
        connection.commit()
    before = shop.silver()
    refused, done = shop.plan(), shop.step("act", plan)
    undone = RepairRecord.from_json(shop.record(plan).read_text())
    shop.record(plan).write_text(undone.with_result({}, {}).to_json())
    verified = shop.step("verify", plan)

    assert "GRANT SELECT ON public.vouchers TO debezium;" in error_of(refused).sentence
    assert (error_of(done).code, error_of(done).exit_code) == ("RESYNC_NOT_ENDED", ExitCode.RETRY)
    assert "no row of it came" in error_of(done).sentence
    assert shop.silver() == before
    assert error_of(verified).code == "REPAIR_NOT_VERIFIED"
