"""Take rows out of a table for good: empty those of bronze, delete those of silver and beside it.

Bronze comes first: from then on no merge that begins can read the values. Silver's commit carries a ledger
with a new step, so a merge that has read them before is refused. Then history and tombstones follow, each in
the order of its writers: what such a merge has written there is counted and deleted behind silver's commit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.application.failures import is_conflict
from cdc_lakehouse.debezium.operations import ERASED
from cdc_lakehouse.errors import SupersededError
from cdc_lakehouse.lake.delta_transaction import DeltaTransaction
from cdc_lakehouse.lake.ledger import APPLICATION_ID, Ledger
from cdc_lakehouse.lake.names import quoted
from cdc_lakehouse.lake.state import TableState, read_state
from cdc_lakehouse.lake.steps import Cause, commit_step, standing_of
from cdc_lakehouse.lake.transaction import commit, fenced_statement
from cdc_lakehouse.repair.erasure.found_keys import Layer, count_rows
from cdc_lakehouse.repair.replacement import DECISION, next_ledger

logger = logging.getLogger(__name__)

_EMPTIED = (
    "key",
    "before",
    "after",
    "unavailable",
    "out_of_range",
    "headers",
    "decode_error",
    "raw_key",
    "raw_value",
)
"""Columns of bronze that may hold a value of a row, or say what is wrong with one."""
_MISSED = 0
"""Step of silver in a history that some merge did not finish: the next merge recuts it."""
_LEVELS = "follows"
"""Where the commit of silver names the steps that a history may have if it lacks none but this plan's."""
_Level = tuple[int, str]
"""A step of silver and the attempt that made it."""


@dataclass(frozen=True, slots=True)
class Erasure:
    """One attempt at one table."""

    session: SparkSession
    table: str
    attempt: str
    decision: Mapping[str, Any]
    """What ledgers say about it."""

    def empty_bronze(self, layer: Layer) -> int:
        """Take the values out of rows; their coordinates and places in the source's log stay.

        Return how many rows. The table holds as many as before, so its ledger counts the same offsets.
        """
        state = read_state(layer.uri, table=self.table)
        rows = count_rows(self.session, layer)
        if state is None or state.ledger is None or not rows:
            return 0
        table = DeltaTable.forPath(self.session, layer.uri)
        schema = table.toDF().schema
        nothing = {name: F.lit(None).cast(schema[name].dataType) for name in _EMPTIED if name in schema.names}
        ledger = replace(
            state.ledger,
            seq=state.seq + 1,
            attempt=self.attempt,
            added={},
            decisions={DECISION: {**self.decision, "rows": rows}},
        )
        values = {**nothing, "op": F.lit(ERASED), "attempt": F.lit(self.attempt)}
        self._commit(lambda: table.update(layer.condition, values), layer.uri, ledger)
        return rows

    def delete_from_silver(self, layer: Layer, beside: Sequence[Layer]) -> dict[str, int]:
        """Delete rows of silver, then those of its history and its tombstones.

        Return how many rows of each. Each table gets a step even where it has no rows: a merge that has read
        bronze before it was emptied may not have committed them yet, and the step refuses it. A second call
        adds steps without rows.
        """
        state = read_state(layer.uri, table=self.table)
        if state is None or state.ledger is None:
            return self._count_before_first_step((layer, *beside))
        rows = count_rows(self.session, layer, version=state.version)
        levels = _levels(state.ledger, self.decision)
        decision = {**self.decision, "rows": rows, _LEVELS: [[*level] for level in levels]}
        ledger = next_ledger(state.ledger, state, attempt=self.attempt, decision=decision)
        if rows:
            table = DeltaTable.forPath(self.session, layer.uri)
            self._commit(lambda: table.delete(layer.condition), layer.uri, ledger)
        else:
            commit(lambda: _state_step(self.session, layer.uri, state, ledger), uri=layer.uri, ledger=ledger)
        counts = {layer.name: rows}
        for each in beside:
            counts[each.name] = delete_step(self, each, levels=levels, life=state.life, after=ledger)
        return counts

    def _count_before_first_step(self, layers: Sequence[Layer]) -> dict[str, int]:
        """Return counts of 0 for a silver that has no step yet. Raise where a row of the keys is there."""
        counts = {layer.name: count_rows(self.session, layer) for layer in layers}
        if any(counts.values()):
            raise SupersededError(table=self.table, seq=0, attempt=self.attempt)
        return counts

    def _commit(self, statement: Callable[[], object], uri: str, ledger: Ledger) -> None:
        def execute() -> None:
            with fenced_statement(self.session, ledger):
                statement()

        commit(execute, uri=uri, ledger=ledger)


def delete_step(erasure: Erasure, layer: Layer, *, levels: Sequence[_Level], life: str, after: Ledger) -> int:
    """Delete rows of a table without a ledger, as its next step, and return how many.

    The step belongs to that of silver that was just made, `after`, if the newest one belonged to one of
    `levels`. One without rows is an empty append, since Delta commits no delete of nothing.
    """
    read = standing_of(layer.uri)
    rows = count_rows(erasure.session, layer, version=read.version)
    cause = Cause(
        erasure.table,
        silver=after.seq if (read.silver, read.attempt) in levels else _MISSED,
        behind=levels[-1][1],
        attempt=erasure.attempt,
        life=read.life or life,
        made_by=read.made_by,
        rules=read.rules,
    )

    def change() -> None:
        if rows:
            DeltaTable.forPath(erasure.session, layer.uri).delete(layer.condition)
        else:
            nothing = erasure.session.read.format("delta").load(layer.uri).limit(0)
            nothing.write.format("delta").mode("append").save(layer.uri)

    commit_step(change, session=erasure.session, uri=layer.uri, read=read, cause=cause)
    return rows


def purge(session: SparkSession, layer: Layer, *, table: str, attempt: str) -> None:
    """Write files again whose rows deletion vectors only hide; readers see no change.

    Raise `SupersededError` where a writer was faster: the next try does it. A second call changes nothing.
    """
    try:
        session.sql(f"REORG TABLE {quoted('delta', layer.uri)} APPLY (PURGE)")
    except Exception as exc:
        if not is_conflict(exc):
            raise
        logger.warning("purging gave way to a writer", extra={"layer": layer.name})
        raise SupersededError(table=table, seq=0, attempt=attempt) from exc


def _levels(ledger: Ledger, decision: Mapping[str, Any]) -> list[_Level]:
    """Return steps of silver with the same rows but for this plan: the newest, and those before its own."""
    newest: _Level = (ledger.seq, ledger.attempt)
    stated = ledger.decisions.get(DECISION, {})
    if stated.get("plan") != decision["plan"]:
        return [newest]
    return [*((seq, attempt) for seq, attempt in stated.get(_LEVELS, ())), newest]


def _state_step(session: SparkSession, uri: str, state: TableState, ledger: Ledger) -> None:
    """Commit a ledger without rows, on the version that was read."""
    transaction = DeltaTransaction.start(session, uri)
    if transaction.read_version != state.version:
        raise SupersededError(table=ledger.table, seq=ledger.seq - 1, attempt=ledger.attempt)
    transaction.versions_of([APPLICATION_ID])
    transaction.commit([], {APPLICATION_ID: ledger.seq}, metadata=ledger.to_json(), step=ledger.seq)
