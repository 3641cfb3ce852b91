"""A process of its own session: how it starts, whether it is still the one we started, how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

_LAUNCHER = Path(__file__).with_name("launch.py")
_KEEPER = Path(__file__).with_name("keep.py")
_OPEN_SESSION_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Launch:
    """What to run; secrets travel in `environment` or in files, never in `command`."""

    command: Sequence[str]
    environment: Mapping[str, str]
    folder: Path
    death_signal: signal.Signals = signal.SIGTERM
    """What it gets when its owner dies."""
    prefix: Sequence[str] = ()
    """Stands before everything else, the request to die with the owner too: a new user id would cancel it."""
    keep_after: float | None = None
    """Seconds after which it counts as up, and is started again whenever it ends without being asked. The
    recorded process is then the keeper (`keep.py`), and the program is its child."""


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """Enough to recognise a process in a later command: a pid alone may be somebody else's by then."""

    pid: int
    started: int
    """Clock ticks since boot."""

    def as_json(self) -> dict[str, int]:
        return asdict(self)

    @property
    def is_alive(self) -> bool:
        """A zombie is dead."""
        state, started = _state_and_start(self.pid)
        return state not in ("", "Z", "X") and started == self.started

    @property
    def is_foreign(self) -> bool:
        """The pid belongs to another process now."""
        state, started = _state_and_start(self.pid)
        return state != "" and started != self.started


def _state_and_start(pid: int) -> tuple[str, int]:
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return "", 0
    return after_name[0], int(after_name[19])


def _command(launch: Launch, *, owned: bool) -> list[str]:
    keeper: list[str] = []
    if launch.keep_after is not None:
        keeper = [sys.executable, "-S", "-E", str(_KEEPER), str(launch.keep_after)]
    if not owned:
        return [*launch.prefix, *keeper, *launch.command]
    death = [str(int(launch.death_signal)), str(os.getpid())]
    return [*launch.prefix, sys.executable, "-S", "-E", str(_LAUNCHER), *death, *keeper, *launch.command]


def spawn(launch: Launch, *, log: Path, owned: bool) -> tuple[subprocess.Popen[bytes], ProcessRecord]:
    """Start in a new session; `owned` ties it to the calling *thread*: it dies when that ends."""
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists():
        log.replace(log.with_suffix(".previous.log"))
    with log.open("wb") as output:
        process = subprocess.Popen(
            _command(launch, owned=owned),
            env=dict(launch.environment),
            cwd=launch.folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return process, ProcessRecord(process.pid, _state_and_start(process.pid)[1])


def run_to_end(tool: Launch) -> tuple[int, str]:
    """Exit code and output of a command that dies with this thread."""
    answer = subprocess.run(
        _command(tool, owned=True),
        env=dict(tool.environment),
        cwd=tool.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
        start_new_session=True,
    )
    return answer.returncode, answer.stdout


def session_members(record: ProcessRecord) -> list[psutil.Process]:
    """The process and all that it left in its session; titles and environments may have been overwritten."""
    if record.is_foreign:
        return []
    members = []
    for pid in psutil.pids():
        try:
            if os.getsid(pid) == record.pid and _state_and_start(pid)[0] not in ("", "Z", "X"):
                members.append(psutil.Process(pid))
        except (ProcessLookupError, PermissionError, psutil.NoSuchProcess):
            continue
    return members


def listens(record: ProcessRecord, port: int) -> bool:
    """Whether it is this process, and not a foreign one, that answers on the port."""
    for member in session_members(record):
        try:
            connections = member.net_connections(kind="tcp")
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        if any(c.status == psutil.CONN_LISTEN and c.laddr and c.laddr.port == port for c in connections):
            return True
    return False


def stop(record: ProcessRecord, *, stop_signal: signal.Signals, patience: float) -> bool:
    """Ask, wait, then kill what is left of the session; False when it had to be killed."""
    if record.is_alive:
        os.kill(record.pid, stop_signal)
    ended = wait_until(lambda: not record.is_alive, patience)
    if ended:
        wait_until(lambda: not session_members(record), _OPEN_SESSION_SECONDS)
    return kill_session(record) == 0 and ended


def kill_session(record: ProcessRecord) -> int:
    """SIGKILL to every member, again until none is left; returns how many there were."""
    killed = 0
    deadline = time.monotonic() + 10
    while (members := session_members(record)) and time.monotonic() < deadline:
        for member in members:
            try:
                member.kill()
                killed += 1
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(members, timeout=1)
    return killed


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def last_words(log: Path, *, lines: int = 3) -> str:
    """Why it ended, in its own words."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - 16_384))
            text = stream.read().decode(errors="replace")
    except FileNotFoundError:
        return "it wrote no log"
    return telling_lines(text, lines=lines) or "it wrote nothing"


def telling_lines(text: str, *, lines: int) -> str:
    """The last lines that name an error, else simply the last ones; stack frames say nothing to a person."""
    spoken = [
        line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")
    ]
    signs = ("error", "fatal", "exception", "refused", "in use", "no space")
    errors = [line for line in spoken if any(sign in line.casefold() for sign in signs)]
    return " | ".join((errors or spoken)[-lines:])
