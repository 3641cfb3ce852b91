"""A merge without a Spark job writes what the specification says, or leaves the table to the general one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import chain as chain_module  # type: ignore[import-not-found]
import pytest
from chain import Chain, table_of
from orders import know, notes, order  # type: ignore[import-not-found]

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.contract import TableResult
from cdc_lakehouse.lake.snapshot import snapshot_at
from cdc_lakehouse.silver.columnar.bronze_rows import read_work
from cdc_lakehouse.silver.columnar.event_facts import examine_plain_rows
from cdc_lakehouse.silver.columnar.small_merge import merge_small
from cdc_lakehouse.silver.examine import examine
from cdc_lakehouse.silver.look import MergeTask
from cdc_lakehouse.silver.read import bronze_rows, work_of
from cdc_lakehouse.silver.table_merge import merge_table

ORDERS = table_of("orders")


@pytest.fixture
def merges(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the kinds of the merges that a test makes, in their order."""
    kinds: list[str] = []

    def merge(application: Application, task: MergeTask) -> TableResult:
        refuse_other_facts(application, task)
        result = merge_small(application, task)
        kinds.append("general" if result is None else "small")
        return merge_table(application, task) if result is None else result

    monkeypatch.setattr(chain_module, "merge_table", merge)
    return kinds


def refuse_other_facts(application: Application, task: MergeTask) -> None:
    """Compare what both merges find out about the same rows before they fold them."""
    uri, name = application.lake.bronze(task.table.name), task.table.name
    bronze = snapshot_at(uri, task.bronze_version)
    assert bronze is not None
    facts = examine_plain_rows(read_work(bronze, task.work, held=task.held))
    if facts is not None:
        rows = bronze_rows(application.spark.isolated(), uri, version=task.bronze_version, held=task.held)
        expected = examine(rows.where(work_of(task.held, task.work)), table=name)
        assert facts == replace(expected, newest_writers=dict(expected.newest_writers))


@pytest.mark.parametrize(
    ("deletes", "history"), [("hard", True), ("soft", {"columns": ["note"]})], ids=["hard", "soft_tracked"]
)
def test_all_tables_are_as_the_general_merge_leaves_them(
    chain: Chain, tmp_path: Path, merges: list[str], deletes: str, history: Any
):
    random = Random(7)  # noqa: S311 - a seed, no secret
    table = table_of("orders", deletes=deletes, history=history)
    know(chain)
    chain.ingest(table, [order(number, number, note="first") for number in range(6)])
    chain.merge(table)
    other = chain.copied_to(tmp_path / "other")
    rows, offset = dict.fromkeys(range(6), "first"), 6
    for _ in range(3):
        batch = []
        for _ in range(8):
            batch.append(made_up_change(random, rows, offset))
            offset += 1
        chain.ingest(table, batch)
        chain.merge(table)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(chain_module, "merge_table", merge_table)
            other.ingest(table, batch)
            other.merge(table)

    assert merges == ["general", "small", "small", "small"]
    alive = [row for row in chain.silver(table) if not row.get("_cdc_deleted")]
    assert {row["id"]: row["note"] for row in alive} == rows
    layers = ("silver", "history", *(("tombstones",) if deletes == "hard" else ()))
    for layer in layers:
        uris = [getattr(one.lake, layer)("orders") for one in (chain, other)]
        assert plain_rows(chain, uris[0]) == plain_rows(other, uris[1]), layer


def made_up_change(random: Random, rows: dict[int, str], offset: int) -> Any:
    """Return an event of a source that has `rows`, and change them as it does."""
    number = random.randrange(9)
    if number not in rows:
        rows[number] = f"n{random.randrange(3)}"
        return order(offset, number, note=rows[number])
    if random.random() < 0.3:
        del rows[number]
        return order(offset, number, op="d")
    rows[number] = f"n{random.randrange(3)}"
    return order(offset, number, op="u", note=rows[number])


def plain_rows(chain: Chain, uri: str) -> list[str]:
    return sorted(str(sorted(row.items())) for row in chain.rows(uri))


def test_a_merge_counts_what_it_did_and_moves_the_ledger_on(chain: Chain, merges: list[str]):
    know(chain)
    chain.ingest(ORDERS, [order(0, 1, note="one"), order(1, 2, note="two"), order(2, 3, note="three")])
    chain.merge(ORDERS)
    chain.ingest(ORDERS, [order(3, 1, op="u", note="newer"), order(4, 2, op="d"), order(5, 4, note="four")])

    result = chain.merge(ORDERS)
    again = chain.merge(ORDERS)

    assert merges == ["general", "small"]
    assert {name: result.counts[name] for name in ("rows_inserted", "rows_updated", "rows_deleted")} == {
        "rows_inserted": 1,
        "rows_updated": 1,
        "rows_deleted": 1,
    }
    assert notes(chain.silver(ORDERS)) == {1: "newer", 3: "three", 4: "four"}
    assert again.ranges == {}
    assert [row["id"] for row in chain.rows(chain.lake.tombstones("orders"))] == [2]


def test_a_late_event_is_left_to_the_general_merge(chain: Chain, merges: list[str]):
    know(chain)
    chain.ingest(ORDERS, [order(0, 1, note="one")])
    chain.merge(ORDERS)
    chain.ingest(ORDERS, [order(1, 1, op="u", note="newest")])
    chain.merge(ORDERS)
    chain.ingest(ORDERS, [replace_offset(order(0, 1, note="one"), 2)])
    chain.merge(ORDERS)

    assert merges == ["general", "small", "general"]
    assert notes(chain.silver(ORDERS)) == {1: "newest"}


def replace_offset(record: Any, offset: int) -> Any:
    return replace(record, offset=offset)
