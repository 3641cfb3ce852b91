"""The mechanisms between bronze and silver, each with what it takes to turn it off for one order."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from cdc_lakehouse.lake.row_replacement import RowReplacement
from cdc_lakehouse.silver import applying, table_merge, tombstones
from crash.switches import nothing, switched  # type: ignore[import-not-found]


def _replacement_fence() -> None:
    """Rows may be replaced for a step that was taken."""
    switched(RowReplacement, "refuse_unless_next", "replacement_fence", nothing)


def _tombstones() -> None:
    """Nobody keeps where a key was deleted."""
    switched(applying, "bury", "tombstones", nothing)


_to_bury: ContextVar[Callable[[], Any]] = ContextVar("to bury")


def _tombstones_first() -> None:
    """They are written behind silver."""

    def later(original: Any, *arguments: Any, **named: Any) -> None:
        _to_bury.set(lambda: original(*arguments, **named))

    def first(original: Any, *arguments: Any, **named: Any) -> Any:
        found = original(*arguments, **named)
        _to_bury.get(lambda: None)()
        return found

    switched(applying, "bury", "tombstones_first", later)
    switched(applying, "_applied", "tombstones_first", first)


def _buried_delete() -> None:
    """A delete whose tombstone is there is taken for one that was applied."""

    def not_after(original: Any, one: Any, other: Any) -> Any:
        return ~original(other, one)

    switched(tombstones, "is_after", "buried_delete", not_after)


def _truncate_mark() -> None:
    """A truncate takes away what is there, and is forgotten."""

    def forgetful(original: Any, *arguments: Any, **named: Any) -> Any:
        return original(*arguments, **{**named, "applied": replace(named["applied"], cleared=None)})

    switched(table_merge, "next_ledger", "truncate_mark", forgetful)


SILVER_GUARDS: dict[str, Callable[[], None]] = {
    "replacement_fence": _replacement_fence,
    "tombstones": _tombstones,
    "tombstones_first": _tombstones_first,
    "buried_delete": _buried_delete,
    "truncate_mark": _truncate_mark,
}
