"""`stack.json`: what this folder's stack remembers between two commands."""

from __future__ import annotations

import fcntl
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from local_stack.errors import BusyError
from local_stack.layout import Layout, write_private
from local_stack.process import ProcessRecord


class State:
    """Written as a whole after each change; threads of one command share it."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._guard = threading.Lock()

    def _read(self) -> dict[str, Any]:
        try:
            document = json.loads(self._layout.state_file.read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return {}
        return document if isinstance(document, dict) else {}

    def _write(self, key: str, value: object) -> None:
        write_private(self._layout.state_file, json.dumps({**self._read(), key: value}, indent=1) + "\n")

    @property
    def ports(self) -> dict[str, int]:
        return dict(self._read().get("ports", {}))

    def remember_ports(self, ports: dict[str, int]) -> None:
        with self._guard:
            self._write("ports", ports)

    @property
    def has_object_store(self) -> bool:
        return bool(self._read().get("object_store", False))

    def remember_object_store(self, *, used: bool) -> None:
        with self._guard:
            self._write("object_store", used)

    @property
    def processes(self) -> dict[str, ProcessRecord]:
        return {name: ProcessRecord(**record) for name, record in self._read().get("processes", {}).items()}

    def remember_process(self, name: str, record: ProcessRecord) -> None:
        with self._guard:
            self._write("processes", {**self._read().get("processes", {}), name: record.as_json()})

    def forget_process(self, name: str) -> None:
        """On a full disk it stays remembered, as dead: that must not keep others from being stopped."""
        with self._guard, suppress(OSError):
            kept = self._read().get("processes", {})
            kept.pop(name, None)
            self._write("processes", kept)


@contextmanager
def one_command(layout: Layout) -> Iterator[None]:
    """`up`, `down`, `start` and `stop` of one folder come one after another; a second one is refused."""
    layout.root.mkdir(parents=True, exist_ok=True)
    with layout.lock_file.open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(layout.root) from None
        yield
