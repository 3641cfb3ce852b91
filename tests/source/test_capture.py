"""What a real PostgreSQL says of its side of the capture, and what `make check` makes of it."""

from __future__ import annotations

import pytest
from shelf import TABLE, TOPIC, Shelf  # type: ignore[import-not-found]

from cdc_lakehouse.config.models import Pipeline
from cdc_lakehouse.connect.connectors import Connector, Part
from cdc_lakehouse.debezium.signals import SnapshotKind, snapshot_advice
from cdc_lakehouse.preflight.findings import Finding, Level
from cdc_lakehouse.preflight.source_side import capture_findings
from local_stack.shop import let_connector_read

CONNECTOR = Connector(
    "shop",
    {"topic.prefix": "shop", "publication.name": "shop", "slot.name": "shop", "database.user": "debezium"},
    (Part("the connector", "RUNNING"), Part("task 0", "RUNNING")),
)


@pytest.fixture
def captured(shelf) -> Shelf:
    """A table that the connector may read, and a table for signals that it may write."""
    shelf.sql(
        "DROP TABLE IF EXISTS debezium_signal",
        "CREATE TABLE debezium_signal (id varchar(42) PRIMARY KEY, type varchar(32), data varchar(2048))",
        "CREATE TABLE items (id int PRIMARY KEY, amount int)",
        "GRANT SELECT ON items TO debezium",
        "GRANT SELECT, INSERT ON debezium_signal TO debezium",
    )
    return shelf


def told(shelf: Shelf, *, connector: Connector | None = CONNECTOR, **options: object) -> list[Finding]:
    pipeline = Pipeline.model_validate(
        {
            "version": 1,
            "name": "shop",
            "owner": "tests",
            "schedule": "0 * * * *",
            "start_date": "2026-01-01",
            "tables": [{"name": TABLE, "topics": [TOPIC], **options}],
        }
    )
    return list(capture_findings(shelf.verification().database, pipeline, connector))


def hurting(found: list[Finding]) -> list[tuple[str, str]]:
    return [(each.level.value, each.sentence) for each in found if each.level is not Level.OK]


def test_a_source_that_gives_all_has_nothing_to_say(captured):
    assert hurting(told(captured)) == []
    assert hurting(told(captured, connector=None)) == []


def test_a_table_that_the_connector_may_not_read_is_told_with_the_grants_that_mend_it(captured):
    captured.sql("DROP TABLE items", "CREATE TABLE items (id int PRIMARY KEY)")
    (finding,) = [each for each in told(captured) if each.level is not Level.OK]

    assert finding.sentence == (
        "the connector's role debezium may not SELECT it: no snapshot of it will ever run"
    )
    for statement in finding.advice.replace("and for tables to come: ", "").split(";"):
        captured.sql(statement or "SELECT 1")
    captured.sql("CREATE TABLE later (id int PRIMARY KEY)")
    row = captured.connection.execute(
        "SELECT has_table_privilege('debezium', 'items', 'SELECT'), "
        "has_table_privilege('debezium', 'later', 'SELECT')"
    ).fetchone()
    captured.sql(
        "DROP TABLE later", "ALTER DEFAULT PRIVILEGES IN SCHEMA public REVOKE SELECT ON TABLES FROM debezium"
    )
    assert row == (True, True)
    assert hurting(told(captured)) == []


def test_what_updates_and_deletes_cannot_tell_is_told_by_the_replica_identity(captured):
    captured.sql("ALTER TABLE items DROP CONSTRAINT items_pkey")
    assert "no replica identity" in hurting(told(captured))[0][1]

    captured.sql("ALTER TABLE items REPLICA IDENTITY FULL", "ALTER TABLE items ADD note text")
    assert hurting(told(captured, key=["id"])) == []

    captured.sql("ALTER TABLE items ADD PRIMARY KEY (id)", "ALTER TABLE items REPLICA IDENTITY DEFAULT")
    assert hurting(told(captured)) == [
        ("note", "updates that leave them alone do not send them (TOAST): public.items")
    ]
    assert "needs REPLICA IDENTITY FULL" in hurting(told(captured, key=["id"]))[0][1]


def test_what_a_publication_leaves_out_is_told(captured):
    captured.sql("DROP PUBLICATION shop")
    assert [sentence for _, sentence in hurting(told(captured))] == [
        "the source has no such publication",
        "it is in no publication that the connector reads, so its changes are never sent",
        "it is in no publication that the connector reads: no signal arrives",
    ]

    captured.sql("CREATE PUBLICATION shop FOR TABLE debezium_signal, items WHERE (id > 0)")
    captured.sql("ALTER PUBLICATION shop SET (publish = 'insert, update, delete')")
    assert [sentence for _, sentence in hurting(told(captured))] == [
        "it does not send TRUNCATE",
        "its publication sends only rows that meet a condition",
    ]


def test_a_slot_that_nobody_reads_is_told_and_so_is_one_that_is_missing(captured):
    captured.connector.stop()
    (unread,) = hurting(told(captured))
    absent = Connector("shop", {**CONNECTOR.settings, "slot.name": "other"}, CONNECTOR.parts)
    (missing,) = hurting(told(captured, connector=absent))
    captured.connector.start()

    assert unread[1].startswith("no connector reads it, ")
    assert missing[1] == "the source has no slot other"


def test_a_connector_that_cannot_be_asked_for_a_snapshot_is_told(captured):
    captured.sql("REVOKE INSERT ON debezium_signal FROM debezium")
    assert "incremental snapshots are skipped" in hurting(told(captured))[0][1]

    captured.sql("DROP TABLE debezium_signal")
    assert "no snapshot can be asked for" in hurting(told(captured))[0][1]


def test_a_table_that_the_source_does_not_have_is_told(captured):
    captured.sql("DROP TABLE items")

    assert hurting(told(captured)) == [
        ("warning", "the source has no such table, which items is named after")
    ]


def test_the_local_stack_lets_the_connector_read_tables_that_are_created_later(captured):
    let_connector_read(captured.connection, "debezium")
    captured.sql("DROP TABLE items", "CREATE TABLE items (id int PRIMARY KEY)")
    found = hurting(told(captured))
    captured.sql("ALTER DEFAULT PRIVILEGES IN SCHEMA public REVOKE SELECT ON TABLES FROM debezium")

    assert found == []


@pytest.mark.parametrize("kind", SnapshotKind)
def test_the_statement_that_advice_prints_is_one_that_the_source_takes(captured, kind):
    advice = snapshot_advice(kind, [TOPIC], signals="public.debezium_signal")
    captured.sql(advice[advice.index("INSERT") : advice.index(" It ran if")])

    assert captured.connection.execute("SELECT type, data FROM debezium_signal").fetchall() == [
        ("execute-snapshot", f'{{"data-collections": ["public.items"], "type": "{kind}"}}')
    ]
