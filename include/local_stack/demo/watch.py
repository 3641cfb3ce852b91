"""Notice what nobody waits for: a component that died, a task that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg

from local_stack.airflow_client import FAILING, AirflowClient, TaskRun
from local_stack.errors import StackError
from local_stack.process import last_words
from local_stack.stack import RunningStack

Tell = Callable[[str, str, str], None]
"""task, state, why (empty unless it failed)"""


_WIDTH = 160


class ComponentDiedError(StackError):
    """In the middle of the demo."""

    def __init__(self, name: str, lines: Sequence[str], log: Path) -> None:
        told = "".join(f"\n  {line[:_WIDTH]}" for line in lines)
        super().__init__(f"{name} died; the end of its log ({log}):{told}")


class Lives:
    """The components that ran at the beginning must run at the end."""

    def __init__(self, stack: RunningStack) -> None:
        self._stack = stack
        self._expected = stack.running()

    def check(self) -> None:
        for name in sorted(self._expected - self._stack.running()):
            log = self._stack.site.layout.log(name)
            raise ComponentDiedError(name, last_words(log, lines=5).split(" | "), log)

    @contextmanager
    def to_blame(self) -> Iterator[None]:
        """Whatever goes wrong inside is the fault of a component that died, if one did."""
        try:
            yield
        except (StackError, httpx.HTTPError, psycopg.Error):
            self.check()
            raise


class RunWatch:
    """Tells each change of a task's state once, with the reason where it failed."""

    def __init__(self, airflow: AirflowClient, lives: Lives, *, dag_id: str, run_id: str, tell: Tell) -> None:
        self._airflow = airflow
        self._lives = lives
        self._dag_id = dag_id
        self._run_id = run_id
        self._tell = tell
        self._known: dict[tuple[str, int], str] = {}
        self.failures: dict[str, str] = {}
        """Task -> why its last try failed."""

    def __call__(self, tasks: Sequence[TaskRun]) -> None:
        self._lives.check()
        for task in tasks:
            if task.state is None or self._known.get((task.task_id, task.try_number)) == task.state:
                continue
            self._known[task.task_id, task.try_number] = task.state
            self._tell(task.task_id, task.state, self._reason(task))

    def _reason(self, task: TaskRun) -> str:
        if task.state not in FAILING:
            return "" if task.seconds is None else f"{task.seconds:.1f} s"
        self.failures[task.task_id] = self._airflow.why(self._dag_id, self._run_id, task)
        return self.failures[task.task_id]
