"""Does the source give the connector what the lake needs: publication, replica identity, rights, slot?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cdc_lakehouse.config.models import Pipeline, Table
from cdc_lakehouse.connect.connectors import Connector
from cdc_lakehouse.contract import ExitCode
from cdc_lakehouse.database.access import Database
from cdc_lakehouse.database.capture import Capture, SlotHealth, SourceTable, read_capture
from cdc_lakehouse.debezium.signals import SnapshotKind, snapshot_advice
from cdc_lakehouse.debezium.topic_names import prefix_and_relation
from cdc_lakehouse.preflight.findings import Finding

_MUCH = 1 << 30
"""Bytes of log that a slot holds back: more than a pause of minutes."""


def capture_findings(
    database: Database, pipeline: Pipeline, connector: Connector | None
) -> Iterator[Finding]:
    """Return findings for the tables of one connector; without it publication and role are not known."""
    tables = [table for table in pipeline.tables if _is_fed_by(table, connector)]
    relations = {prefix_and_relation(topic)[1] for table in tables for topic in table.topics}
    publication = slot = role = None
    if connector is not None:
        publication = connector.setting("publication.name", "dbz_publication")
        slot = connector.setting("slot.name", "debezium")
        role = connector.setting("database.user", "")
    capture = read_capture(
        database,
        relations | {pipeline.signal_table},
        publication=publication,
        slot=slot or database.settings.slot,
        role=role,
    )
    yield from slot_findings(capture.slots, named=slot)
    if publication is not None:
        yield from publication_findings(capture, publication)
    for table in tables:
        for topic in table.topics:
            signal = snapshot_advice(SnapshotKind.BLOCKING, [topic], signals=pipeline.signal_table)
            yield from table_findings(table, prefix_and_relation(topic)[1], capture, role=role, signal=signal)
    yield from _check_large_values(capture, sorted(relations))
    yield from _check_signals(capture, pipeline, role=role)


def slot_findings(slots: Iterable[SlotHealth], *, named: str | None) -> Iterator[Finding]:
    known = tuple(slots)
    if not known:
        what = "no logical replication slot" if named is None else f"no slot {named}"
        yield Finding.warning(
            "slot", f"the source has {what}", "Start the connector: it makes its slot by itself."
        )
    for slot in known:
        yield _judge_slot(slot)


def _judge_slot(slot: SlotHealth) -> Finding:
    subject = f"slot {slot.name}"
    behind = "" if slot.behind_bytes is None else f", {slot.behind_bytes:,} bytes behind the log"
    if slot.wal_status == "lost":
        return Finding.problem(
            subject,
            "the source has removed log that the slot still needed: changes are lost",
            advice="Drop the slot, let the connector make a new one with a new full snapshot, and raise "
            "max_slot_wal_keep_size.",
            exit_code=ExitCode.DATA,
        )
    if slot.wal_status == "unreserved":
        return Finding.warning(
            subject,
            f"the source is about to remove log that the slot needs{behind}",
            "Start the connector at once, or raise max_slot_wal_keep_size.",
        )
    if not slot.active:
        return Finding.warning(
            subject,
            f"no connector reads it{behind}",
            "Start the connector, or drop the slot if it is not needed: the source keeps its log for it.",
        )
    if slot.behind_bytes is not None and slot.behind_bytes > _MUCH:
        return Finding.warning(
            subject,
            f"is read{behind}",
            "Look whether it comes nearer: a long transaction or snapshot holds it, or it has no heartbeat.",
        )
    return Finding.fine(subject, f"is read{behind}")


def publication_findings(capture: Capture, name: str) -> Iterator[Finding]:
    subject, publication = f"publication {name}", capture.publication
    if publication is None:
        yield Finding.problem(
            subject,
            "the source has no such publication",
            advice=f"As a superuser: CREATE PUBLICATION {name} FOR ALL TABLES;",
            exit_code=ExitCode.CONFIG,
        )
    elif publication.left_out:
        yield Finding.warning(
            subject,
            f"it does not send {', '.join(publication.left_out)}",
            f"ALTER PUBLICATION {name} SET (publish = 'insert, update, delete, truncate');",
        )
    else:
        yield Finding.fine(subject, "it sends every kind of change")


def table_findings(
    table: Table, relation: str, capture: Capture, *, role: str | None, signal: str
) -> Iterator[Finding]:
    """Return what the source does not send of one table; `signal` is the statement for a full snapshot."""
    subject, source_table = f"source table {relation}", capture.tables.get(relation)
    if source_table is None:
        yield Finding.warning(
            subject,
            f"the source has no such table, which {table.name} is named after",
            "Correct the topic's name or the connection; a table that was dropped gets no news any more.",
        )
        return
    if not source_table.published:
        yield Finding.problem(
            subject,
            "it is in no publication that the connector reads, so its changes are never sent",
            advice=f"ALTER PUBLICATION <publication> ADD TABLE {source_table.quoted};",
            exit_code=ExitCode.CONFIG,
        )
    if relation in capture.narrowed:
        yield Finding.warning(
            subject,
            "its publication sends only rows that meet a condition",
            "Rows that do not meet it are missing in silver; publish the table without WHERE.",
        )
    yield from _check_identity(subject, table, source_table, signal=signal)
    if source_table.may_select is False:
        yield select_finding(subject, source_table, role=str(role))


def _check_identity(
    subject: str, table: Table, source_table: SourceTable, *, signal: str
) -> Iterator[Finding]:
    """Check which old values an update or a delete contains."""
    full = f"ALTER TABLE {source_table.quoted} REPLICA IDENTITY FULL;"
    identity = source_table.replica_identity
    if identity == "n" or (identity == "d" and not source_table.has_primary_key):
        yield Finding.warning(
            subject,
            "it has no replica identity: PostgreSQL refuses UPDATE and DELETE on it once it is published",
            f"Give it a primary key, or {full}",
        )
    elif table.key and identity != "f":
        yield Finding.warning(
            subject,
            "`key` of the table needs REPLICA IDENTITY FULL, which it does not have",
            f"{full} Then take a new full snapshot. {signal}",
        )


def _check_large_values(capture: Capture, relations: Iterable[str]) -> Iterator[Finding]:
    """One line for all of them: most tables have a column of text."""
    tables = [capture.tables[relation] for relation in relations if relation in capture.tables]
    names = [table.relation for table in tables if table.has_large_columns and table.replica_identity != "f"]
    if names:
        yield Finding.note(
            "large values",
            f"updates that leave them alone do not send them (TOAST): {', '.join(names)}",
            "Silver keeps what it has. Where it may lack them (it began in the midst of a log, or has a row "
            "per event): ALTER TABLE <table> REPLICA IDENTITY FULL;",
        )


def select_finding(subject: str, source_table: SourceTable, *, role: str) -> Finding:
    """Return the finding for a missing right: every snapshot would fail, in Kafka Connect's log only."""
    schema = source_table.schema
    return Finding.warning(
        subject,
        f"the connector's role {role} may not SELECT it: no snapshot of it will ever run",
        f"GRANT USAGE ON SCHEMA {schema} TO {role}; GRANT SELECT ON {source_table.quoted} TO {role}; and for "
        f"tables to come: ALTER DEFAULT PRIVILEGES FOR ROLE {source_table.owner} IN SCHEMA {schema} "
        f"GRANT SELECT ON TABLES TO {role};",
    )


def _check_signals(capture: Capture, pipeline: Pipeline, *, role: str | None) -> Iterator[Finding]:
    subject, source_table = f"signal table {pipeline.signal_table}", capture.tables.get(pipeline.signal_table)
    if source_table is None:
        yield Finding.warning(
            subject,
            "the source has no such table: no snapshot can be asked for",
            f"CREATE TABLE {pipeline.signal_table} (id varchar(42) PRIMARY KEY, type varchar(32), "
            "data varchar(2048)); and name it as `signal.data.collection` of the connector.",
        )
    elif source_table.may_insert is False:
        yield Finding.warning(
            subject,
            f"the connector's role {role} may not INSERT into it: incremental snapshots are skipped",
            f"GRANT SELECT, INSERT ON {source_table.quoted} TO {role};",
        )
    elif not source_table.published:
        yield Finding.warning(
            subject,
            "it is in no publication that the connector reads: no signal arrives",
            f"ALTER PUBLICATION <publication> ADD TABLE {source_table.quoted};",
        )
    else:
        yield Finding.fine(subject, "signals arrive")


def _is_fed_by(table: Table, connector: Connector | None) -> bool:
    prefixes = {prefix_and_relation(topic)[0] for topic in table.topics}
    return connector is None or connector.prefix in prefixes
