"""Rows that differ in nothing but columns that came lately are told apart from rows that are wrong."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.verification.differences import Difference, Kind
from cdc_lakehouse.verification.subject import NewColumn, new_columns
from cdc_lakehouse.verification.told import unsent_columns

ADDED = NewColumn("note", "note (added)", was_sent_before=False)
AGAIN = NewColumn("n", "n (sent again)", was_sent_before=True)
NEW = {"note": ADDED, "n": AGAIN}


@pytest.mark.parametrize(
    ("kind", "columns", "expected"),
    [
        (Kind.CHANGED, {"note": ("ab", "NULL")}, ("note",)),
        (Kind.CHANGED, {"note": ("ab", "NULL"), "n": ("cd", "ef")}, ("note", "n")),
        (Kind.CHANGED, {"note": ("ab", "cd")}, None),
        (Kind.CHANGED, {"note": ("ab", "NULL"), "total": ("ab", "NULL")}, None),
        (Kind.MISSING, {}, None),
        (Kind.DOUBLED, {}, None),
    ],
)
def test_only_values_that_no_event_can_have_told_are_explained(kind, columns, expected):
    assert unsent_columns(Difference(("1",), kind, "written by 7", columns), NEW) == expected


def test_the_log_of_changes_says_which_columns_came_and_when(tmp_path):
    lake = Lake(root=tmp_path.as_uri(), pipeline="shop")
    (tmp_path / "silver" / "shop").mkdir(parents=True)
    lines = [
        ("items", "added", "note", 1, [12]),
        ("items", "widened", "total", 2, [13]),
        ("items", "dropped", "n", 3, [14]),
        ("items", "sent_again", "n", 4, None),
        ("others", "added", "x", 5, [15]),
    ]
    columns = zip(*lines, strict=True)
    names = ("table", "change", "column", "at", "value_schema_ids")
    log = dict(zip(names, map(list, columns), strict=True))
    days = [datetime(2026, 1, day, 9, 30, tzinfo=UTC) for day in log["at"]]
    log["at"] = pa.array(days, pa.timestamp("us", "UTC"))
    write_deltalake(lake.schema_changes, pa.table(log))

    assert new_columns(lake, "items") == {
        "note": NewColumn("note", "note (added 2026-01-01 09:30, schema 12)", was_sent_before=False),
        "n": NewColumn("n", "n (sent again 2026-01-04 09:30)", was_sent_before=True),
    }
    assert new_columns(Lake(root=tmp_path.as_uri(), pipeline="other"), "items") == {}
