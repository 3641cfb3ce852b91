"""Rows and overviews as text tables, on a terminal and in a pipe alike."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from datetime import datetime

import pyarrow as pa
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from cdc_lakehouse.inspection.overview import TableOverview, counted
from cdc_lakehouse.inspection.quarantine import Cases
from cdc_lakehouse.redaction import printable

MOST_ROWS = 200
_WIDTH_OF_A_FILE = 240
_HEADINGS = (
    "pipeline",
    "table",
    "ingest",
    "merge",
    "state",
    "verified",
    "valid-through",
    "seen-through",
    "lag",
    "behind",
    "rows",
    "bronze",
    "silver",
)
_STYLES = {
    "advanced": "green",
    "idle": "green",
    "failed": "bold red",
    "superseded": "yellow",
    "equal": "green",
    "open": "yellow",
    "different": "bold red",
}


def _text(content: str, style: str = "") -> Text:
    """Return text that is safe on a terminal: names and values may contain escape sequences."""
    return Text(printable(content), style=style)


def _console() -> Console:
    return Console(highlight=False, width=None if sys.stdout.isatty() else _WIDTH_OF_A_FILE)


def print_overview(found: Sequence[TableOverview]) -> None:
    table = Table(*_HEADINGS, box=SIMPLE_HEAD)
    for entry in found:
        table.add_row(
            _text(entry.pipeline),
            _text(entry.table),
            _text(entry.ingest, style=_STYLES.get(entry.ingest, "dim")),
            _text(entry.merge, style=_STYLES.get(entry.merge, "dim")),
            _render_state(entry),
            _text(entry.verified, style=_STYLES.get(entry.verified, "dim")),
            _moment(entry.valid_through) or (_text("withheld", style="yellow") if entry.withheld else ""),
            _moment(entry.seen_through),
            "" if entry.lag_seconds is None else f"{entry.lag_seconds:.0f} s",
            *map(_number, (entry.lag_offsets, entry.rows, entry.bronze_version, entry.silver_version)),
        )
    console = _console()
    console.print(table)
    for entry in found:
        if entry.problem:
            console.print(_text(f"{entry.pipeline}.{entry.table}: {entry.problem}", style="red"))
    _print_stalled(console, found)
    _print_withheld(console, found)
    for pipeline in dict.fromkeys(entry.pipeline for entry in found if entry.unproven_source):
        line = f"{pipeline}: unproven_source: the order of its changes was accepted and is not proven"
        console.print(_text(line, style="yellow"))
    numbers = counted(found)
    console.print(_text(f"{numbers['tables']} tables, {numbers['failed']} with a problem", style="bold"))
    if found and numbers["empty"] == numbers["tables"]:
        console.print("the lake is empty: no table was merged yet; `make demo` or a DAG run fills it")
    console.print(
        _text(
            "valid-through: silver has every change that the source had committed then. seen-through: "
            "commit time of the newest change that silver has. lag: the age of that change; it grows while "
            "the source is quiet. behind: offsets of Kafka that silver has still to apply, as far as a run "
            "has seen them.",
            style="dim",
        )
    )


def _render_state(entry: TableOverview) -> Text:
    stalled = [("stalled", "bold red")] if entry.stalled else []
    incomplete = [(f"incomplete({entry.open_cases})", "yellow")] if entry.open_cases else []
    return _text(" ").join(_text(word, style=style) for word, style in (*stalled, *incomplete))


def _print_stalled(console: Console, found: Sequence[TableOverview]) -> None:
    """Each reason once, with its tables."""
    for reason in dict.fromkeys(entry.stalled for entry in found if entry.stalled):
        names = ", ".join(f"{each.pipeline}.{each.table}" for each in found if each.stalled == reason)
        console.print(_text(f"stalled: {names}: {reason}", style="red"))


def _print_withheld(console: Console, found: Sequence[TableOverview]) -> None:
    """Each reason once, with its tables."""
    for reason in dict.fromkeys(entry.withheld for entry in found if entry.withheld):
        names = ", ".join(f"{each.pipeline}.{each.table}" for each in found if each.withheld == reason)
        console.print(_text(f"not valid-through: {names}: {reason}", style="dim"))
    for entry in found:
        if entry.way_out:
            console.print(_text(f"{entry.pipeline}.{entry.table}: {entry.way_out}", style="dim"))


def print_quarantine(found: Sequence[Cases]) -> None:
    table = Table("pipeline", "table", "code", "records", "schemas", "since", "first", box=SIMPLE_HEAD)
    for each in found:
        schemas = ", ".join(map(str, each.schema_ids))
        since, first = _moment(each.since), ", ".join(each.first)
        code = f"{each.code} (closed)" if each.closed else each.code
        cells = (each.pipeline, each.table, code, str(each.count), schemas, since, first)
        table.add_row(*map(_text, cells))
    console = _console()
    if found:
        console.print(table)
    for each in found:
        console.print(_text(f"{each.pipeline}.{each.table} {each.first[0]}: {each.detail}", style="dim"))
    for each in found:
        parameter = "reopen_cases" if each.closed else "close_cases"
        console.print(_text(f"{each.pipeline} {parameter}: `{each.decision}`", style="dim"))
    console.print(
        _text(f"{sum(each.count for each in found if not each.closed)} records in quarantine", style="bold")
    )


def print_rows(rows: pa.Table, *, most: int = MOST_ROWS) -> None:
    table = Table(*(Column(_text(name)) for name in rows.column_names), box=SIMPLE_HEAD)
    columns = [column.to_pylist() for column in rows.slice(0, most).columns]  # two may have one name
    for row in zip(*columns, strict=True):
        table.add_row(*_cells(row))
    console = _console()
    console.print(table)
    more = f", the first {most} are shown" if rows.num_rows > most else ""
    console.print(_text(f"{rows.num_rows} rows{more}", style="dim"))


def _cells(values: Iterable[object]) -> list[Text]:
    """NULL is not the empty text."""
    return [_text("NULL", style="dim") if value is None else _text(str(value)) for value in values]


def _moment(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M:%S}"


def _number(number: int | None) -> str:
    return "" if number is None else str(number)
