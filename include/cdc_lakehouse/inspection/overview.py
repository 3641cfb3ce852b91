"""Where every table stands: its ledgers, its files, its newest run reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from cdc_lakehouse.config.models import Pipeline, Table
from cdc_lakehouse.config.values import duration
from cdc_lakehouse.connect.connectors import Connector, connector_state
from cdc_lakehouse.contract import Job, JobResult, TableResult
from cdc_lakehouse.database.positions import LogPosition, Moment
from cdc_lakehouse.debezium.signals import SnapshotKind, snapshot_advice
from cdc_lakehouse.debezium.topic_names import prefix_and_relation
from cdc_lakehouse.errors import LakehouseError
from cdc_lakehouse.lake.claims import Withheld
from cdc_lakehouse.lake.confirmations import lacking_since
from cdc_lakehouse.lake.confirmations_file import read_confirmations
from cdc_lakehouse.lake.instants import age_in_words
from cdc_lakehouse.lake.lag import count_offsets, offsets_behind, read_unread
from cdc_lakehouse.lake.ledger import Ranges, has_ended
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.quarantine import open_cases
from cdc_lakehouse.lake.reports import newest_results
from cdc_lakehouse.lake.snapshot import newest_snapshot
from cdc_lakehouse.lake.state import read_state
from cdc_lakehouse.lake.valid_through import ValidThrough

NEVER = "never run"
ENDED = "ended"
"""Status of a table that is gone at its source and whose reading a person ended."""
_ENDED_BY_A_SNAPSHOT = (Withheld.BEGAN_ANEW, Withheld.BEGINS_LATE)
_SHOWN = (Job.BRONZE_INGEST, Job.SILVER_MERGE, Job.VERIFY)


@dataclass(frozen=True, slots=True)
class TableOverview:
    pipeline: str
    table: str
    ingest: str
    """Status of the last one: advanced, idle, failed, superseded; that there was none; or that it ended."""
    merge: str
    seen_through: datetime | None
    """Newest source commit that silver has."""
    lag_seconds: float | None
    """Age of that commit; it grows while the source is quiet."""
    lag_offsets: int | None
    """What silver has not applied of all that bronze holds, and Kafka was seen to hold."""
    bronze_version: int | None
    silver_version: int | None
    rows: int | None
    open_cases: int
    """Records of bronze that could not be decoded: silver is incomplete by them."""
    problem: str
    """Sentence of the newest error that still stands; empty when there is none."""
    verified: str = ""
    """What the newest comparison with the source found; empty where there was none."""
    valid_through: datetime | None = None
    """Silver has all that the source had committed then, as its newest merge proved."""
    valid_position: str | None = None
    withheld: str = ""
    """Why silver says neither."""
    unproven_source: bool = False
    """True if the pipeline accepts connectors whose order of changes is not proven."""
    way_out: str = ""
    """The statement for the snapshot that ends what is withheld; empty where another way leads out."""
    stalled: str = ""
    """Why nothing new arrives, or since when silver lacks changes of its source; empty where all is well."""


def overview(
    root: str,
    pipelines: Iterable[Pipeline],
    *,
    now: datetime,
    connectors: Mapping[str, Connector] | None = None,
) -> list[TableOverview]:
    """One entry per table, in the order of the files. `connectors`: by prefix, as Kafka Connect says now."""
    found = []
    for pipeline in pipelines:
        lake = Lake(root=root, pipeline=pipeline.name)
        results = newest_results(lake)
        moments = {group: read_confirmations(lake.confirmations(group)).moments for group in pipeline.groups}
        unread = {group: read_unread(lake.unread(group)) for group in pipeline.groups}
        for table in pipeline.tables:
            behind = unread[table.group].get(table.name, {})
            entry = _table(lake, table.name, results, now=now, unread=behind)
            stalled = _explain_stall(
                entry, table, moments[table.group], results, now=now, connectors=connectors
            )
            way_out = ""
            if entry.withheld in _ENDED_BY_A_SNAPSHOT:
                signals = pipeline.signal_table
                way_out = snapshot_advice(SnapshotKind.BLOCKING, table.topics, signals=signals)
            found.append(
                replace(entry, stalled=stalled, way_out=way_out, unproven_source=pipeline.unproven_source)
            )
    return found


def _explain_stall(
    entry: TableOverview,
    table: Table,
    moments: Sequence[Moment],
    results: Sequence[JobResult],
    *,
    now: datetime,
    connectors: Mapping[str, Connector] | None,
) -> str:
    """Return why the connector does not run, now or in the newest ingest; else the broken `fresh_within`.

    Empty for a table that is gone at the source: it gets nothing new and lacks nothing.
    """
    newest = _newest(results, Job.BRONZE_INGEST, table.name)
    freshness = newest.freshness if isinstance(newest, TableResult) else {}
    unjudged = freshness.get("withheld", "")
    if entry.ingest == ENDED or not (unjudged or freshness.get("at_source", True)):
        return ""
    if connectors is not None:
        state = connector_state({prefix_and_relation(topic)[0] for topic in table.topics}, connectors)
        stopped = "" if state.runs else state.sentence
    else:
        stopped = "" if freshness.get("connector_runs", True) else str(freshness["connector"])
    if stopped or table.fresh_within is None:
        return stopped
    if unjudged:
        return f"`fresh_within: {table.fresh_within}` is not judged: {unjudged}"
    position = None if entry.valid_position is None else LogPosition.from_text(entry.valid_position)
    if position is None and entry.withheld != Withheld.NOT_CONFIRMED:
        return ""
    since = lacking_since(moments, position)
    if since is None or now - since <= duration(table.fresh_within):
        return ""
    age = age_in_words((now - since).total_seconds())
    return (
        f"silver lacks changes that the source had by {since:%Y-%m-%d %H:%M:%S} UTC, {age} ago "
        f"(`fresh_within: {table.fresh_within}`)"
    )


def _table(
    lake: Lake, table: str, results: Sequence[JobResult], *, now: datetime, unread: Ranges
) -> TableOverview:
    newest = {job: _newest(results, job, table) for job in _SHOWN}
    problems = [_problem(results, job, table) for job in newest]
    layers = _Layers(lag_offsets=count_offsets(unread) or None)
    try:
        layers = _read_layers(lake, table, unread=unread)
    except LakehouseError as error:
        problems.insert(0, str(error))
    seen = layers.seen_through
    claim = _claim(results, table, layers.valid)
    return TableOverview(
        pipeline=lake.pipeline,
        table=table,
        ingest=ENDED if layers.has_ended else _status(newest[Job.BRONZE_INGEST]),
        merge=_status(newest[Job.SILVER_MERGE]),
        seen_through=seen,
        valid_through=claim.valid_through,
        valid_position=claim.position,
        withheld=claim.withheld,
        lag_seconds=None if seen is None else round((now - seen).total_seconds(), 1),
        lag_offsets=layers.lag_offsets,
        bronze_version=layers.bronze_version,
        silver_version=layers.silver_version,
        rows=layers.rows,
        open_cases=layers.open_cases,
        problem=next(filter(None, problems), ""),
        verified=_verified(newest[Job.VERIFY]),
    )


@dataclass(frozen=True, slots=True)
class _Layers:
    """State of a table by the ledgers of both layers."""

    has_ended: bool = False
    seen_through: datetime | None = None
    valid: ValidThrough | None = None
    lag_offsets: int | None = None
    bronze_version: int | None = None
    silver_version: int | None = None
    rows: int | None = None
    open_cases: int = 0


def _read_layers(lake: Lake, table: str, *, unread: Ranges) -> _Layers:
    bronze = read_state(lake.bronze(table), table=table)
    silver = read_state(lake.silver(table), table=table)
    held = bronze.ledger if bronze is not None else None
    ledger = silver.ledger if silver is not None else None
    seen = ledger.seen_through if ledger is not None else None
    snapshot = newest_snapshot(lake.silver(table)) if silver is not None else None
    return _Layers(
        has_ended=held is not None and has_ended(held),
        seen_through=_instant(seen),
        valid=None if ledger is None else ledger.valid_through,
        lag_offsets=offsets_behind(held, ledger, unread=unread) if held or unread else None,
        bronze_version=None if bronze is None else bronze.version,
        silver_version=None if silver is None else silver.version,
        rows=None if snapshot is None else snapshot.row_count,
        open_cases=0 if bronze is None else open_cases(lake.bronze(table)),
    )


@dataclass(frozen=True, slots=True)
class _Claim:
    valid_through: datetime | None
    position: str | None
    withheld: str


def _claim(results: Sequence[JobResult], table: str, stated: ValidThrough | None) -> _Claim:
    """As the newest merge told it that did its work: one that found nothing to apply may prove more than the
    ledger states. Without any report the ledger alone is asked."""
    for result in results:
        for told in result.tables if result.job is Job.SILVER_MERGE else ():
            if told.table == table and told.error is None and (told.valid_position or told.withheld):
                return _Claim(_instant(told.valid_through), told.valid_position, told.withheld or "")
    if stated is None:
        return _Claim(None, None, "")
    return _Claim(_instant(stated.time), stated.position, "")


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _newest(results: Sequence[JobResult], job: Job, table: str) -> TableResult | JobResult | None:
    """What the newest application of this job said about the table; itself where it failed before that."""
    for result in results:
        if result.job is job:
            for told in result.tables:
                if told.table == table:
                    return told
            if result.error is not None and not result.tables:
                return result
    return None


def _status(newest: TableResult | JobResult | None) -> str:
    if newest is None:
        return NEVER
    return "failed" if isinstance(newest, JobResult) else str(newest.status)


def _verified(newest: TableResult | JobResult | None) -> str:
    return newest.word if isinstance(newest, TableResult) else _status(newest) if newest else ""


def _problem(results: Sequence[JobResult], job: Job, table: str) -> str:
    newest = _newest(results, job, table)
    return f"{job}: {newest.error.sentence}" if newest is not None and newest.error is not None else ""


def counted(found: Sequence[TableOverview]) -> Mapping[str, int]:
    """For the line below the table."""
    return {
        "tables": len(found),
        "empty": sum(table.silver_version is None for table in found),
        "failed": sum(bool(table.problem or table.stalled) for table in found),
    }
