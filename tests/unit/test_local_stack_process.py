"""Processes: recognised, explained, ended with all they started."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from local_stack.keep import Keeper
from local_stack.process import (
    Launch,
    ProcessRecord,
    kill_session,
    last_words,
    listens,
    run_to_end,
    session_members,
    spawn,
    stop,
    telling_lines,
    wait_until,
)

IGNORES_TERM = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print('ready', flush=True); time.sleep(60)"
)
LISTENS = (
    "import socket, time; server = socket.create_server(('127.0.0.1', 0)); "
    "print('ready', server.getsockname()[1], flush=True); time.sleep(60)"
)
SLEEPS = "import time; print('ready', flush=True); time.sleep(60)"
LEAVES_A_CHILD = (
    "import subprocess, sys; subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(60)']); "
    "print('ready', flush=True)"
)


@pytest.fixture
def start(tmp_path):
    started = []

    def run(code: str, *, owned: bool = False, keep_after: float | None = None) -> ProcessRecord:
        command = [sys.executable, "-S", "-c", code]
        launch = Launch(command, {"PATH": os.environ["PATH"]}, tmp_path, keep_after=keep_after)
        process, record = spawn(launch, log=tmp_path / "x.log", owned=owned)
        started.append((process, record))
        assert wait_until(lambda: "ready" in (tmp_path / "x.log").read_text(), 10)
        return record

    yield run
    for process, record in started:
        kill_session(record)
        process.wait()


def test_a_living_process_is_recognised(start):
    assert start(SLEEPS).is_alive


def test_another_process_with_the_same_pid_is_foreign(start):
    record = start(SLEEPS)
    reused = ProcessRecord(record.pid, record.started - 1)
    assert reused.is_foreign
    assert not reused.is_alive
    assert session_members(reused) == []


def test_a_zombie_is_dead(start):
    record = start(SLEEPS)
    os.kill(record.pid, signal.SIGKILL)
    assert wait_until(lambda: not record.is_alive, 5)
    assert Path(f"/proc/{record.pid}").exists()


def test_a_polite_process_is_stopped(start):
    record = start(SLEEPS)
    assert stop(record, stop_signal=signal.SIGTERM, patience=5)
    assert not record.is_alive


def test_a_stubborn_process_is_killed_and_that_is_said(start):
    record = start(IGNORES_TERM)
    assert not stop(record, stop_signal=signal.SIGTERM, patience=0.2)
    assert not record.is_alive


def test_what_a_dead_process_left_in_its_session_is_found(start):
    record = start(LEAVES_A_CHILD)
    assert wait_until(lambda: not record.is_alive, 5)
    assert kill_session(record) == 1
    assert session_members(record) == []


def test_an_owned_process_becomes_the_program(start):
    assert start(SLEEPS, owned=True).is_alive


def test_owned_processes_die_with_their_owner(tmp_path):
    owner = (
        "import sys, os; from pathlib import Path; from local_stack.process import *\n"
        f"folder = Path({str(tmp_path)!r})\n"
        f"launch = Launch([sys.executable, '-S', '-c', {SLEEPS!r}], dict(os.environ), folder)\n"
        "_, record = spawn(launch, log=folder / 'x.log', owned=True)\n"
        "wait_until(lambda: 'ready' in (folder / 'x.log').read_text(), 10)\n"
        "print(record.pid, record.started, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", owner],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "include")},
    )
    record = ProcessRecord(*map(int, answer.stdout.split()))
    assert wait_until(lambda: not record.is_alive, 5)


def program_of(record: ProcessRecord) -> psutil.Process:
    """The program that a keeper runs now."""
    assert wait_until(lambda: len(psutil.Process(record.pid).children()) == 1, 10)
    return psutil.Process(record.pid).children()[0]


def test_a_kept_program_that_ends_is_started_again(start):
    record = start(SLEEPS, keep_after=0.0)
    first = program_of(record)
    first.kill()
    assert wait_until(lambda: not first.is_running() and program_of(record).pid != first.pid, 10)
    assert record.is_alive


def test_a_kept_program_that_was_asked_to_end_is_not_started_again(start):
    record = start(SLEEPS, keep_after=0.0)
    assert stop(record, stop_signal=signal.SIGTERM, patience=5)
    assert session_members(record) == []


def test_a_kept_program_that_was_never_up_ends_its_keeper(start):
    record = start("import sys; print('ready', flush=True); sys.exit(3)", keep_after=60.0)
    assert wait_until(lambda: not record.is_alive, 10)


def test_what_a_kept_program_leaves_behind_does_not_outlive_it(start):
    record = start(LEAVES_A_CHILD, keep_after=60.0)
    assert wait_until(lambda: not record.is_alive, 10)
    assert session_members(record) == []


def test_no_signal_is_sent_to_the_process_id_of_a_program_that_has_ended(monkeypatch):
    """Between two starts of the program its old id may be that of another process."""
    keeper, sent = Keeper(["true"], seconds_to_be_up=60), []
    keeper.run()
    monkeypatch.setattr("os.kill", lambda pid, number: sent.append(pid))

    keeper.ask_to_stop(signal.SIGTERM, None)

    assert sent == []


def test_a_kept_program_dies_with_a_killed_keeper(start):
    record = start(SLEEPS, keep_after=0.0)
    program = program_of(record)
    os.kill(record.pid, signal.SIGKILL)
    assert wait_until(lambda: not program.is_running(), 10)


def test_only_the_own_process_counts_as_listening(start, tmp_path):
    record = start(LISTENS)
    port = int((tmp_path / "x.log").read_text().split()[1])
    assert listens(record, port)
    with socket.create_server(("127.0.0.1", 0)) as foreign:
        assert not listens(record, foreign.getsockname()[1])


def test_a_tools_output_and_code_come_back(tmp_path):
    code, output = run_to_end(Launch(["sh", "-c", "echo no space; exit 3"], dict(os.environ), tmp_path))
    assert (code, output) == (3, "no space\n")


def test_the_reason_is_the_line_with_the_error():
    log = "starting\nERROR: Port 8081 is in use\n\tat java.base/Thread.run\nbye\n"
    assert telling_lines(log, lines=2) == "ERROR: Port 8081 is in use"


def test_without_an_error_the_last_lines_are_the_reason():
    assert telling_lines("one\ntwo\nthree\n", lines=2) == "two | three"


def test_a_missing_log_has_a_sentence_too(tmp_path):
    assert last_words(tmp_path / "none.log") == "it wrote no log"
