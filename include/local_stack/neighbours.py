"""Other stacks of this user: their ports count as taken as soon as they are chosen."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from artifacts.cache import cache_root, exclusive
from local_stack.layout import Layout
from local_stack.ports import OBJECT_STORE, PortChoice, choose_ports, is_free
from local_stack.starting import Report
from local_stack.state import State

_COMPONENTS = {
    "kafka-controller": "kafka",
    "airflow": "airflow-api-server",
    **dict.fromkeys(OBJECT_STORE, "object-store"),
}
"""Listeners whose component has another name."""

_SECONDS_TO_OPEN = 120.0
"""After this long a chosen port is open, or its stack did not come up."""


def settle_ports(
    layout: Layout, state: State, *, alive: Collection[str], listeners: Mapping[str, int], report: Report
) -> PortChoice:
    """Choose, remember and tell; ports of components that are `alive` count as free for them."""
    before = state.ports
    ours = {port for name, port in before.items() if _COMPONENTS.get(name, name) in alive}
    with ports_of_neighbours(layout) as taken:
        choice = choose_ports(
            before,
            listeners=listeners,
            seed=str(layout.root),
            free=lambda port: port in ours or (port not in taken and is_free(port)),
        )
        state.remember_ports(dict(choice.ports))
    for listener, port in choice.moved.items():
        report(listener, f"port {port} is taken by another program, now {choice.ports[listener]}", 0.0)
    return choice


@contextmanager
def ports_of_neighbours(layout: Layout) -> Iterator[set[int]]:
    """Nobody else chooses within the block; remember the own choice before it ends."""
    with exclusive("ports"):
        known = cache_root() / "stacks.txt"
        lines = known.read_text().splitlines() if known.exists() else []
        roots = [root for root in dict.fromkeys(lines) if Path(root).is_dir() and root != str(layout.root)]
        known.write_text("".join(f"{root}\n" for root in (*roots, layout.root)))
        yield {port for root in roots for port in reserved_ports(Layout(Path(root)), now=time.time())}


def reserved_ports(layout: Layout, *, now: float) -> set[int]:
    """Of a stack that runs or is just starting."""
    try:
        changed = layout.state_file.stat().st_mtime
    except FileNotFoundError:
        return set()
    state = State(layout)
    runs = any(record.is_alive for record in state.processes.values())
    return set(state.ports.values()) if runs or now - changed < _SECONDS_TO_OPEN else set()
