"""What `make tables` and `make quarantine` say about records that could not be decoded."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from cdc_lakehouse.inspection.overview import TableOverview
from cdc_lakehouse.inspection.printing import print_overview, print_quarantine, print_rows
from cdc_lakehouse.inspection.quarantine import Cases


def table(name: str, *, open_cases: int = 0, **more: Any) -> TableOverview:
    return TableOverview(
        pipeline="shop",
        table=name,
        ingest="advanced",
        merge="advanced",
        seen_through=None,
        lag_seconds=None,
        lag_offsets=None,
        bronze_version=3,
        silver_version=2,
        rows=7,
        open_cases=open_cases,
        problem="",
        **more,
    )


def test_a_table_is_told_with_the_time_up_to_which_it_is_complete(capsys):
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)

    print_overview([table("orders", valid_through=noon), table("refunds", withheld="gaps")])

    lines = capsys.readouterr().out.splitlines()
    orders, refunds = (next(line for line in lines if name in line) for name in ("orders", "refunds"))
    assert "2026-01-01 12:00:00" in orders
    assert "withheld" in refunds
    assert "not valid-through: shop.refunds: gaps" in lines


def test_tables_that_nothing_reaches_are_told_once_with_the_reason_and_counted(capsys):
    dead = "connector shop: task 0 is FAILED"
    print_overview(
        [table("orders", stalled=dead, open_cases=1), table("refunds", stalled=dead), table("new")]
    )

    lines = capsys.readouterr().out.splitlines()
    assert "stalled incomplete(1)" in next(line for line in lines if "orders" in line)
    assert f"stalled: shop.orders, shop.refunds: {dead}" in lines
    assert "3 tables, 2 with a problem" in lines


def test_a_pipeline_that_accepts_an_unproven_source_is_told_each_time(capsys):
    print_overview([table("orders", unproven_source=True), table("refunds", unproven_source=True)])

    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "unproven" in line] == [
        "shop: unproven_source: the order of its changes was accepted and is not proven"
    ]


def test_a_table_with_open_cases_is_incomplete_by_their_number(capsys):
    print_overview([table("orders", open_cases=12), table("refunds", open_cases=0)])

    lines = capsys.readouterr().out.splitlines()
    orders, refunds = (next(line for line in lines if name in line) for name in ("orders", "refunds"))
    assert "incomplete(12)" in orders
    assert "incomplete" not in refunds


def test_the_listing_names_code_count_schemas_and_first_coordinates(capsys):
    cases = Cases(
        pipeline="shop",
        table="orders",
        code="truncated",
        count=4,
        first=("shop.orders/0@17", "shop.orders/2@3"),
        detail="2 bytes are missing",
        schema_ids=(5, 9),
        since=datetime(2026, 3, 1, 4, 5, 6, tzinfo=UTC),
        decision="orders=truncated:4records@5f1c09ae77d2",
    )

    print_quarantine([cases])

    said = capsys.readouterr().out
    row = next(line for line in said.splitlines() if "truncated" in line)
    assert row.split() == [
        *("shop", "orders", "truncated", "4", "5,", "9"),
        *("2026-03-01", "04:05:06", "shop.orders/0@17,", "shop.orders/2@3"),
    ]
    assert "shop.orders shop.orders/0@17: 2 bytes are missing" in said
    assert "shop close_cases: `orders=truncated:4records@5f1c09ae77d2`" in said
    assert said.rstrip().endswith("4 records in quarantine")


def test_closed_cases_are_listed_and_not_counted(capsys):
    cases = Cases(
        pipeline="shop",
        table="orders",
        code="truncated",
        count=4,
        first=("shop.orders/0@17",),
        detail="2 bytes are missing",
        schema_ids=(),
        since=datetime(2026, 3, 1, 4, 5, 6, tzinfo=UTC),
        decision="orders=truncated:4records@5f1c09ae77d2",
        closed=True,
    )

    print_quarantine([cases])

    said = capsys.readouterr().out
    assert "truncated (closed)" in said
    assert "shop reopen_cases: `orders=truncated:4records@5f1c09ae77d2`" in said
    assert said.rstrip().endswith("0 records in quarantine")


def test_an_empty_quarantine_says_so(capsys):
    print_quarantine([])

    assert capsys.readouterr().out.strip() == "0 records in quarantine"


def test_no_name_and_no_value_reaches_the_terminal_as_an_escape(capsys):
    hostile = "\x1b]0;owned\x07\x1b[2J\x9b2J[red]"
    print_overview([table(f"orders{hostile}", withheld=hostile, stalled=hostile)])
    print_rows(pa.table({f"note{hostile}": [hostile, None], "plain": ["größe", "a\nb"]}))

    told = capsys.readouterr().out
    assert [each for each in told if not each.isprintable() and each != "\n"] == []
    assert "\\x1b]0;owned\\x07" in told
    assert "[red]" in told
    assert "größe" in told
