"""What counts as a difference between PostgreSQL and silver, and what is known never to be sent."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from history.alterations import Unsent  # type: ignore[import-not-found]
from history.comparing import compare  # type: ignore[import-not-found]
from history.content import Content, QuietPoint, keep, kept  # type: ignore[import-not-found]
from history.inequalities import Unwritten, plain_value  # type: ignore[import-not-found]
from history.shapes import Column  # type: ignore[import-not-found]
from history.writers import UnsentColumn  # type: ignore[import-not-found]

ID, NOTE, STAMP = Column("id", "integer", required=True), Column("note", "text"), Column("stamp", "bigint")
ALL_SENT = Unwritten(())
TYPES = pa.schema(
    [("id", pa.int32()), ("note", pa.string()), ("stamp", pa.int64()), ("_cdc_op", pa.string())]
)


def source(*rows: tuple[str | None, ...], note: Any = NOTE) -> Any:
    return Content("t", ("id",), (ID, note, STAMP), rows)


def silver(*rows: tuple[Any, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(TYPES.names, row, strict=True)) for row in rows], schema=TYPES)


def told(content: Any, table: pa.Table | None, unwritten: Any = ALL_SENT) -> list[str]:
    return [str(each) for each in compare(content, table, unwritten).differences]


def test_equal_rows_have_no_difference():
    assert told(source(("1", "a", "5")), silver((1, "a", 5, "c"))) == []


def test_a_missing_row_is_told_by_its_key():
    assert told(source(("1", "a", "5")), silver()) == [
        "t key (1,): PostgreSQL has one row, silver has 0 rows"
    ]


def test_a_row_too_many_is_told_by_its_key():
    assert told(source(), silver((1, "a", 5, "c"))) == [
        "t key (1,): PostgreSQL has no row, silver has 1 rows"
    ]


def test_a_key_that_stands_twice_is_told():
    twice = silver((1, "a", 5, "c"), (1, "a", 5, "c"))

    assert told(source(("1", "a", "5")), twice) == ["t key (1,): PostgreSQL has one row, silver has 2 rows"]


def test_null_is_not_the_empty_text():
    assert told(source(("1", None, "5")), silver((1, "", 5, "c"))) == [
        "t key (1,) column note: PostgreSQL has None, silver has ''"
    ]


def test_a_table_that_silver_does_not_have_yet_is_empty():
    assert told(source(), None) == []


def test_null_may_be_the_default_of_its_column():
    note = Column("note", "text", default="given")

    assert told(source(("1", None, "5"), note=note), silver((1, "given", 5, "c"))) == []


def test_what_is_sent_as_null_may_be_the_default_too():
    number = Column("note", "numeric", default="1.5")

    assert told(source(("1", "NaN", "5"), note=number), silver((1, "1.5", 5, "c"))) == []


def test_a_new_column_is_null_where_nobody_wrote_since():
    unsent = Unwritten((UnsentColumn("t", "note", 6, Unsent.NULL),))

    assert told(source(("1", "given", "5")), silver((1, None, 5, "c")), unsent) == []


@pytest.mark.parametrize(("value", "differs"), [(None, 0), ("given", 0), ("other", 1)])
def test_a_new_column_with_a_default_may_have_it_where_nobody_wrote_since(value, differs):
    unsent = Unwritten((UnsentColumn("t", "note", 6, Unsent.NULL),))
    note = Column("note", "text", default="given")

    found = told(source(("1", "given", "5"), note=note), silver((1, value, 5, "c")), unsent)

    assert len(found) == differs


def test_a_new_column_has_its_value_where_somebody_wrote_since():
    unsent = Unwritten((UnsentColumn("t", "note", 4, Unsent.NULL),))

    assert told(source(("1", "given", "5")), silver((1, None, 5, "c")), unsent) == [
        "t key (1,) column note: PostgreSQL has 'given', silver has None"
    ]


def test_a_snapshot_may_have_sent_a_new_column_after_all():
    unsent = Unwritten((UnsentColumn("t", "note", 6, Unsent.NULL),), {"t"})

    assert told(source(("1", "given", "5")), silver((1, "given", 5, "c")), unsent) == []


def test_a_value_that_nobody_can_know_is_counted():
    unsent = Unwritten((UnsentColumn("t", "note", 6, Unsent.ANYTHING),))

    assert compare(source(("1", None, "5")), silver((1, "old", 5, "c")), unsent).exempt == 1


@pytest.mark.parametrize(
    ("text", "sql", "type_", "value"),
    [
        ("NaN", "numeric(8,2)", pa.decimal128(8, 2), None),
        ("1.500", "numeric", pa.string(), "1.5"),
        ("100", "numeric", pa.string(), "100"),
        ("infinity", "timestamp without time zone", pa.timestamp("us"), None),
        ("10000-01-01", "date", pa.date32(), None),
        ("2001:db8::/32", "inet", pa.string(), "2001:db8::/32"),
        ("merry", "history.mood", pa.string(), "merry"),
    ],
)
def test_what_is_not_sent_or_fits_nowhere_is_null(text, sql, type_, value):
    assert plain_value(text, sql, type_) == value


def test_a_quiet_point_is_read_as_it_was_kept(tmp_path):
    point = QuietPoint(3, "0/1A", 1_700_000_000_000_000, (source(("1", None, "5")),))
    keep(tmp_path, point)

    assert kept(tmp_path, 3) == point
