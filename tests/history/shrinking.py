"""The least part of a list that still fails: halves, quarters and so on are left out (ddmin)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Item = TypeVar("Item")


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
