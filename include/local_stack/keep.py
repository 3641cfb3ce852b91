"""Run a program and start it again when it ends without being asked: `keep.py SECONDS PROGRAM ARGUMENT…`.

Airflow's scheduler, triggerer and Dag processor end when their database does not answer for some seconds. A
service manager would start them again; on a bare machine this process does. It is a separate script that
imports the standard library only.

- SIGTERM and SIGINT are passed on; then the program's exit code becomes ours.
- A program that never ran for SECONDS was never up: its exit code becomes ours too, so that `up` reports it.
- Otherwise it is started again after a pause, which doubles up to eight seconds while it keeps ending early.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from types import FrameType

PR_SET_PDEATHSIG = 1
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 8.0
_POLL = 0.1


class Keeper:
    """One program: running, or about to be started again."""

    def __init__(self, command: list[str], *, seconds_to_be_up: float) -> None:
        self._command = command
        self._seconds_to_be_up = seconds_to_be_up
        self._program: subprocess.Popen[bytes] | None = None
        self._is_stopping = False

    def ask_to_stop(self, number: int, _frame: FrameType | None) -> None:
        """Pass the signal on; a second one is passed on too. A program that has ended gets none: its process
        id may be that of another one by then."""
        self._is_stopping = True
        if self._program is not None:
            self._program.send_signal(number)

    def run(self) -> int:
        """Return the exit code that this process should end with."""
        pause = _FIRST_PAUSE
        was_up = False
        while True:
            began = time.monotonic()
            code = self._run_once()
            ended_early = time.monotonic() - began < self._seconds_to_be_up
            was_up = was_up or not ended_early
            if self._is_stopping or not was_up:
                return code
            pause = min(2 * pause, _LONGEST_PAUSE) if ended_early else _FIRST_PAUSE
            print(f"ended with exit code {code}; starting it again in {pause:.0f} s", flush=True)
            if self._wait_or_stop(pause):
                return code

    def _run_once(self) -> int:
        # In a new group, to end it whole: workers that a dead scheduler leaves would go on with its tasks.
        self._program = subprocess.Popen(self._command, process_group=0, preexec_fn=_die_with_the_keeper)
        if self._is_stopping:  # the signal came before there was a program to pass it on to
            self._program.terminate()
        code = self._program.wait()
        with suppress(ProcessLookupError):
            os.killpg(self._program.pid, signal.SIGKILL)
        return code if code >= 0 else 128 - code

    def _wait_or_stop(self, seconds: float) -> bool:
        """Return early, and True, when it is asked to stop."""
        deadline = time.monotonic() + seconds
        while not self._is_stopping and time.monotonic() < deadline:
            time.sleep(_POLL)
        return self._is_stopping


def _die_with_the_keeper() -> None:
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)


def main() -> None:
    seconds, *command = sys.argv[1:]
    keeper = Keeper(command, seconds_to_be_up=float(seconds))
    signal.signal(signal.SIGTERM, keeper.ask_to_stop)
    signal.signal(signal.SIGINT, keeper.ask_to_stop)
    sys.exit(keeper.run())


if __name__ == "__main__":
    main()
