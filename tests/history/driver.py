"""The product's jobs from outside: in a warm process that can be killed, or by spark-submit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from artifacts.spark_files import DEFAULTS_FILE
from cdc_lakehouse.contract import ENV_PIPELINES, Job
from local_stack import RunningStack
from small_tables import SMALL  # type: ignore[import-not-found]

ROOT = Path(__file__).parents[2]
BOTH = (Job.BRONZE_INGEST, Job.SILVER_MERGE)
Results = list[dict[str, Any]]
_MEMORY = {"spark.driver.memory": "6g"}
"""Merges of rows that moved through many keys have plans of hundreds of megabytes. Four at once filled two
gigabytes, the JVM spent its time in its collector, and a drain seemed never to end."""
_ORDERS_OF_A_PROCESS = 8
"""Each run of the schedule is a process of its own; one that served an hour of runs filled four gigabytes."""
_ANSWER = 1800.0
"""For a driver, in seconds."""


class DriverFailedError(RuntimeError):
    """An order raised, or its process ended, instead of having results."""


def job_environment(stack: RunningStack, pipelines: Path) -> dict[str, str]:
    return {
        **os.environ,
        **stack.job_environment(),
        ENV_PIPELINES: str(pipelines),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "include"), str(ROOT / "tests")]),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
    }


def for_small_tables(stack: RunningStack, folder: Path) -> Path:
    """A copy of the stack's settings of Spark with those that suit a dozen rows."""
    conf = folder / "spark-conf"
    conf.mkdir(parents=True, exist_ok=True)
    for file in stack.site.layout.spark_conf.iterdir():
        (conf / file.name).write_bytes(file.read_bytes())
    with (conf / DEFAULTS_FILE).open("a", encoding="utf-8") as defaults:
        defaults.writelines(f"{name} {value}\n" for name, value in {**SMALL, **_MEMORY}.items())
    return conf


class WarmDriver:
    """Starts with the first order, and again with the first after it was killed."""

    def __init__(self, stack: RunningStack, folder: Path) -> None:
        self.log = folder / "driver.log"
        self.starts = 0
        self._folder = folder
        self._environment = job_environment(stack, folder / "pipelines")
        self._environment["SPARK_CONF_DIR"] = str(for_small_tables(stack, folder))
        self._process: subprocess.Popen[str] | None = None
        self._waiting: dict[int, Future[Results]] = {}
        self._next = 1
        self._orders = 0
        """Orders to the process that runs now."""

    def start(self) -> None:
        """Does not wait."""
        if self._process is not None and self._process.poll() is None:
            return
        self.starts += 1
        self._orders = 0
        reads, writes = os.pipe()
        program = str(Path(__file__).with_name("job_server.py"))
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, program, str(writes)],
                env=self._environment,
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[writes],
                process_group=0,
                text=True,
            )
        os.close(writes)
        self._waiting = {0: Future()}
        threading.Thread(target=self._listen, args=(reads, self._waiting), daemon=True).start()

    def order(self, pipeline: str, jobs: Sequence[Job] = BOTH) -> Future[Results]:
        """Carried out one after the other."""
        if self._orders >= _ORDERS_OF_A_PROCESS and not self._waiting:
            self.close()
        self.start()
        self._orders += 1
        assert self._process is not None
        assert self._process.stdin is not None
        number, self._next = self._next, self._next + 1
        future = self._waiting[number] = Future()
        self._process.stdin.write(json.dumps({"id": number, "pipeline": pipeline, "jobs": jobs}) + "\n")
        self._process.stdin.flush()
        return future

    def kill(self) -> None:
        """The whole process group at once: driver, JVM and workers."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def close(self) -> None:
        if self._process is None:
            return
        pid = self._process.pid
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(20)
        with suppress(psutil.NoSuchProcess):
            for left in [*psutil.Process(pid).children(recursive=True), psutil.Process(pid)]:
                left.kill()
        self._process.wait()
        self._process = None

    def _listen(self, reads: int, waiting: dict[int, Future[Results]]) -> None:
        with os.fdopen(reads) as answers:
            for line in answers:
                told = json.loads(line)
                future = waiting.pop(told["id"])
                if "raised" in told:
                    future.set_exception(DriverFailedError(told["raised"]))
                else:
                    future.set_result(told["results"])
        for future in waiting.values():
            last = self.log.read_text(errors="replace").splitlines()[-15:]
            future.set_exception(DriverFailedError("\n".join(["the driver ended, and said last:", *last])))


def submitted(stack: RunningStack, folder: Path, job: Job, *, pipeline: str) -> subprocess.Popen[bytes]:
    """spark-submit in a process group of its own, as the operator starts it."""
    submit = Path(sys.executable).with_name("spark-submit")
    script = ROOT / "spark_jobs" / f"{job}.py"
    with (folder / "submitted.log").open("ab") as output:
        return subprocess.Popen(
            [str(submit), "--master", "local[2]", str(script), "--pipeline", pipeline],
            env=job_environment(stack, folder / "pipelines"),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            process_group=0,
        )


def kill_group(process: subprocess.Popen[bytes]) -> int:
    """Its exit code; 0 when it was faster."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait(30)
