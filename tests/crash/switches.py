"""How a mechanism is turned off for one order, in the test's own driver. The product has no switch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from cdc_lakehouse.silver import applying

off: ContextVar[frozenset[str]] = ContextVar("guards off", default=frozenset())


def switched(owner: Any, name: str, guard: str, instead: Callable[..., Any]) -> None:
    """`owner.name` becomes `instead` for orders that turn the guard off; it gets the original first."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def chosen(*arguments: Any, **named: Any) -> Any:
        if guard in off.get():
            return instead(original, *arguments, **named)
        return original(*arguments, **named)

    setattr(owner, name, chosen)


def nothing(_original: Any, *_arguments: Any, **_named: Any) -> None:
    return None


def by_merge(guard: str) -> None:
    """Rows are replaced by MERGE then: what replaces them by their place has guards of its own."""
    switched(applying, "suits", guard, lambda *_: False)
