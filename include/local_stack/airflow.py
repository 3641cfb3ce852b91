"""Airflow as four processes: API server, scheduler, Dag processor, triggerer."""

from __future__ import annotations

import json
import signal
import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar

import httpx
import psutil

from local_stack.airflow_settings import USERS, airflow_environment
from local_stack.component import Component
from local_stack.layout import write_private
from local_stack.postgres import Postgres
from local_stack.process import Launch, ProcessRecord, kill_session, listens, wait_until

_SCHEDULER_ALONE = 1.0
_SECONDS_TO_BE_UP = 15.0


class AirflowMetadata(Component):
    """The tables in PostgreSQL and the pools; no process."""

    name = "airflow-metadata"
    is_process = False
    needs = ("postgres",)

    @property
    def folder(self) -> Path:
        return self.site.layout.data("airflow")

    def prepare(self) -> None:
        (self.folder / "logs").mkdir(parents=True, exist_ok=True)
        write_private(self.folder / "passwords.json", json.dumps({user: user for user in USERS}))

    def settle(self) -> None:
        self._once("migrated", version("apache-airflow"), ["db", "migrate"])
        pools = pools_of(self.site.layout.pipelines)
        if pools:
            (self.folder / "pools.json").write_text(pools)
            self._once("pools", pools, ["pools", "import", str(self.folder / "pools.json")])

    def _once(self, what: str, state: str, arguments: list[str]) -> None:
        """Airflow's command line takes seconds: run it only when there is something new."""
        stamp = self.folder / f"{what}.stamp"
        if stamp.exists() and stamp.read_text() == state:
            return
        command = [sys.executable, "-m", "airflow", *arguments]
        self.run_tool(Launch(command, airflow_environment(self.site), self.folder, signal.SIGKILL))
        stamp.write_text(state)


class _AirflowProcess(Component):
    needs = ("postgres", "airflow-metadata")
    configured_with = frozenset({"postgres", "kafka", "registry", "connect", "object-store", "airflow"})
    arguments: ClassVar[tuple[str, ...]]
    job_type: ClassVar[str]

    @property
    def folder(self) -> Path:
        return self.site.layout.data("airflow")

    def launch(self) -> Launch:
        command = [sys.executable, "-m", "airflow", *self.arguments]
        return Launch(command, airflow_environment(self.site), self.folder, keep_after=_SECONDS_TO_BE_UP)

    def is_healthy(self, process: ProcessRecord) -> bool:
        """Its heartbeat is fresh and it is this process's: one of an earlier run began before it."""
        program = _kept_program(process)
        if program is None:
            return False
        query = (
            "SELECT 1 FROM job WHERE job_type = %s AND state = 'running' AND start_date >= to_timestamp(%s) "
            "AND latest_heartbeat > now() - interval '40 seconds'"
        )
        began = program.create_time() - 1
        with Postgres(self.site).connect("airflow", user="airflow") as connection:
            return connection.execute(query, (self.job_type, began)).fetchone() is not None


class AirflowScheduler(_AirflowProcess):
    name = "airflow-scheduler"
    stops_before = ("airflow-dag-processor", "airflow-triggerer", "airflow-api-server")
    arguments = ("scheduler", "--skip-serve-logs")
    job_type = "SchedulerJob"

    def stop(self, process: ProcessRecord) -> bool:
        """Alone it would wait for running tasks for ever; its workers, asked too, end their tasks.

        A second signal would break off its own ending, so it is asked once. Tasks may have left the session;
        what belonged to the scheduler is noted before anything stops.
        """
        workers = _descendants_of_the_program(process)
        _ask_to_end(process.pid)
        wait_until(lambda: not process.is_alive, _SCHEDULER_ALONE)
        for worker in workers:
            _ask_to_end(worker.pid)
        gently = wait_until(lambda: not process.is_alive, self.stop_patience)
        kill_session(process)
        for worker in workers:
            if worker.is_running():
                worker.kill()
        return gently


def _ask_to_end(pid: int) -> None:
    with suppress(psutil.NoSuchProcess):
        psutil.Process(pid).terminate()


def _kept_program(process: ProcessRecord) -> psutil.Process | None:
    """Return the program itself, a child of the recorded process; None while it is being started again."""
    if not process.is_alive:
        return None
    with suppress(psutil.NoSuchProcess):
        return next(iter(psutil.Process(process.pid).children()), None)
    return None


def _descendants_of_the_program(process: ProcessRecord) -> list[psutil.Process]:
    """Return the processes that the program started; those of a dead one are in its session."""
    program = _kept_program(process)
    if program is None:
        return []
    try:
        return program.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


class AirflowDagProcessor(_AirflowProcess):
    name = "airflow-dag-processor"
    stops_before = ("airflow-api-server",)
    arguments = ("dag-processor",)
    job_type = "DagProcessorJob"


class AirflowTriggerer(_AirflowProcess):
    name = "airflow-triggerer"
    stops_before = ("airflow-api-server",)
    arguments = ("triggerer", "--skip-serve-logs")
    job_type = "TriggererJob"

    def stop(self, process: ProcessRecord) -> bool:
        """It would let its child wait for ten seconds; asked directly, the child ends at once."""
        for child in _descendants_of_the_program(process):
            _ask_to_end(child.pid)
        return super().stop(process)


class AirflowApiServer(_AirflowProcess):
    name = "airflow-api-server"
    listener = "airflow"
    arguments = ("api-server",)

    @property
    def address(self) -> str:
        return self.url

    @property
    def url(self) -> str:
        return f"http://{self.site.address('airflow')}"

    def client(self, user: str = "admin") -> httpx.Client:
        """Logged in, for paths below `/api/v2`; `user` is admin, oncall or viewer."""
        login = {"username": user, "password": user}
        with httpx.Client(base_url=self.url, timeout=30, trust_env=False) as anonymous:
            token = anonymous.post("/auth/token", json=login).raise_for_status().json()["access_token"]
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=f"{self.url}/api/v2", headers=headers, timeout=30, trust_env=False)

    def is_healthy(self, process: ProcessRecord) -> bool:
        if not process.is_alive or not listens(process, self.site.ports["airflow"]):
            return False
        with httpx.Client(base_url=self.url, timeout=5, trust_env=False) as client:
            return client.get("/api/v2/version").status_code == httpx.codes.OK


def pools_of(pipelines: Path) -> str:
    """One pool per pipeline file, as Airflow imports them; empty without pipelines."""
    names = sorted(path.stem for path in pipelines.glob("*.yaml"))
    pools = {
        f"cdc_{name}": {"slots": 2, "description": f"Spark applications of {name}", "include_deferred": False}
        for name in names
    }
    return json.dumps(pools, indent=1) if pools else ""
