"""Real child processes: how they end, and that nothing of them stays behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from cdc_lakehouse.orchestration.process import ChildProcess

PARENT = """
import os, signal, sys
from cdc_lakehouse.orchestration.process import ChildProcess, end_with_parent
child = ChildProcess([sys.executable, "-c", "import time; time.sleep(60)"], environment=os.environ)
print(child.pid, flush=True)
child.wait()
"""
GRANDPARENT = """
import os, signal, subprocess, sys
from cdc_lakehouse.orchestration.process import end_with_parent
code = "import signal, time; from cdc_lakehouse.orchestration.process import end_with_parent;"
code += "end_with_parent(signal.SIGTERM); print('asked', flush=True); time.sleep(60)"
child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
child.wait()
"""


def child(code: str) -> ChildProcess:
    return ChildProcess([sys.executable, "-uc", code], environment=os.environ)


def wait_until_gone(pid: int, limit: float = 10) -> bool:
    """A zombie is gone: only its parent has not asked yet."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.05)
    return False


def test_lines_of_both_streams_arrive_and_bad_bytes_do_not_stop_them():
    code = "import sys; print('out'); sys.stderr.write('err\\n'); sys.stdout.buffer.write(b'\\xff\\n')"
    with child(code) as process:
        assert sorted(process.lines()) == ["err", "out", "\ufffd"]
        assert process.wait() == 0


@pytest.mark.parametrize("code", [0, 1, 65, 70, 75, 78, 137])
def test_the_exit_code_is_the_childs(code):
    with child(f"raise SystemExit({code})") as process:
        assert process.wait() == code


def test_a_signal_is_a_negative_code():
    with child("import os; os.kill(os.getpid(), 9)") as process:
        assert process.wait() == -signal.SIGKILL


def test_kill_takes_the_whole_group_also_what_ignores_the_polite_signal():
    code = (
        "import os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "grandchild = subprocess.Popen(['sleep', '60'])\n"
        "print(grandchild.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with child(code) as process:
        grandchild = int(next(process.lines()))
        process.kill(grace_seconds=0.2)
        assert process.wait() == -signal.SIGKILL
    assert wait_until_gone(grandchild)


def test_the_child_has_a_group_of_its_own_and_stays_in_the_session():
    with child("import os; print(os.getpgid(0), os.getsid(0))") as process:
        assert next(process.lines()) == f"{process.pid} {os.getsid(0)}"


def test_leaving_the_block_ends_the_child():
    with pytest.raises(TimeoutError), child("import time; time.sleep(60)") as process:
        raise TimeoutError
    assert wait_until_gone(process.pid)


def test_killing_twice_does_nothing():
    with child("pass") as process:
        process.wait()
        process.kill()
        process.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's promise is Linux's")
@pytest.mark.parametrize("code", [PARENT, GRANDPARENT], ids=["child", "task process"])
def test_who_asked_for_it_dies_with_a_parent_that_is_killed(code):
    include = str(Path(__file__).parents[2] / "include")
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": include},
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
        assert wait_until_gone(pid)
