"""Read a table, or some of its rows, from the source again, and remove rows that the source does not have.

The connector is asked for an incremental snapshot by the table of signals. Its rows come through Kafka and
bronze like any others. A snapshot never removes a row: where it was one of the whole table, silver is swept.
That is, rows go that have no event from behind the place in the log at which the signal was sent
(decision 0060).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any

from pyspark.sql import functions as F

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.committed_offsets import committed_offsets
from cdc_lakehouse.bronze.confirming import ask_connectors
from cdc_lakehouse.bronze.look import connect
from cdc_lakehouse.config.kafka_settings import librdkafka_settings
from cdc_lakehouse.config.models import DeletesLimit, Table
from cdc_lakehouse.config.settings import Role
from cdc_lakehouse.contract import Job
from cdc_lakehouse.database.access import Database
from cdc_lakehouse.database.capture import read_capture
from cdc_lakehouse.database.moments import moment_of
from cdc_lakehouse.database.positions import LogPosition
from cdc_lakehouse.database.signal_table import SignalTable
from cdc_lakehouse.debezium.connector_offset import server_of
from cdc_lakehouse.debezium.position import INCREMENTAL
from cdc_lakehouse.debezium.signals import MOST_DATA, SnapshotKind, snapshot_data
from cdc_lakehouse.debezium.topic_names import prefix_and_relation
from cdc_lakehouse.errors import (
    PlanChangedError,
    RepairNotVerifiedError,
    RepairRefusedError,
    ResyncNotEndedError,
)
from cdc_lakehouse.lake.applied import Sweep
from cdc_lakehouse.lake.place import Place
from cdc_lakehouse.lake.state import read_state
from cdc_lakehouse.repair.incremental_snapshot import SentSignal, read_to_end, wait_for_end
from cdc_lakehouse.repair.operation import Outcome
from cdc_lakehouse.repair.plan import TablePlan
from cdc_lakehouse.repair.records import RepairRecord, begun_repairs, read_record, write_record
from cdc_lakehouse.silver.look import MergeTask, look_at
from cdc_lakehouse.silver.table_merge import merge_table
from cdc_lakehouse.verification.columns import ColumnPlan, KeyNotComparedError, plan_columns
from cdc_lakehouse.verification.compare import Comparison
from cdc_lakehouse.verification.differences import Kind
from cdc_lakehouse.verification.job import ends_of
from cdc_lakehouse.verification.sides import source_batch
from cdc_lakehouse.verification.source import Relation, SourceSnapshot, snapshot_of
from cdc_lakehouse.verification.subject import NotComparedError, Subject, subject_of
from cdc_lakehouse.verification.table_verify import Verification, compare_rows
from cdc_lakehouse.verification.unsent import Unsent, count_at_source, find_unsent, keys_only

logger = logging.getLogger(__name__)

CONDITION, WAIT_MINUTES = "condition", "wait_minutes"
_USUAL_WAIT = 60
_ROWS_A_SECOND = 5_000
"""What a connector sends of a snapshot, about: measured 8,000 to 11,000 on two busy cores."""
_SIGNALLED = "signalled"


@dataclass(frozen=True, slots=True)
class _Source:
    """The table at its source, at one moment, beside silver."""

    relation: Relation
    columns: ColumnPlan
    comparison: Comparison
    rows_sent: int


class Resync:
    job = Job.RESYNC
    options = frozenset({CONDITION, WAIT_MINUTES})

    def plan(self, application: Application, table: Table) -> TablePlan:
        condition = application.request.options.get(CONDITION, "").strip() or None
        wait_minutes = _wait_minutes(table, application.request.options)
        subject = _require_subject(application, table)
        database = Database.of(application.connection(Role.SOURCE))
        source = _look_at_source(table, subject, database, condition=condition)
        _require_connector(application, table, database, subject.topic, relation=str(source.relation))
        data = snapshot_data(SnapshotKind.INCREMENTAL, [str(source.relation)], condition=condition)
        if len(data) > MOST_DATA:
            raise _refused(
                table, f"its signal has {len(data)} characters, {MOST_DATA} fit: shorten the condition"
            )
        options = {} if condition is None else {CONDITION: condition}
        counts = {kind: sum(each.kind is kind for each in source.comparison.found) for kind in Kind}
        return TablePlan(
            operation=self.job,
            pipeline=application.pipeline.name,
            table=table.name,
            options={**options, WAIT_MINUTES: str(wait_minutes)},
            basis={
                "repairs": begun_repairs(application.lake, table.name),
                "relation": str(source.relation),
                "topic": subject.topic,
                "signals": application.pipeline.signal_table,
                "signal": data,
            },
            effects={
                "rows_sent": source.rows_sent,
                "rows_added": counts[Kind.MISSING],
                "rows_changed": counts[Kind.CHANGED],
                "rows_removed": counts[Kind.SURPLUS] if condition is None else 0,
            },
            summary=_summary(source, condition=condition),
            details=tuple(
                _details(application, source, surplus=counts[Kind.SURPLUS], data=data, condition=condition)
            ),
        )

    def facts_before(self, application: Application, table: Table) -> Mapping[str, Any]:
        """Return the place from which on the snapshot reads, before the signal is sent."""
        database = Database.of(application.connection(Role.SOURCE))
        moment, _ = moment_of(database, relations=())
        bronze = read_state(application.lake.bronze(table.name), table=table.name)
        epoch = 0 if bronze is None or bronze.ledger is None else bronze.ledger.epoch
        place = Place((epoch, 1, moment.position.number, 0, 0, 0, 0))
        return {"place": place, "at": moment.at.isoformat()}

    def act(self, application: Application, table: Table, plan: TablePlan) -> Outcome:
        record = read_record(application.lake, table.name, plan.digest, operation=self.job)
        sweep = _sweep_of(record)
        if _has_swept(application, table, sweep):
            return Outcome(summary="carried out by an earlier try")
        database = Database.of(application.connection(Role.SOURCE))
        signal = _send_signal(application, record, database)
        patience = timedelta(minutes=int(plan.options[WAIT_MINUTES]))
        wait_for_end(application, table, database, signal, patience=patience)
        read_to_end(application, table, signal)
        received = _require_rows(application, table, plan, sweep)
        merged = _merge(application, table)
        removed = 0 if CONDITION in plan.options else _sweep_silver(application, table, plan, sweep, database)
        return Outcome(
            counts={"rows_sent": received, "rows_merged": merged, "rows_removed": removed},
            facts={_SIGNALLED: str(signal.behind)},
            summary=f"{received} row(s) were read again: {merged} merged, {removed} removed",
        )

    def verify(self, application: Application, table: Table, record: RepairRecord) -> Outcome:
        """Compare silver with its source, as `verify` does. Raise for rows that the snapshot did not send."""
        database = Database.of(application.connection(Role.SOURCE))
        if CONDITION not in record.plan.options:
            subject = _require_subject(application, table)
            with snapshot_of(database) as snapshot:
                columns = _columns_of(table, subject, snapshot, _require_relation(table, subject, snapshot))
            unsent = find_unsent(keys_only(columns), subject.silver, before=_sweep_of(record).place, most=0)
            if unsent.rows:
                problem = f"{unsent.rows} row(s) of silver were not sent again and are still there"
                digest = record.plan.digest
                raise RepairNotVerifiedError(
                    operation=self.job, table=table.name, digest=digest, problem=problem
                )
        with ExitStack() as connections:
            cluster = connections.enter_context(closing(connect(application)))
            verification = Verification(application.lake, database, partial(ends_of, cluster))
            result = verification.run(table)
        verdict = result.verification["verdict"]
        return Outcome(counts=result.counts, summary=f"silver beside its source: {verdict}")


def _wait_minutes(table: Table, options: Mapping[str, str]) -> int:
    text = options.get(WAIT_MINUTES, "").strip() or str(_USUAL_WAIT)
    if not text.isdecimal() or not 0 < int(text) <= 24 * 60:
        raise _refused(table, f"wait_minutes {text!r} is no number of minutes from 1 to 1440")
    return int(text)


def _require_subject(application: Application, table: Table) -> Subject:
    try:
        return subject_of(application.lake, table)
    except NotComparedError as exc:
        raise _refused(table, f"{exc}; send the signal by hand instead") from exc


def _require_relation(table: Table, subject: Subject, snapshot: SourceSnapshot) -> Relation:
    relation = snapshot.relation(subject.schema, subject.relation)
    if relation is None:
        raise _refused(table, f"the source has no table {subject.schema}.{subject.relation}")
    return relation


def _columns_of(table: Table, subject: Subject, snapshot: SourceSnapshot, relation: Relation) -> ColumnPlan:
    columns = snapshot.columns(relation)
    try:
        return plan_columns(
            columns, subject.silver.schema, key=subject.key, dropped=table.drop_columns, choice=table.columns
        )
    except KeyNotComparedError as exc:
        raise _refused(table, f"its key cannot be compared with the source: {exc}") from exc


def _look_at_source(table: Table, subject: Subject, database: Database, *, condition: str | None) -> _Source:
    """Compare silver with the source as it is now. Raise for a condition that the source refuses."""
    if condition is not None and ";" in condition:
        raise _refused(table, "its condition has a semicolon; it must be one expression of SQL")
    with snapshot_of(database) as snapshot:
        relation = _require_relation(table, subject, snapshot)
        columns = _columns_of(table, subject, snapshot, relation)
        comparison = compare_rows(table, subject, snapshot, relation=relation, plan=columns)
        rows_sent = comparison.source.rows
        if condition is not None:
            try:
                rows_sent = snapshot.count_rows(relation, condition)
            except ValueError as exc:
                raise _refused(table, f"the source refuses its condition: {exc}") from exc
    if table.filter is not None:
        comparison = comparison.of_rows_in_silver()
    return _Source(relation, columns, comparison, rows_sent)


def _require_connector(
    application: Application, table: Table, database: Database, topic: str, *, relation: str
) -> None:
    """Raise where the signal cannot be sent, or nobody would carry it out or show its end."""
    signals = SignalTable(database, application.pipeline.signal_table)
    if (statements := signals.missing_rights()) is not None:
        raise _refused(table, f"the source's login may not send signals: {statements}")
    prefix, _ = prefix_and_relation(topic)
    committed = committed_offsets(database, librdkafka_settings(application.connection(Role.KAFKA)))
    if prefix not in {server_of(each.key) for each in committed}:
        raise _refused(
            table, f"no connector with topic.prefix {prefix} has committed an offset to Kafka Connect"
        )
    connector = (ask_connectors() or {}).get(prefix)
    role = None
    if connector is not None:
        if connector.problem is not None:
            raise _refused(table, connector.problem)
        named = connector.setting("signal.data.collection", "")
        if named is not None and named != application.pipeline.signal_table:
            raise _refused(
                table,
                f"the connector reads signals from {named or 'no table'}, the pipeline says "
                f"`signal_table: {application.pipeline.signal_table}`",
            )
        role = connector.setting("database.user", "")
    capture = read_capture(database, [relation], publication=None, slot=None, role=role)
    at_source = capture.tables.get(relation)
    if at_source is not None and not at_source.has_primary_key:
        raise _refused(table, "it has no primary key at the source: an incremental snapshot needs one")
    if at_source is not None and at_source.may_select is False:
        raise _refused(
            table,
            f"the connector's role may not read it: GRANT USAGE ON SCHEMA {at_source.schema} TO {role}; "
            f"GRANT SELECT ON {at_source.quoted} TO {role};",
        )


def _summary(source: _Source, *, condition: str | None) -> str:
    what = "the whole table" if condition is None else "rows of a condition"
    return f"the connector reads {what} again: {source.rows_sent} row(s) of {source.relation}"


def _details(
    application: Application, source: _Source, *, surplus: int, data: str, condition: str | None
) -> list[str]:
    minutes = 1 + source.rows_sent // (60 * _ROWS_A_SECOND)
    details = [
        f"The signal, an INSERT into {application.pipeline.signal_table}: {data}",
        f"It may take about {minutes} minute(s); readers have the table meanwhile, and runs go on.",
        "Rows that differ now may be on their way already: they count as differences, too.",
    ]
    if left := source.comparison.opened.not_opened:
        details.append(
            f"More rows differ than are counted here: {left} part(s) of the table were not opened."
        )
    if surplus and condition is None:
        details.append(
            f"{surplus} row(s) that only silver has go at the end, unless their deletes come before."
        )
    if surplus and condition is not None:
        details.append(
            f"{surplus} row(s) that only silver has stay: a snapshot with a condition removes none."
        )
    return details


def _sweep_of(record: RepairRecord) -> Sweep:
    place = Place.of(record.facts["place"])
    if place is None:
        raise ValueError(f"the record of {record.plan.digest} has no place")
    return Sweep(place, record.facts["at"], record.plan.digest)


def _has_swept(application: Application, table: Table, sweep: Sweep) -> bool:
    silver = read_state(application.lake.silver(table.name), table=table.name)
    return silver is not None and silver.ledger is not None and sweep in silver.ledger.applied.sweeps


def _send_signal(application: Application, record: RepairRecord, database: Database) -> SentSignal:
    """Send the signal once, and remember a place behind it: a later try waits for the same snapshot."""
    plan = record.plan
    if application.pipeline.signal_table != plan.basis["signals"]:
        problem = f"the table of signals is {application.pipeline.signal_table} now"
        raise PlanChangedError(
            operation=plan.operation, table=plan.table, digest=plan.digest, problem=problem
        )
    signal_id = f"{Job.RESYNC}-{plan.digest}"
    behind = record.facts.get(_SIGNALLED)
    if behind is None:
        behind = str(SignalTable(database, plan.basis["signals"]).send(signal_id, plan.basis["signal"]))
        write_record(application.lake, replace(record, facts={**record.facts, _SIGNALLED: behind}))
        logger.info("signal sent", extra={"signal": signal_id, "behind": behind})
    return SentSignal(signal_id, plan.basis["topic"], LogPosition.from_text(behind))


def _require_rows(application: Application, table: Table, plan: TablePlan, sweep: Sweep) -> int:
    """Return how many rows of incremental snapshots bronze has from behind the signal. Raise where none came.

    A connector that may not read the table ends its snapshot like any other.
    """
    session = application.spark.isolated()
    bronze = session.read.format("delta").load(application.lake.bronze(table.name))
    is_behind = F.col("position.commit") >= sweep.place.position[2]
    rows: int = bronze.where((F.col("source.snapshot") == INCREMENTAL) & is_behind).count()
    if not rows and plan.effects["rows_sent"]:
        problem = "its connector says so, but no row of it came"
        raise ResyncNotEndedError(table=table.name, digest=plan.digest, problem=problem)
    return rows


def _merge(application: Application, table: Table) -> int:
    """Merge all that bronze has, and return how many rows changed. A second call finds nothing to do."""
    rows = 0
    task = look_at(application, table)
    while isinstance(task, MergeTask):
        rows += merge_table(application, task).rows
        task = look_at(application, table)
    return rows


def _sweep_silver(
    application: Application, table: Table, plan: TablePlan, sweep: Sweep, database: Database
) -> int:
    """Remove the rows that the snapshot did not find, in one commit; return how many.

    Raise where the source has one of them: then the snapshot was not one of the whole table.
    """
    subject = _require_subject(application, table)
    limit, planned = table.deletes_limit, plan.effects["rows_removed"]
    with snapshot_of(database) as snapshot:
        relation = _require_relation(table, subject, snapshot)
        keys = keys_only(_columns_of(table, subject, snapshot, relation))
        most = planned + limit.rows
        unsent = find_unsent(keys, subject.silver, before=sweep.place, most=most)
        _refuse_more_than_planned(plan, unsent, most=most)
        names = [column.source for column in keys.compared]
        as_cells = partial(source_batch, keys, beyond_is_null=False)
        there = count_at_source(unsent, map(as_cells, snapshot.rows(relation, names))) if unsent.rows else 0
    if there:
        problem = f"{there} row(s) that the source has were not sent"
        raise ResyncNotEndedError(table=table.name, digest=plan.digest, problem=problem)
    if not unsent.rows:
        return 0
    logger.info("rows that the source does not have", extra={"rows": unsent.rows, "md5": unsent.examples})
    approved = table.model_copy(update={"deletes_limit": DeletesLimit(rows=most, share=limit.share)})
    task = look_at(application, approved, sweeps=(sweep,))
    return merge_table(application, task).rows if isinstance(task, MergeTask) else 0


def _refuse_more_than_planned(plan: TablePlan, unsent: Unsent, *, most: int) -> None:
    if unsent.rows <= most:
        return
    problem = (
        f"{unsent.rows} row(s) of silver were not sent again, and it said that {most} may go at most. The "
        "connector has not read the whole table (its log says why; mostly its role may not SELECT it), or "
        "the source has lost rows since"
    )
    raise PlanChangedError(operation=plan.operation, table=plan.table, digest=plan.digest, problem=problem)


def _refused(table: Table, problem: str) -> RepairRefusedError:
    return RepairRefusedError(operation=Job.RESYNC, table=table.name, problem=problem)
