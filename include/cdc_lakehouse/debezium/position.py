"""Where an event stands in the source's order (`cdc-semantics` §2, rule 2.1)."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from cdc_lakehouse.debezium.operations import Operation
from cdc_lakehouse.debezium.source import Source

FULL_SNAPSHOT = frozenset({"first", "first_in_data_collection", "true", "last_in_data_collection", "last"})
INCREMENTAL = "incremental"
_BINLOG_NUMBER = re.compile(r"\.(\d{1,18})$", re.ASCII)
_MAX = 2**63 - 1

MYSQL_CONNECTORS = frozenset({"mysql", "mariadb"})


@dataclass(frozen=True, order=True, slots=True, kw_only=True)
class Position:
    """Compared from left to right; a later position wins, an equal one is the same event (rule 2.4)."""

    epoch: int = 0
    """Joined from the bronze ledger by the merge; a record cannot know it (rule 2.5)."""
    phase: int
    commit: int
    streamed: int
    row: int
    order_in_tx: int
    kind: int

    def is_after(self, other: Position) -> bool:
        return self > other


def position_of(
    source: Source | None, *, op: str | None, total_order: int | None, kafka_offset: int
) -> Position | None:
    """None when the event does not say where it stands: it decodes, but cannot be applied."""
    if source is None or op is None:
        return None
    place = _place(source, kafka_offset)
    if place is None:
        return None
    commit, row, order = place
    return Position(
        phase=0 if source.snapshot in FULL_SNAPSHOT else 1,
        commit=commit,
        streamed=0 if source.snapshot in FULL_SNAPSHOT or source.snapshot == INCREMENTAL else 1,
        row=row,
        order_in_tx=order if order is not None else total_order or 0,
        kind=0 if op == Operation.DELETE else 1,
    )


def _place(source: Source, kafka_offset: int) -> tuple[int, int, int | None] | None:
    """(commit, row, order within the transaction where the log itself has one)."""
    if source.connector == "postgresql":
        return _postgresql(source)
    if source.connector in MYSQL_CONNECTORS:
        return _mysql(source)
    return 0, kafka_offset, None


def _postgresql(source: Source) -> tuple[int, int, None] | None:
    sequence = sequence_pair(source.sequence)
    if sequence is None:
        return None
    commit, own = sequence
    row = source.lsn if source.lsn is not None else own
    return None if row is None else (commit or 0, row, None)


def _mysql(source: Source) -> tuple[int, int, int] | None:
    number = binlog_number(source.file or "")
    if number is None or source.pos is None:
        return None
    return number, source.pos, source.row or 0


def binlog_number(file: str) -> int | None:
    found = _BINLOG_NUMBER.search(file)
    return None if found is None else int(found.group(1))


def sequence_pair(text: str | None) -> tuple[int | None, int | None] | None:
    """`[null,"26002808"]` as integers; None for a text that is not such a pair."""
    if text is None:
        return None, None
    try:
        first, second = json.loads(text)
        return _log_position(first), _log_position(second)
    except (ValueError, TypeError, RecursionError):
        return None


def _log_position(text: object) -> int | None:
    if text is None:
        return None
    if not (isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) <= 19):
        raise ValueError("not a log position")
    number = int(text)
    if number > _MAX:
        raise ValueError("not a log position")
    return number
