"""What a resync asks of a real PostgreSQL: rights, one signal for each plan, a condition that it accepts."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from shelf import ROWS, Shelf  # type: ignore[import-not-found]

from cdc_lakehouse.database.signal_table import SignalTable
from cdc_lakehouse.verification.cells import cells, digests
from cdc_lakehouse.verification.columns import plan_columns
from cdc_lakehouse.verification.sides import RowBatch, source_batch
from cdc_lakehouse.verification.source import snapshot_of
from cdc_lakehouse.verification.unsent import Unsent, count_at_source, keys_only

DATA = '{"data-collections": ["public.items"], "type": "incremental"}'
ROLE = "signaller"


@pytest.fixture
def signals(items: Shelf) -> Iterator[SignalTable]:
    """The table of signals, and a login without any right."""
    items.sql(
        "DROP TABLE IF EXISTS debezium_signal",
        "CREATE TABLE debezium_signal (id varchar(42) PRIMARY KEY, type varchar(32), data varchar(2048))",
        f"DROP ROLE IF EXISTS {ROLE}",
        f"CREATE ROLE {ROLE} LOGIN PASSWORD 'secret'",
        f"REVOKE USAGE ON SCHEMA public FROM PUBLIC, {ROLE}",
    )
    database = items.verification(login=ROLE, password="secret").database
    yield SignalTable(database, "public.debezium_signal")
    items.sql(
        f"DROP OWNED BY {ROLE}",
        f"DROP ROLE {ROLE}",
        "GRANT USAGE ON SCHEMA public TO PUBLIC",
        "DROP TABLE debezium_signal",
    )


def test_missing_rights_are_named_as_statements_that_give_them(items: Shelf, signals: SignalTable):
    grants = signals.missing_rights()
    assert grants == (
        "GRANT USAGE ON SCHEMA public TO signaller; GRANT INSERT ON public.debezium_signal TO signaller;"
    )
    items.sql(grants)

    assert signals.missing_rights() is None
    assert SignalTable(signals.database, "public.nothing").missing_rights() == (
        "CREATE TABLE public.nothing (id varchar(42) PRIMARY KEY, type varchar(32), data varchar(2048)); "
        "and name it as the connector's signal.data.collection"
    )


def test_a_signal_is_sent_once_and_stands_before_the_place_that_is_told(items: Shelf, signals: SignalTable):
    items.sql(str(signals.missing_rights()))

    first, second = (signals.send("resync-a1b2c3", DATA) for _ in range(2))

    rows = items.connection.execute("SELECT * FROM debezium_signal").fetchall()
    assert rows == [("resync-a1b2c3", "execute-snapshot", DATA)]
    assert first <= second


def test_rows_that_meet_a_condition_are_counted_and_a_wrong_condition_is_refused(items: Shelf):
    with snapshot_of(items.verification().database) as snapshot:
        relation = snapshot.relation("public", "items")
        assert relation is not None
        assert snapshot.count_rows(relation, "id < 3 AND name LIKE '%a%'") == 1

    for condition in ("nothing = 1", "id < 'x'", "true) OR (false); DELETE FROM items; --"):
        with snapshot_of(items.verification().database) as snapshot, pytest.raises(ValueError, match=r"\S"):
            snapshot.count_rows(relation, condition)
    assert items.connection.execute("SELECT count(*) FROM items").fetchone() == (3,)


def test_keys_that_the_source_has_are_counted_among_unsent_ones(items: Shelf):
    with snapshot_of(items.verification().database) as snapshot:
        relation = snapshot.relation("public", "items")
        assert relation is not None
        schema = pa.schema([(name, values.type) for name, values in ROWS.items()])
        keys = keys_only(plan_columns(snapshot.columns(relation), schema, key=("id",), dropped=()))

        def rows() -> Iterator[RowBatch]:
            for texts in snapshot.rows(relation, ["id"]):
                yield source_batch(keys, texts, beyond_is_null=False)

        unsent = [Unsent(_digests(*numbers), rows=2) for numbers in ((2, 9), (8, 9))]

        assert [count_at_source(each, rows()) for each in unsent] == [1, 0]


def _digests(*numbers: int) -> frozenset[bytes]:
    return frozenset(row.tobytes() for row in digests([cells(pa.array(numbers, pa.int32()))]))
