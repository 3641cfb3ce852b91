"""The least part of a list that still fails: halves, quarters and so on are left out (ddmin)."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import TypeVar

from history.steps import FAULTS, Kind, Step  # type: ignore[import-not-found]

Item = TypeVar("Item")


def thinned(steps: list[Step], tables: Collection[str]) -> list[list[Step]]:
    """What is worth trying first, in this order: large parts that a find mostly does not need."""
    ours = [step for step in steps if not step.table or step.table in tables or not tables]
    pauses = {*FAULTS, Kind.DRAIN, Kind.CUT, Kind.QUIET}
    writes = [step for step in ours if step.kind not in pauses]
    used = {step.session for step in writes if step.table}
    return [[step for step in writes if step.session in used], writes, ours]


def shrunk(items: list[Item], fails: Callable[[list[Item]], bool], *, seconds: float) -> list[Item]:
    """Known to fail as it is given. Ends with the time: what is left then is failing too."""
    until = time.monotonic() + seconds
    parts = 2
    while len(items) >= 2:
        size = -(-len(items) // parts)
        for start in range(0, len(items), size):
            rest = items[:start] + items[start + size :]
            if time.monotonic() > until:
                return items
            if rest and fails(rest):
                items, parts = rest, max(2, parts - 1)
                break
        else:
            if size == 1:
                return items
            parts = min(len(items), 2 * parts)
    return items
