"""A silver table with a row per event, folded into the rows that its source must have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from history.tables import BORN  # type: ignore[import-not-found]

Row = dict[str, Any]
_PLACE = ("epoch", "phase", "commit", "streamed", "row", "order_in_tx", "kind")


def rows_alive(table: pa.Table) -> pa.Table:
    """The newest event of each row by the number that it was born with, and nothing of deleted rows."""
    facts = list(_facts(table))
    alive: dict[int, int] = {}
    for _, op, born, number in sorted(facts):
        if op == "t":
            alive.clear()
        elif op == "d":
            alive.pop(born, None)
        else:
            alive[born] = number
    return table.take(pa.array(sorted(alive.values()), pa.int64()))


def told_twice(table: pa.Table) -> list[str]:
    """Events that stand there more than once."""
    events = Counter((place, op, born) for place, op, born, _ in _facts(table))
    return [f"{op} of row {born} at {place}" for (place, op, born), count in events.items() if count > 1]


def _facts(table: pa.Table) -> Iterator[tuple[tuple[int, ...], str, int, int]]:
    """One transaction has one commit before it, the smallest that was told (rule 2.2)."""
    places = [tuple(each[name] for name in _PLACE) for each in table["_cdc_position"].to_pylist()]
    transactions = table["_cdc_tx_id"].to_pylist()
    commits: dict[Any, int] = {}
    for place, transaction in zip(places, transactions, strict=True):
        commits[transaction] = min(place[2], commits.get(transaction, place[2]))
    ops, born = table["_cdc_op"].to_pylist(), table[BORN].to_pylist()
    for number, (place, transaction) in enumerate(zip(places, transactions, strict=True)):
        commit = place[2] if transaction is None else commits[transaction]
        yield (*place[:2], commit, *place[3:]), ops[number], born[number] or 0, number
