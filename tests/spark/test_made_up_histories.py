"""Silver and its history are one function of all events, whatever batches they came in: made-up sources."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from chain import Chain, table_of  # type: ignore[import-not-found]
from made_up_source import COLUMNS, MadeUpSource, batches, drains, made_up_case  # type: ignore[import-not-found]

from cases.case_file import Case  # type: ignore[import-not-found]
from cases.encoding import COMMIT_MILLIS, writers  # type: ignore[import-not-found]
from cases.rows import in_coordinate_order, millis_of, specified_silver, told_bronze, told_silver  # type: ignore[import-not-found]
from cdc_lakehouse.config.models import Table
from epochs_oracle import Epochs  # type: ignore[import-not-found]
from history_oracle import history_of  # type: ignore[import-not-found]
from oracle import silver_of  # type: ignore[import-not-found]

Rows = list[dict[str, Any]]
ID = itemgetter("id")
TIMES = ("_cdc_from_ts", "_cdc_to_ts")
DOCS = Path(__file__).parents[2] / "include" / "docs"
PRINTED = "orders__history"
SEEDS = range(*(int(bound) for bound in os.environ.get("MADE_UP_SEEDS", "0,0").split(",")))
"""More of them than a run of all tests has time for, by hand: `MADE_UP_SEEDS=10,40`."""


def by_place(rows: Rows) -> Rows:
    """A value that nobody told is none."""
    whole = [{**dict.fromkeys(COLUMNS), **row} for row in rows]
    return sorted(whole, key=lambda row: (row["id"], row["_cdc_from"]))


def told_history(row: dict[str, Any]) -> dict[str, Any]:
    places = {name: row[name] and list(row[name].values()) for name in ("_cdc_from", "_cdc_to")}
    return {**row, **places, **{name: millis_of(row[name]) for name in TIMES}}


@dataclass
class Specified:
    """The rows of bronze with their source epochs, drain by drain."""

    case: Case
    epochs: Epochs = field(default_factory=Epochs)
    rows: Rows = field(default_factory=list)

    def drained(self, bronze: Rows) -> None:
        told = []
        for row in bronze:
            source = row["source"] or {}
            more = {"snapshot": source.get("snapshot"), "ts": millis_of(source.get("ts")) or 0}
            told.append({**told_bronze(self.case, row), **more})
        known = {row["at"] for row in self.rows}
        self.rows += self.epochs.drain(in_coordinate_order([row for row in told if row["at"] not in known]))

    def silver(self, *, deletes: str) -> Rows:
        return [specified_silver(self.case, row) for row in silver_of(self.rows, deletes=deletes).values()]

    def history(self, tracked: Any) -> Rows:
        return by_place(history_of(self.rows, tracked=tracked))


def as_of(history: Rows, moment: int) -> dict[int, int]:
    """Key -> how many versions of it the query of the docs returns."""
    return Counter(
        row["id"]
        for row in history
        if row["_cdc_from_ts"] <= moment and (row["_cdc_to_ts"] is None or row["_cdc_to_ts"] > moment)
    )


def has_one_version_at_any_time(history: Rows) -> bool:
    """One of each row from the begin of a life to its end, and none outside; `history` is in order."""
    for before, behind in pairwise(history):
        if before["id"] == behind["id"]:
            goes_on = before["_cdc_to"] == behind["_cdc_from"]
            assert before["_cdc_to_ts"] <= behind["_cdc_from_ts"]
            assert not goes_on or before["_cdc_to_ts"] == behind["_cdc_from_ts"]
    moments = {row[name] for row in history for name in TIMES if row[name] is not None}
    return all(set(as_of(history, moment).values()) <= {1} for moment in moments)


def documented_query(chain: Chain, table: Table, moment: int) -> dict[int, int]:
    """The query that `silver.md` prints, over the table."""
    text = (DOCS / "silver.md").read_text(encoding="utf-8").partition("As of a moment:\n\n```sql\n")[2]
    query = text.partition("```")[0].replace(f"silver.{PRINTED}", f"delta.`{chain.lake.history(table.name)}`")
    at = datetime.fromtimestamp((COMMIT_MILLIS + moment) / 1000, UTC)
    rows = chain.session.sql(query.replace("2026-11-01 00:00:00+00", at.isoformat(" "))).collect()
    return Counter(row["id"] for row in rows)


@pytest.mark.parametrize(
    ("seed", "deletes", "history", "read_again"),
    [
        (1, "hard", True, 0.0),
        (2, "soft", {"columns": ["note"]}, 0.0),
        (3, "hard", True, 0.06),
        pytest.param(4, "soft", {"columns": ["note"]}, 0.12, marks=pytest.mark.long),
        *((seed, "hard", True, 0.12) for seed in SEEDS),
        *((seed, "soft", True, 0.12) for seed in SEEDS),
        *((seed, "hard", {"columns": ["note"]}, 0.12) for seed in SEEDS),
    ],
)
def test_after_every_merge_both_are_as_specified(chain, seed, deletes, history, read_again):
    random = Random(seed)  # noqa: S311 - a seed, no secret
    source, case = MadeUpSource(random), made_up_case("made_up")
    source.run(60, read_again=read_again)
    table = table_of("made_up", deletes=deletes, history=history)
    writer = writers(case, first_id=10)[1]
    (key_id, key), (value_id, value) = writer.schemas.items()
    chain.registry.register(table.topics[0], keys={key_id: key}, values={value_id: value})
    tracked, specified = None if history is True else history["columns"], Specified(case)

    some = drains(source, random, count=2) if read_again else batches(source, random, count=4)
    for number, batch in enumerate(some):
        if batch:
            chain.ingest(table, [writer.record(event) for event in batch])
            chain.merge(table)
            specified.drained(chain.bronze(table))

            silver = [told_silver(case, row) for row in chain.silver(table)]
            versions = by_place([told_history(row) for row in chain.history(table)])
            expected = specified.silver(deletes=deletes)
            assert sorted(silver, key=ID) == sorted(expected, key=ID), number
            assert versions == specified.history(tracked), number
            assert has_one_version_at_any_time(versions), number

    alive = {row["id"]: row["note"] for row in silver if not row.get("_cdc_deleted")}
    assert alive == {key: row["note"] for key, row in source.rows.items()}
    for moment in (0, source.clock // 2, source.clock):
        assert documented_query(chain, table, moment) == as_of(versions, moment)
