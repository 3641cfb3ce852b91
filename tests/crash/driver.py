"""Drivers from outside: a warm one that takes orders, and spark-submit as the operator starts it."""

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
from types import TracebackType
from typing import Any, Self

import psutil

from cdc_lakehouse.contract import Job
from crash.broker import PIPELINE, ROOT, World  # type: ignore[import-not-found]

Results = list[dict[str, Any]]
INGEST_AND_MERGE = (Job.BRONZE_INGEST, Job.SILVER_MERGE)
REPLAY_AND_MERGE = (Job.QUARANTINE_REPLAY, Job.SILVER_MERGE)
ALL_TO_THE_END = (Job.BRONZE_INGEST, *REPLAY_AND_MERGE)
"""What brings a lake from any state to where the golden run ends: open cases are closed by a replay only."""
ONE_BATCH = 100_000
_START = 300.0
_ANSWER = 900.0
_LAST_LINES = 20


class DriverFailedError(RuntimeError):
    """An order raised instead of having results."""


class WarmDriver:
    """A process of its own with its JVM and its workers. Up for the length of its `with` block."""

    def __init__(
        self,
        world: World,
        name: str,
        *,
        prefix: Sequence[str] = (),
        threads: int = 3,
        stays: bool = False,
    ) -> None:
        """`stays`: for hundreds of orders, which are worth compiling for."""
        self._reads, writes = os.pipe()
        self.log = world.folder / f"{name}.log"
        self._root_of = world.store.root_of
        program = str(Path(__file__).with_name("job_server.py"))
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                [*prefix, sys.executable, program, str(writes), str(threads)],
                env=world.environment() | (world.compiling() if stays else {}),
                cwd=world.folder,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[writes],
                process_group=0,
                text=True,
            )
        os.close(writes)
        self._ready: Future[Results] = Future()
        self._waiting: dict[int, Future[Results]] = {0: self._ready}
        self._next = 1
        self._guard = threading.Lock()
        threading.Thread(target=self._listen, daemon=True, name=f"{name} answers").start()

    def ready(self) -> Self:
        self._ready.result(_START)
        return self

    def order(self, lake: Path, *jobs: Job, **more: Any) -> Future[Results]:
        """Carried out beside others that were ordered before. `more` is what `job_server` knows."""
        future: Future[Results] = Future()
        with self._guard:
            number, self._next = self._next, self._next + 1
            self._waiting[number] = future
            assert self._process.stdin is not None
            told = {"id": number, "root": self._root_of(lake), "jobs": list(jobs), **more}
            self._process.stdin.write(json.dumps(told) + "\n")
            self._process.stdin.flush()
        return future

    def run(self, lake: Path, *jobs: Job, **more: Any) -> Results:
        return self.order(lake, *jobs, **more).result(_ANSWER)

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """The whole process group at once, in the middle of whatever it does."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """As a machine that hangs: driver, JVM and workers."""
        _signal_all(self._process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        _signal_all(self._process.pid, signal.SIGCONT)

    def close(self) -> None:
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(30)
        kill_all(self._process.pid)
        self._process.wait()

    def _listen(self) -> None:
        with os.fdopen(self._reads) as answers:
            for line in answers:
                told = json.loads(line)
                future = self._waiting.pop(told["id"])
                if "raised" in told:
                    future.set_exception(DriverFailedError(told["raised"]))
                else:
                    future.set_result(told.get("results", []))
        for future in self._waiting.values():
            last = self.log.read_text(errors="replace").splitlines()[-_LAST_LINES:]
            future.set_exception(DriverFailedError("\n".join(["the driver ended, and said last:", *last])))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class SubmittedJob:
    """One job by spark-submit in a process group of its own, its lines read as they come."""

    def __init__(self, world: World, lake: Path, job: Job) -> None:
        submit = Path(sys.executable).with_name("spark-submit")
        script = ROOT / "spark_jobs" / f"{job}.py"
        self._process = subprocess.Popen(
            [str(submit), str(script), "--pipeline", PIPELINE],
            env=world.environment(lake),
            cwd=world.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,
            text=True,
            errors="replace",
        )
        self.lines: list[str] = []
        self._heard = threading.Condition()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def wait_for(self, event: str, *, seconds: float = _START) -> bool:
        """Until a line holds `event`; False when the process ended without it."""
        with self._heard:
            return self._heard.wait_for(
                lambda: any(event in line for line in self.lines) or not self._listener.is_alive(), seconds
            ) and any(event in line for line in self.lines)

    def kill(self) -> int:
        """The whole group at once, as the kernel does it; its exit code, 0 if it was faster."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        return self._process.wait(30)

    def wait(self) -> int:
        return self._process.wait(_ANSWER)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._heard:
                self.lines.append(line)
                self._heard.notify_all()
        with self._heard:
            self._heard.notify_all()


def _signal_all(pid: int, number: signal.Signals) -> None:
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        for process in [root, *root.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)


def kill_all(pid: int) -> None:
    """The process and all below it; by pid."""
    _signal_all(pid, signal.SIGKILL)
