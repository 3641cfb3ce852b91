"""Names become paths and SQL in one place only, and only when they are sound."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cdc_lakehouse.lake.names import Lake, literal, new_attempt, quoted, safe

LAKE = Lake(root="file:///lake", pipeline="shop")


@pytest.mark.parametrize("name", ["orders", "Orders_2", "a", "20260101T000000Z-0badcafe", "a.b", "x" * 255])
def test_a_sound_name_is_taken_as_it_is(name):
    assert safe(name) == name


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "/a", ".hidden", "-x", "a b", "a\n", "ä", "a\\b", "x" * 256]
)
def test_a_name_that_could_leave_its_folder_is_refused(name):
    with pytest.raises(ValueError, match="cannot be part of a path"):
        safe(name)


def test_no_table_can_lie_where_the_log_of_schema_changes_does():
    folder, _, name = LAKE.schema_changes.rpartition("/")

    assert folder == LAKE.silver("orders").rpartition("/")[0]
    with pytest.raises(ValueError, match="cannot be part of a path"):
        LAKE.silver(name)


def test_identifiers_are_quoted_by_doubling_back_ticks():
    assert quoted("delta", "file:///lake/a`b") == "`delta`.`file:///lake/a``b`"


def test_literals_escape_quotes_and_backslashes():
    assert literal("it's \\ here") == "'it\\'s \\\\ here'"


def test_an_attempt_is_its_time_and_a_random_part():
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    first, second = new_attempt(now), new_attempt(now)

    assert first.startswith("20260102T030405Z-")
    assert len(first) == 25
    assert first != second


def test_everything_has_its_place():
    attempt = "20260102T030405Z-0badcafe"

    assert LAKE.bronze("orders") == "file:///lake/bronze/shop/orders"
    assert LAKE.silver("orders") == "file:///lake/silver/shop/orders"
    assert LAKE.checkpoint("orders", attempt) == f"file:///lake/_ops/shop/checkpoints/orders/{attempt}"
    assert LAKE.run(attempt, "vacuum") == f"file:///lake/_ops/shop/runs/2026-01-02/{attempt}/vacuum"


@pytest.mark.parametrize("table", ["../other", "a/b", ""])
def test_no_table_name_leaves_the_lake(table):
    with pytest.raises(ValueError, match="cannot be part of a path"):
        LAKE.bronze(table)
