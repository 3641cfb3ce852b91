"""The mechanisms between bronze and silver, each with what it takes to turn it off for one order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from cdc_lakehouse.lake import state
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.row_replacement import RowReplacement
from cdc_lakehouse.silver import applying, table_merge
from cdc_lakehouse.silver.writing import merge, replace_rows
from crash.switches import by_merge, nothing, switched  # type: ignore[import-not-found]


def unfenced(_original: Any, session: Any, ledger: Ledger) -> Any:
    """A statement that says what it is, whoever was faster."""
    return _only_metadata(session, ledger)


@contextmanager
def _only_metadata(session: Any, ledger: Ledger) -> Iterator[None]:
    session.conf.set("spark.databricks.delta.commitInfo.userMetadata", ledger.to_json())
    try:
        yield
    finally:
        session.conf.unset("spark.databricks.delta.commitInfo.userMetadata")


def _merge_fence() -> None:
    """A MERGE may state a step that was taken."""
    switched(merge, "fenced_statement", "merge_fence", unfenced)


def _read_back() -> None:
    """A statement that did nothing is taken for one that did what it says."""

    def trusted(_original: Any, statement: Callable[[], None], *, uri: str, ledger: Ledger) -> Any:
        statement()
        return state.read_state(uri, table=ledger.table)

    switched(merge, "commit", "read_back", trusted)
    by_merge("read_back")


def _merge_outcome() -> None:
    """A MERGE that threw is taken for one that did not happen."""
    switched(merge, "commit", "merge_outcome", _as_told)
    by_merge("merge_outcome")


def _replacement_outcome() -> None:
    """The same, where rows are replaced by their place."""
    switched(replace_rows, "commit", "replacement_outcome", _as_told)


def _as_told(original: Any, statement: Callable[[], None], *, uri: str, ledger: Ledger) -> Any:
    failures: list[Exception] = []

    def kept() -> None:
        try:
            statement()
        except Exception as exc:
            failures.append(exc)
            raise

    found = original(kept, uri=uri, ledger=ledger)
    if failures:
        raise failures[0]
    return found


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


def _truncate_mark() -> None:
    """A truncate takes away what is there, and is forgotten."""

    def forgetful(original: Any, *arguments: Any, **named: Any) -> Any:
        return original(*arguments, **{**named, "applied": replace(named["applied"], cleared=None)})

    switched(table_merge, "next_ledger", "truncate_mark", forgetful)


SILVER_GUARDS: dict[str, Callable[[], None]] = {
    "merge_fence": _merge_fence,
    "read_back": _read_back,
    "merge_outcome": _merge_outcome,
    "replacement_outcome": _replacement_outcome,
    "replacement_fence": _replacement_fence,
    "tombstones": _tombstones,
    "tombstones_first": _tombstones_first,
    "truncate_mark": _truncate_mark,
}
