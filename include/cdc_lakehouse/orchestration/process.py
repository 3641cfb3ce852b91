"""A child process that dies with its parent, in a process group of its own, read line by line."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Self

_PR_SET_PDEATHSIG = 1
_C_LIBRARY = ctypes.CDLL(None, use_errno=True)
"""Loaded here and not between fork and exec, where loading a library may deadlock."""


class ChildProcess:
    """A started command; leaving its `with` block ends whatever of it still runs."""

    def __init__(self, command: Sequence[str], *, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            list(command),
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            process_group=0,
            preexec_fn=_death_wish(),
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def lines(self) -> Iterator[str]:
        """Standard output and error, mixed as they come, until the last process that holds them is gone."""
        if self._process.stdout is not None:
            for line in self._process.stdout:
                yield line.rstrip()

    def wait(self) -> int:
        """The exit code; negative for the signal that ended the process."""
        return self._process.wait()

    def kill(self, *, grace_seconds: float = 3.0) -> None:
        """End the whole group: asked first, forced after the grace. A second call does nothing.

        The grace is below the 5 s after which Airflow's supervisor kills the task process.
        """
        self._signal_group(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=grace_seconds)
        self._signal_group(signal.SIGKILL)

    def _signal_group(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self.kill()
        if self._process.stdout is not None:
            self._process.stdout.close()


def end_with_parent(number: signal.Signals) -> None:
    """Let the kernel send this signal to *this* process when its parent dies; on Linux only."""
    if sys.platform == "linux":
        _C_LIBRARY.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


def _death_wish() -> Callable[[], None] | None:
    """What the child does before it becomes the command; elsewhere than on Linux nothing can be done.

    The signal is the kernel's, so it also comes when the parent is killed with SIGKILL. It is bound
    to the *thread* that starts the child: start it in the thread that waits for it.
    """
    return partial(_ask_to_die_with, os.getpid()) if sys.platform == "linux" else None


def _ask_to_die_with(parent: int) -> None:
    _C_LIBRARY.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # the parent died before it was asked for
        os.kill(os.getpid(), signal.SIGKILL)
