"""Silver beside a real PostgreSQL: each kind of difference is named, and lateness is none."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from shelf import ROWS, settled  # type: ignore[import-not-found]

from cdc_lakehouse.application.per_table import UnfinishedError
from cdc_lakehouse.contract import Job, TableResult
from cdc_lakehouse.errors import (
    ColumnsUntoldError,
    MissingConnectionError,
    SilverDiffersError,
    SourceTableMissingError,
    SourceUnavailableError,
)
from cdc_lakehouse.lake.files import read_text
from cdc_lakehouse.verification.source import snapshot_of
from recorded_results import compare_or_record  # type: ignore[import-not-found]


def told(result: TableResult) -> list[tuple[str, str, str]]:
    return [(each["key"]["id"], each["kind"], each["state"]) for each in result.verification["differences"]]


def test_equal_tables_are_equal(items):
    result = items.verify()

    assert result.verification["verdict"] == "equal"
    assert result.verification["rows"] == {"source": 3, "silver": 3}
    assert result.verification["checksum"]["source"] == result.verification["checksum"]["silver"]
    assert result.verification["columns"] == ["id", "name"]


def test_it_says_of_a_table_what_its_readers_are_tested_with(items):
    """As `tests/spark/test_recorded_results.py` has it for the other jobs."""
    compare_or_record(Job.VERIFY, items.verify(), places=("mark",))


def test_a_difference_is_open_at_first_sight(items):
    items.silver({**ROWS, "name": pa.array(["a", "x", None])})

    assert told(items.verify()) == [("2", "changed", "open")]


@pytest.mark.parametrize(
    ("silver", "expected"),
    [
        ({**ROWS, "name": pa.array(["a", "x", None])}, ("2", "changed", "different")),
        ({**ROWS, "name": pa.array(["a", "b", ""])}, ("3", "changed", "different")),
        ({name: values[:2] for name, values in ROWS.items()}, ("3", "missing", "different")),
        (
            {"id": pa.array([1, 2, 3, 4], pa.int32()), "name": pa.array(["a", "b", None, "ghost"])},
            ("4", "surplus", "different"),
        ),
    ],
    ids=["value", "null", "missing", "surplus"],
)
def test_a_difference_that_nothing_can_bring_any_more_is_told(items, silver, expected):
    assert told(settled(items, columns=silver)) == [expected]


def test_a_row_that_silver_has_twice_is_wrong_at_first_sight(items):
    items.silver({"id": pa.array([1, 2, 3, 3], pa.int32()), "name": pa.array(["a", "b", None, None])})

    assert told(items.verify()) == [("3", "doubled", "different")]


def test_a_row_that_is_late_is_open_and_then_equal(items):
    items.sql("INSERT INTO items VALUES (4, 'd')")
    first = items.verdict()
    items.deliver()
    items.silver({"id": pa.array([1, 2, 3, 4], pa.int32()), "name": pa.array(["a", "b", None, "d"])})

    assert (first, items.verdict()) == ("open", "equal")


def test_a_table_that_never_rests_is_never_wrong(items):
    """Silver is one step behind at each look, of a row that is written between any two."""
    verdicts = []
    for step in range(4):
        items.silver({**ROWS, "name": pa.array([f"{step - 1}" if step else "a", "b", None])})
        items.sql(f"UPDATE items SET name = '{step}' WHERE id = 1")
        verdicts.append(items.verdict())
        items.deliver()

    assert verdicts == ["open"] * 4


def test_a_row_that_became_what_it_was_is_not_wrong(items):
    """Silver has read up to the first look, and what stood in between; the source is back where it was."""
    items.sql("UPDATE items SET name = 'x' WHERE id = 1")
    items.verify()
    items.deliver()
    items.verify()
    items.sql("UPDATE items SET name = 'y' WHERE id = 1", "UPDATE items SET name = 'x' WHERE id = 1")
    items.silver({**ROWS, "name": pa.array(["y", "b", None])}, row=[7, 1, 1])

    assert items.verdict() == "open"


def test_a_row_that_was_there_for_a_moment_is_not_a_ghost(items):
    four = {"id": pa.array([1, 2, 3, 4], pa.int32()), "name": pa.array(["a", "b", None, "d"])}
    items.silver(four, row=[1, 1, 1, 5])
    items.verify()
    items.deliver()
    items.verify()
    items.sql("INSERT INTO items VALUES (4, 'd')", "DELETE FROM items WHERE id = 4")
    items.silver(four, row=[1, 1, 1, 9])

    assert items.verdict() == "open"


def test_the_error_tells_keys_and_columns(items):
    settled(items, columns={**ROWS, "name": pa.array(["a", "secret", None])})
    with pytest.raises(UnfinishedError) as failed:
        items.verification().run(items.table())

    wrong = failed.value.__cause__
    assert isinstance(wrong, SilverDiffersError)
    assert (wrong.count, wrong.kinds) == (1, "1 changed in name")


def test_rows_that_no_event_told_a_new_column_are_told_apart_with_what_sends_them(items):
    items.sql("ALTER TABLE items ADD COLUMN note text DEFAULT 'x'")
    line = {"table": "items", "change": "added", "column": "note", "value_schema_ids": [12]}
    at = pa.array([datetime(2026, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    log = pa.table({**{name: [value] for name, value in line.items()}, "at": at})
    write_deltalake(items.lake.schema_changes, log)
    settled(items, columns={**ROWS, "note": pa.nulls(3, pa.string())})

    with pytest.raises(UnfinishedError) as failed:
        items.verification().run(items.table())

    untold = failed.value.__cause__
    assert isinstance(untold, ColumnsUntoldError)
    assert (untold.count, untold.columns) == (3, "note (added 2026-01-01 00:00, schema 12)")
    assert untold.snapshot == "incremental"


def test_no_value_is_told_or_kept(items):
    result = settled(items, columns={**ROWS, "name": pa.array(["a", "secret", None])})

    assert "secret" not in repr(result)
    assert "secret" not in read_text(items.lake.looks("items"))


def test_a_table_that_the_source_does_not_have_is_an_error_until_its_reading_is_ended(items):
    items.silver(ROWS)
    items.sql("ALTER TABLE items RENAME TO things")
    try:
        with pytest.raises(SourceTableMissingError) as caught:
            items.verify()
        items.end_reading()
        ended = items.verify()
    finally:
        items.sql("DROP TABLE things")

    assert caught.value.decision.startswith("; stop_reading: `items=step")
    assert ended.verification["verdict"] == "not compared"


def test_a_login_that_may_not_read_says_which_table(items):
    items.sql("DROP ROLE IF EXISTS nobody_here", "CREATE ROLE nobody_here LOGIN PASSWORD 'x'")

    with pytest.raises(MissingConnectionError, match="permission denied for table items"):
        items.verification(login="nobody_here", password="x").run(items.table())


def test_a_database_that_is_away_is_tried_again(items):
    with pytest.raises(SourceUnavailableError, match="password authentication failed"):
        items.verification(password="wrong").run(items.table())


def test_rows_that_a_policy_hides_are_not_taken_for_missing_ones(items):
    items.sql(
        "DROP ROLE IF EXISTS half_blind",
        "CREATE ROLE half_blind LOGIN PASSWORD 'x'",
        "ALTER TABLE items ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY few ON items USING (id < 2)",
        "GRANT SELECT ON items TO half_blind",
    )
    try:
        with pytest.raises(MissingConnectionError, match="row-level security"):
            items.verification(login="half_blind", password="x").run(items.table())
    finally:
        items.sql("DROP OWNED BY half_blind")


def test_nothing_is_written_to_the_source(items):
    with snapshot_of(items.verification().database) as snapshot:
        row = snapshot._connection.execute("SHOW transaction_read_only").fetchone()

    assert row == ("on",)


def test_looks_are_kept_as_they_were_taken(items):
    items.silver({**ROWS, "name": pa.array(["a", "x", None])})
    items.verify()
    kept = json.loads(read_text(items.lake.looks("items")))

    assert [(each["key"], each["look"]) for each in kept["keys"]] == [(["2"], 0)]
    assert kept["columns"] == ["id"]
