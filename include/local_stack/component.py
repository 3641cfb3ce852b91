"""What every part of the stack has in common: how it is prepared, run, recognised and finished."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from artifacts.java import Java
from local_stack.errors import PreparationFailedError
from local_stack.layout import Layout
from local_stack.ports import LOOPBACK
from local_stack.process import Launch, ProcessRecord, run_to_end, stop, telling_lines
from local_stack.secrets_file import Secrets

JVM_FLAGS = (
    "-XX:+UseSerialGC",
    "-Xshare:auto",
    "-Djava.awt.headless=true",
    "-Dfile.encoding=UTF-8",
    "-Djava.net.preferIPv4Stack=true",
)


@dataclass(frozen=True, slots=True)
class Site:
    """What the components of one folder share."""

    layout: Layout
    ports: Mapping[str, int]
    secrets: Secrets
    java: Java
    schedules: bool = True
    """False: Airflow runs what somebody triggers, and nothing because of the clock."""
    object_store: bool = False
    """True: the lake lies in a bucket instead of a folder."""

    def address(self, listener: str) -> str:
        return f"{LOOPBACK}:{self.ports[listener]}"


class Component:
    """One step of coming up; most are a process, some only prepare something in another's process."""

    name: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()
    """Components that must be healthy before this one is launched."""
    stops_before: ClassVar[tuple[str, ...]] = ()
    """Others that must not stop before this one, beside those that it needs."""
    listener: ClassVar[str | None] = None
    """The port that it opens."""
    configured_with: ClassVar[frozenset[str]] = frozenset()
    """Listeners of others whose ports it got at its start; when one moves, it has to be started again."""
    is_process: ClassVar[bool] = True
    """False: it only prepares something in another's process."""
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    patience: ClassVar[float] = 120.0
    """Seconds until a start counts as failed."""
    stop_patience: ClassVar[float] = 20.0

    def __init__(self, site: Site) -> None:
        self.site = site

    @property
    def folder(self) -> Path:
        return self.site.layout.data(self.name)

    @property
    def log(self) -> Path:
        return self.site.layout.log(self.name)

    @property
    def address(self) -> str:
        """What a person would open or connect to; empty when there is nothing."""
        return ""

    def prepare(self) -> None:
        """Make folders and files, without the components it needs; a second call changes nothing."""

    def launch(self) -> Launch | None:
        """None: there is no process of its own."""
        return None

    def is_healthy(self, process: ProcessRecord) -> bool:
        """Whether it answers, and it is this process that answers; may raise while it is not yet so."""
        return process.is_alive

    def settle(self) -> None:
        """What can be done only once it answers; a second call changes nothing."""

    def stop(self, process: ProcessRecord) -> bool:
        """False when it had to be killed."""
        return stop(process, stop_signal=self.stop_signal, patience=self.stop_patience)

    def run_tool(self, tool: Launch) -> None:
        """A command that prepares something; its last words become the reason of a failure."""
        code, output = run_to_end(tool)
        if code != 0:
            reason = telling_lines(output, lines=2)
            raise PreparationFailedError(self.name, reason or f"exit code {code}")


def plain_environment(**own: str) -> dict[str, str]:
    """Only what a program needs; nothing of the caller's configuration leaks into the stack."""
    kept = ("PATH", "HOME", "LANG", "TMPDIR", "USER", "LOGNAME", "LD_LIBRARY_PATH", "TZ", "XDG_CACHE_HOME")
    return {**{name: os.environ[name] for name in kept if name in os.environ}, **own}
