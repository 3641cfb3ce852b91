"""What a driver can be made to suffer: a pause before a commit, an answer lost behind one, its end there.

All commits go through a few calls into the JVM, whoever makes them; they are met there, so that nothing
of the product has to know of it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from py4j.java_gateway import JavaMember
from pyspark import SparkContext

_COMMITS = frozenset(
    {
        ("org.apache.spark.sql.classic.DataFrameWriter", "save"),
        ("org.apache.spark.sql.delta.OptimisticTransaction", "commit"),
        ("io.delta.tables.DeltaMergeBuilder", "execute"),
        ("io.delta.tables.DeltaTable", "delete"),
        ("org.apache.spark.sql.classic.SparkSession", "sql"),
    }
)
_STATEMENT = "ALTER TABLE"
"""What SQL commits here; all else that is asked in it reads."""
_NAMES = frozenset(name for _, name in _COMMITS)
_PATIENCE = 600.0
GIVEN_UP = ".given-up"
"""Of the file beside `pause` that says so: that its run failed then says nothing of the product."""


class EndedError(BaseException):
    """Nothing of the process is done any more, and nothing of the product may catch it."""


@dataclass(slots=True)
class Faults:
    """Of one order. `pause` is a file: while it exists, every commit waits before it is made."""

    pause: Path | None = None
    lose_answers: frozenset[int] = frozenset()
    """Of which commits, counted from 1."""
    lost: Path | None = None
    """A file that is made when an answer is lost."""
    ends_behind: int | None = None
    """The commit behind which its process ends."""
    commits: int = 0
    guard: Lock = field(default_factory=Lock)

    @classmethod
    def of(cls, order: Mapping[str, Any]) -> Faults:
        pause, lost = order.get("pause"), order.get("lost")
        return cls(
            pause=Path(pause) if pause else None,
            lose_answers=frozenset(order.get("lose_answers", ())),
            lost=Path(lost) if lost else None,
            ends_behind=order.get("ends_behind"),
        )

    def before(self) -> None:
        if self.pause is None or not self.pause.exists():
            return
        self.pause.with_suffix(".reached").touch()
        deadline = time.monotonic() + _PATIENCE
        while self.pause.exists():
            if time.monotonic() > deadline:
                self.pause.with_suffix(GIVEN_UP).touch()
                raise TimeoutError("nobody let the commit go on")
            time.sleep(0.02)

    def behind(self) -> None:
        with self.guard:
            self.commits += 1
            lost = self.commits in self.lose_answers
            ends = self.ends_behind is not None and self.commits >= self.ends_behind
        if ends:
            raise EndedError
        if lost:
            if self.lost is not None:
                self.lost.touch()
            _break_off()


def _break_off() -> None:
    """As Delta's own commit does when the store does not answer: the JVM throws what it would throw."""
    jvm = SparkContext._active_spark_context._jvm
    jvm.scala.util.Failure(jvm.java.net.SocketTimeoutException("no answer")).get()


current: ContextVar[Faults | None] = ContextVar("faults", default=None)


def install() -> None:
    """Once per process; an order without faults passes through."""
    call = JavaMember.__call__

    def called(self: Any, *arguments: Any) -> Any:
        faults = current.get() if self.name in _NAMES else None
        if faults is None or not _is_commit(self, arguments):
            return call(self, *arguments)
        faults.before()
        answer = call(self, *arguments)
        faults.behind()
        return answer

    JavaMember.__call__ = called


def _is_commit(member: Any, arguments: Sequence[Any]) -> bool:
    if member.name == "sql" and not str(arguments[0]).startswith(_STATEMENT):
        return False
    kind = member.container.getClass().getName()
    return any(kind.startswith(known) and member.name == name for known, name in _COMMITS)
