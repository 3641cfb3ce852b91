"""What `lake.row_replacement` relies upon in Delta: rows leave and come in one commit, or nothing does."""

from __future__ import annotations

from pathlib import Path

import pytest
from delta.exceptions import ConcurrentAppendException
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.application.session import LazySession
from cdc_lakehouse.errors import SupersededError
from cdc_lakehouse.lake.ledger import APPLICATION_ID, Kind, Ledger
from cdc_lakehouse.lake.row_replacement import RowReplacement

STEP = Ledger(kind=Kind.SILVER, pipeline="p", table="t", cluster_id="c", seq=1, attempt="a")


@pytest.fixture
def session(engine: LazySession) -> SparkSession:
    return engine.isolated()


@pytest.fixture
def uri(session: SparkSession, tmp_path: Path) -> str:
    """Keys 0 to 99 in one file."""
    found = (tmp_path / "t").as_uri()
    rows = session.range(100).coalesce(1).write.format("delta")
    rows.option("delta.enableDeletionVectors", "true").save(found)
    return found


def replaced(session: SparkSession, uri: str, condition: str, *, by: int) -> RowReplacement:
    found = RowReplacement.begun(session, uri)
    assert found is not None
    found.remove(found.rows(F.expr(condition)).where(condition))
    found.add(session.range(by, by + 1))
    return found


def keys(session: SparkSession, uri: str) -> list[int]:
    return sorted(row["id"] for row in session.read.format("delta").load(uri).collect())


def test_rows_leave_and_come_with_the_ledger_in_one_commit(session: SparkSession, uri: str):
    replaced(session, uri, "id >= 2", by=7).commit(STEP)

    table = DeltaTable(uri)
    assert keys(session, uri) == [0, 1, 7]
    assert (table.version(), table.transaction_version(APPLICATION_ID)) == (1, 1)
    assert Ledger.from_json(table.history(1)[0]["userMetadata"], table="t") == STEP


def test_what_had_left_before_stays_gone(session: SparkSession, uri: str):
    replaced(session, uri, "id >= 4", by=7).commit(STEP)

    replaced(session, uri, "id in (0, 2)", by=8).commit(STEP)

    assert keys(session, uri) == [1, 3, 7, 8]


def test_a_file_of_which_all_rows_leave_leaves_itself(session: SparkSession, uri: str):
    before = DeltaTable(uri).file_uris()

    replaced(session, uri, "true", by=7).commit(STEP)

    assert set(before) & set(DeltaTable(uri).file_uris()) == set()


def test_a_commit_in_between_refuses_it(session: SparkSession, uri: str):
    replacement = replaced(session, uri, "id = 0", by=7)
    session.range(200, 201).write.format("delta").mode("append").save(uri)

    with pytest.raises(ConcurrentAppendException):
        replacement.commit(STEP)


def test_a_step_that_was_made_is_refused(session: SparkSession, uri: str):
    replaced(session, uri, "id = 0", by=7).commit(STEP)
    again = RowReplacement.begun(session, uri)
    assert again is not None

    with pytest.raises(SupersededError):
        again.refuse_unless_next(STEP)


def test_a_table_whose_changes_delta_tells_is_left_to_merge(session: SparkSession, uri: str):
    session.sql(f"ALTER TABLE delta.`{uri}` SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")

    assert RowReplacement.begun(session, uri) is None
