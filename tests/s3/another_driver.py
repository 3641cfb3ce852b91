"""A driver in a process of its own: told a lake, it ingests offset 2 there and says how that ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from cdc_lakehouse.application.session import LazySession
from cdc_lakehouse.config.settings import Role, connection_from_environment
from cdc_lakehouse.config.storage_settings import storage_settings
from cdc_lakehouse.errors import LakehouseError

TESTS = Path(__file__).parents[1]
_SAYS = "driver: "


class AnotherDriver:
    """One order at a time; started with the first, and again after it was killed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def begin(self, root: str) -> None:
        process = self._process = self._process or self._started()
        assert process.stdin is not None
        process.stdin.write(f"{root}\n")
        process.stdin.flush()

    def outcome(self) -> str:
        """`ok`, or the class of the error."""
        assert self._process is not None
        assert self._process.stdout is not None
        said = next(line for line in self._process.stdout if line.startswith(_SAYS))
        return said.removeprefix(_SAYS).strip()

    def kill(self) -> None:
        """With its JVM and its workers. A second call does nothing."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.communicate()
            self._process = None

    @staticmethod
    def _started() -> subprocess.Popen[str]:
        path = os.pathsep.join(map(str, (TESTS.parent / "include", TESTS, TESTS / "spark")))
        return subprocess.Popen(
            [sys.executable, __file__],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


def serve() -> None:
    from chain import Chain  # type: ignore[import-not-found]
    from orders import ORDERS, know, order  # type: ignore[import-not-found]

    storage = storage_settings(connection_from_environment(Role.STORAGE))
    engine = LazySession("another driver", storage=storage)
    for line in sys.stdin:
        chain = Chain(engine, root=line.strip())
        know(chain)
        try:
            chain.ingest(ORDERS, [order(2, 3, note="another's")])
            said = "ok"
        except LakehouseError as exc:
            said = type(exc).__name__
        print(f"\n{_SAYS}{said}", flush=True)


if __name__ == "__main__":
    serve()
