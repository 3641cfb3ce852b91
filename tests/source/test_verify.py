"""Silver beside a real PostgreSQL: each kind of difference is named, and lateness is none."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from shelf import Shelf  # type: ignore[import-not-found]

from cdc_lakehouse.application.per_table import UnfinishedError
from cdc_lakehouse.contract import TableResult
from cdc_lakehouse.errors import (
    MissingConnectionError,
    SilverDiffersError,
    SourceTableMissingError,
    SourceUnavailableError,
)
from cdc_lakehouse.lake.confirmations_file import read_confirmations, write_confirmations
from cdc_lakehouse.lake.files import read_text
from cdc_lakehouse.preflight.source import source_finding
from cdc_lakehouse.verification.source import snapshot_of

ROWS = {"id": pa.array([1, 2, 3], pa.int32()), "name": pa.array(["a", "b", None])}


@pytest.fixture
def items(shelf):
    """Three rows that silver has, delivered by the connector."""
    shelf.sql("CREATE TABLE items (id int PRIMARY KEY, name text)")
    shelf.sql("INSERT INTO items VALUES (1, 'a'), (2, 'b'), (3, NULL)")
    shelf.deliver()
    shelf.silver(ROWS)
    return shelf


def settled(shelf: Shelf, **silver: Any) -> TableResult:
    """What silver is for good: looked at, then it read all that Kafka had, and changed nothing."""
    shelf.silver(**silver)
    shelf.verify()
    shelf.deliver()
    shelf.verify()
    shelf.silver(**silver)
    found: TableResult = shelf.verify()
    return found


def told(result: TableResult) -> list[tuple[str, str, str]]:
    return [(each["key"]["id"], each["kind"], each["state"]) for each in result.verification["differences"]]


def test_equal_tables_are_equal(items):
    result = items.verify()

    assert result.verification["verdict"] == "equal"
    assert result.verification["rows"] == {"source": 3, "silver": 3}
    assert result.verification["checksum"]["source"] == result.verification["checksum"]["silver"]
    assert result.verification["columns"] == ["id", "name"]


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


def test_without_the_connectors_word_nothing_is_certain(items):
    wrong = {**ROWS, "name": pa.array(["a", "x", None])}
    items.sql("DELETE FROM items WHERE id = 1", "INSERT INTO items VALUES (1, 'a')")
    items.silver(wrong)
    items.verify()
    items.kafka_end += 10
    items.verify()
    items.silver(wrong)

    assert items.verdict() == "open"


def test_a_slot_that_nobody_reads_says_nothing(items):
    """So it is while a connector takes its first snapshot of a source where nothing happens."""
    wrong = {**ROWS, "name": pa.array(["a", "x", None])}
    items.connector.stop()
    items.silver(wrong)
    items.verify()
    items.verify()

    assert items.verdict() == "open"


def test_a_silver_that_has_not_read_up_to_the_mark_may_still_bring_it(items):
    wrong = {**ROWS, "name": pa.array(["a", "x", None])}
    items.sql("DELETE FROM items WHERE id = 1", "INSERT INTO items VALUES (1, 'a')")
    items.silver(wrong)
    items.verify()
    items.deliver()
    items.verify()
    items.silver(wrong, read_to=items.kafka_end - 1)

    assert items.verdict() == "open"


def test_what_the_ingest_observed_is_enough(items):
    """No slot has to say anything: nobody reads it here."""
    wrong = {**ROWS, "name": pa.array(["a", "x", None])}
    items.connector.stop()
    items.silver(wrong)
    items.verify()
    items.observe()
    items.silver(wrong)
    found = items.verify().verification

    assert (found["verdict"], found["witnesses"]) == ("different", ["connect"])


def test_an_observation_that_silver_has_not_read_settles_nothing(items):
    wrong = {**ROWS, "name": pa.array(["a", "x", None])}
    items.connector.stop()
    items.silver(wrong)
    items.verify()
    items.kafka_end += 10
    items.observe()
    items.silver(wrong, read_to=items.kafka_end - 1)

    assert items.verdict() == "open"


def test_a_slot_ahead_of_what_connect_has_committed_does_not_make_a_late_row_wrong(items):
    """One partition takes no records; another one's are acknowledged, and the slot has the last position."""
    items.observe(up_to="0/1")
    items.sql("INSERT INTO items VALUES (4, 'late')")
    items.silver(ROWS)

    verdicts = []
    for _ in range(3):
        verdicts.append(items.verdict())
        items.deliver()
        items.silver(ROWS)
        items.observe(up_to="0/1")

    assert verdicts == ["open"] * 3


def test_an_observation_of_another_source_says_nothing(items):
    """A restored copy at another address has positions of its own."""
    wrong = {**ROWS, "name": pa.array(["a", "x", None])}
    items.connector.stop()
    items.silver(wrong)
    items.verify()
    items.observe()
    uri = items.lake.confirmations(items.table().group)
    write_confirmations(uri, replace(read_confirmations(uri), address="elsewhere:5432/shop"))
    items.silver(wrong)

    assert items.verdict() == "open"


def test_a_log_that_went_back_makes_no_late_row_wrong(items):
    """A standby took over that lacked some of it; its connector is still to come."""
    items.observe(up_to="7F/0")
    items.silver(ROWS)
    items.connector.stop()
    items.sql("INSERT INTO items VALUES (4, 'late')")
    first = items.verdict()
    items.silver(ROWS)

    assert (first, items.verdict()) == ("open", "open")


def test_a_table_that_is_observed_in_another_epoch_does_not_ask_the_slot(items):
    """Bronze opened an epoch that silver has no record of yet."""
    items.observe(up_to="0/1", epoch=1)
    items.sql("INSERT INTO items VALUES (4, 'late')")

    verdicts = []
    for _ in range(3):
        items.silver(ROWS)
        verdicts.append(items.verdict())
        items.deliver()

    assert verdicts == ["open"] * 3


def test_what_another_epoch_saw_serves_no_look(items):
    wrong = {**ROWS, "name": pa.array(["a", "x", None])}
    items.observe(up_to="0/1")
    items.silver(wrong)
    items.verify()
    items.observe(epoch=1)
    items.silver(wrong)

    assert items.verdict() == "open"


def test_the_slot_speaks_again_where_nobody_observes_any_more(items):
    wrong = {**ROWS, "name": pa.array(["a", "x", None])}
    items.observe(up_to="0/1")
    items.offsets_topic = None
    found = settled(items, columns=wrong).verification

    assert (found["verdict"], found["witnesses"]) == ("different", ["slot"])


def test_the_error_tells_keys_and_columns(items):
    settled(items, columns={**ROWS, "name": pa.array(["a", "secret", None])})
    with pytest.raises(UnfinishedError) as failed:
        items.verification().run(items.table())

    wrong = failed.value.__cause__
    assert isinstance(wrong, SilverDiffersError)
    assert (wrong.count, wrong.kinds, wrong.first) == (1, "1 changed in name", "id=2")


def test_no_value_is_told_or_kept(items):
    result = settled(items, columns={**ROWS, "name": pa.array(["a", "secret", None])})

    assert "secret" not in repr(result)
    assert "secret" not in read_text(items.lake.looks("items"))


def test_a_table_that_the_source_does_not_have_is_an_error(items):
    items.sql("ALTER TABLE items RENAME TO things")
    try:
        with pytest.raises(SourceTableMissingError):
            items.verify()
    finally:
        items.sql("DROP TABLE things")


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


def test_the_preflight_asks_for_the_topic_of_offsets_and_names_the_slots(items):
    connection = items.verification().database.named
    read = source_finding(connection, {})
    items.connector.stop()
    unread = source_finding(connection, {})

    assert read.sentence.endswith("/shop, slots shop")
    assert unread.sentence.endswith("/shop, slots shop (nobody reads it)")
    assert all("`offsets_topic`" in each.advice for each in (read, unread))
    assert "stay open" in unread.advice
