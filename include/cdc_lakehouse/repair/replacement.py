"""Replace the contents of silver, its history and its tombstones by others, each in one commit.

Readers see the old table or the new one, never half of it: Delta's commit takes all files of the one out and
puts those of the other in. The older versions stay readable until VACUUM takes their files. The order is that
of a merge: history, tombstones, silver, whose commit carries the ledger. Tombstones that the new silver does
not need go behind it. A repair that was killed between two commits is repeated from the first one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.sql import DataFrame, SparkSession

from cdc_lakehouse.errors import LogDamagedError, StorageUnavailableError
from cdc_lakehouse.lake.applied import Sweep
from cdc_lakehouse.lake.filesystem import delta_options
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.state import TableState, is_there, look_into
from cdc_lakehouse.lake.steps import Cause, commit_step, standing_of
from cdc_lakehouse.lake.tables import allow_timestamps, create_if_missing
from cdc_lakehouse.lake.transaction import commit, fenced_statement
from cdc_lakehouse.silver.history.upkeep import RULES
from cdc_lakehouse.silver.schema.table_schema import silver_properties

DECISION = "repair"
"""Where the ledger of silver names the plan that replaced its contents."""
_NTZ = "timestamp_ntz"


@dataclass(frozen=True, slots=True)
class Contents:
    """A silver table with what lies beside it, at one moment each."""

    silver: DataFrame
    ledger: Ledger
    """Progress of that silver."""
    history: DataFrame | None
    tombstones: DataFrame | None
    rules: int = RULES
    """Number of the rules by which the versions of the history were made."""
    keeps_tombstones: bool = False
    """Whether the live tombstones stay, whatever `tombstones` says: more of them do no harm."""


@dataclass(frozen=True, slots=True)
class LiveTable:
    """The table that readers have, as the repair found it."""

    lake: Lake
    table: str
    state: TableState
    vectors: bool
    """Whether its tables have deletion vectors."""


def replace_contents(
    session: SparkSession,
    live: LiveTable,
    contents: Contents,
    *,
    attempt: str,
    decision: Mapping[str, Any],
) -> dict[str, int]:
    """Replace all contents, and return the versions of the tables that hold the new ones.

    A second call does the same once more. One that another writer overtakes is refused as superseded.
    """
    before = live.state
    cause = Cause(
        live.table,
        silver=before.seq + 1,
        # Of nobody: without the commit of silver that follows, the next merge recuts the history.
        behind="",
        attempt=attempt,
        life=before.life,
        made_by=contents.ledger.applied.made_by,
    )
    lake, versions = live.lake, {}
    if contents.history is not None:
        uri = lake.history(live.table)
        properties = silver_properties(vectors=live.vectors)
        _overwrite_step(
            session, uri, contents.history, cause=replace(cause, rules=contents.rules), new=properties
        )
        versions["history"] = standing_of(uri).version
    uri, tombstones = lake.tombstones(live.table), _tombstones_of(session, lake, live.table, contents)
    if tombstones is not None:
        _add_tombstones(session, uri, tombstones, cause=cause)
    ledger = next_ledger(contents.ledger, before, attempt=attempt, decision=decision)
    versions["silver"] = _overwrite_silver(session, lake.silver(live.table), contents.silver, ledger=ledger)
    if tombstones is not None:
        _overwrite_step(session, uri, tombstones, cause=cause, new={})
        versions["tombstones"] = standing_of(uri).version
    return versions


def _tombstones_of(session: SparkSession, lake: Lake, table: str, contents: Contents) -> DataFrame | None:
    """Return the new tombstones; None where the live ones stay, or there are none."""
    uri = lake.tombstones(table)
    if contents.keeps_tombstones:
        return None
    if contents.tombstones is None and is_there(uri):
        return session.read.format("delta").option("versionAsOf", standing_of(uri).version).load(uri).limit(0)
    return contents.tombstones


def _add_tombstones(session: SparkSession, uri: str, rows: DataFrame, *, cause: Cause) -> None:
    """Add the new tombstones to the live ones until silver has its new contents.

    One too many does no harm, and one that is missing could bring a row back if silver's commit fails. Those
    of another key are of no use to either silver.
    """
    if not is_there(uri) or session.read.format("delta").load(uri).schema.names != rows.schema.names:
        _overwrite_step(session, uri, rows, cause=cause, new={})
        return
    read = standing_of(uri)
    live = session.read.format("delta").option("versionAsOf", read.version).load(uri)
    _allow_types(session, uri, rows)
    commit_step(
        lambda: _overwrite(rows.unionByName(live), uri), session=session, uri=uri, read=read, cause=cause
    )


def next_ledger(progress: Ledger, before: TableState, *, attempt: str, decision: Mapping[str, Any]) -> Ledger:
    """Return the ledger of the commit that replaces silver: `progress`, as the next step of this table."""
    return replace(
        progress,
        seq=before.seq + 1,
        attempt=attempt,
        added={},
        decisions={DECISION: dict(decision)},
        applied=replace(progress.applied, follows=before.version),
    )


def read_table(session: SparkSession, uri: str, *, version: int | None = None) -> DataFrame:
    reader = session.read.format("delta")
    return (reader if version is None else reader.option("versionAsOf", version)).load(uri)


def sweeps_of(lake: Lake, table: str) -> tuple[Sweep, ...]:
    """Return what resyncs have decided about the live silver; nothing where its log is lost."""
    try:
        live = look_into(lake.silver(table), table=table)
    except LogDamagedError:
        return ()
    return () if live is None or live.ledger is None else live.ledger.applied.sweeps


def version_that_carried_out(uri: str, digest: str) -> int | None:
    """Return the version of a table whose commit names this plan; None where no commit of the log does."""
    try:
        commits = DeltaTable(uri, storage_options=delta_options(uri)).history()
    except (DeltaError, OSError) as exc:
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc
    return next((each["version"] for each in commits if _plan_in(each.get("userMetadata")) == digest), None)


def _plan_in(metadata: str | None) -> str | None:
    """Return the digest of the plan that a commit names in its ledger."""
    try:
        document = json.loads(metadata or "")
    except ValueError:
        return None
    decisions = document.get("decisions") if isinstance(document, dict) else None
    decision = decisions.get(DECISION) if isinstance(decisions, dict) else None
    return decision.get("plan") if isinstance(decision, dict) else None


def _overwrite_silver(session: SparkSession, uri: str, rows: DataFrame, *, ledger: Ledger) -> int:
    _allow_types(session, uri, rows)

    def execute() -> None:
        with fenced_statement(session, ledger):
            _overwrite(rows, uri)

    return commit(execute, uri=uri, ledger=ledger).version


def _overwrite_step(
    session: SparkSession, uri: str, rows: DataFrame, *, cause: Cause, new: Mapping[str, str]
) -> None:
    """Replace a table without a ledger; one that does not exist is made with the properties `new`."""
    create_if_missing(session, uri, schema=rows.schema, properties=new)
    _allow_types(session, uri, rows)
    read = standing_of(uri)
    commit_step(lambda: _overwrite(rows, uri), session=session, uri=uri, read=read, cause=cause)


def _allow_types(session: SparkSession, uri: str, rows: DataFrame) -> None:
    if _NTZ in rows.schema.simpleString():
        allow_timestamps(session, uri)


def _overwrite(rows: DataFrame, uri: str) -> None:
    rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(uri)
