"""Writers of a history take turns, and what one of them left is found and repeated (decision 0028)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chain import Chain, table_of  # type: ignore[import-not-found]
from deltalake import DeltaTable
from orders import know, order  # type: ignore[import-not-found]
from pyspark.sql import functions as F

from cdc_lakehouse.errors import HistoryColumnsUnknownError, SupersededError
from cdc_lakehouse.lake.state import STEPS_ID
from cdc_lakehouse.lake.steps import standing_of
from cdc_lakehouse.silver import applying
from cdc_lakehouse.silver.history import upkeep
from cdc_lakehouse.silver.look import MergeTask, look_at
from cdc_lakehouse.silver.table_merge import merge_table

ORDERS = table_of("orders", history=True)
WITHOUT = table_of("orders")


@pytest.fixture(scope="module")
def template(engine, tmp_path_factory) -> Chain:
    chain = Chain(engine, root=tmp_path_factory.mktemp("history").as_uri())
    know(chain)
    chain.ingest(ORDERS, [order(0, 1, note="one"), order(1, 2, note="two")])
    chain.merge(ORDERS)
    chain.ingest(ORDERS, [order(2, 1, op="u", note="uno"), order(3, 2, op="d")])
    return chain


@pytest.fixture
def behind(template: Chain, tmp_path: Path) -> Chain:
    """Silver and history have the first two of four events."""
    return template.copied_to(tmp_path)


def versions(chain: Chain) -> list[tuple[Any, ...]]:
    rows = chain.history(ORDERS)
    told = [
        (row["id"], row["note"], row["_cdc_from"]["row"], (row["_cdc_to"] or {}).get("row")) for row in rows
    ]
    return sorted(told, key=lambda row: row[:1] + row[2:3])


ALL = [(1, "one", 1000, 1020), (1, "uno", 1020, None), (2, "two", 1010, 1030)]


def killed(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def end_before_silver(chain: Chain) -> None:
    """An attempt that has written its history and is killed then."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(applying, "_applied", killed)
        with pytest.raises(KeyboardInterrupt):
            chain.merge(ORDERS)


def test_an_attempt_that_ends_before_silver_is_repeated_without_a_trace(behind):
    end_before_silver(behind)
    left = versions(behind)

    behind.merge(ORDERS)

    assert (left, versions(behind)) == (ALL, ALL)


def test_a_writer_that_was_overtaken_changes_nothing(behind, monkeypatch):
    stale = standing_of(behind.lake.history("orders"))
    end_before_silver(behind)
    version = DeltaTable(behind.lake.history("orders")).version()
    monkeypatch.setattr(upkeep, "standing_of", lambda uri: stale)

    with pytest.raises(SupersededError):
        behind.merge(ORDERS)

    assert DeltaTable(behind.lake.history("orders")).version() == version
    assert DeltaTable(behind.lake.history("orders")).transaction_version(STEPS_ID) == 2


def test_what_another_attempt_wrote_between_a_history_and_its_silver_does_not_stay(behind, monkeypatch):
    stale = look_at(behind.application(ORDERS), ORDERS)
    assert isinstance(stale, MergeTask)
    behind.ingest(ORDERS, [order(4, 1, op="u", note="eins")])
    real = applying._applied

    def come_between(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(applying, "_applied", killed)
        with pytest.raises(KeyboardInterrupt):
            merge_table(behind.application(ORDERS), stale)
        return real(*arguments, **named)

    monkeypatch.setattr(applying, "_applied", come_between)
    behind.merge(ORDERS)
    monkeypatch.setattr(applying, "_applied", real)
    behind.ingest(ORDERS, [order(5, 3, note="three")])

    behind.merge(ORDERS)

    first, second, other = ALL
    assert versions(behind) == [
        first, (*second[:3], 1040), (1, "eins", 1040, None), other, (3, "three", 1050, None),
    ]  # fmt: skip


def test_a_history_that_missed_a_merge_is_made_anew(behind):
    behind.merge(WITHOUT)
    behind.ingest(ORDERS, [order(4, 3, note="three")])

    behind.merge(ORDERS)

    assert versions(behind) == [*ALL, (3, "three", 1040, None)]


def test_a_history_of_older_rules_is_cut_anew_by_the_next_merge(behind, monkeypatch):
    """Its versions could overlap in time, also those that bronze does not tell of any more."""
    history = behind.lake.history("orders")
    monkeypatch.setattr(upkeep, "RULES", 1)
    behind.merge(ORDERS)
    behind.sql("UPDATE {t} SET _cdc_to_ts = _cdc_to_ts + INTERVAL 1 DAY WHERE id = 1", history)
    rows = behind.session.read.format("delta").load(history).where("id = 1")
    rows.withColumn("id", F.lit(9).cast("bigint")).write.format("delta").mode("append").save(history)
    monkeypatch.setattr(upkeep, "RULES", 2)
    behind.ingest(ORDERS, [order(4, 3, note="three")])

    behind.merge(ORDERS)

    old = [(9, "one", 1000, 1020), (9, "uno", 1020, None)]
    assert versions(behind) == [*ALL, (3, "three", 1040, None), *old]
    for number in (1, 9):
        own = [row for row in behind.history(ORDERS) if row["id"] == number]
        first, second = sorted(own, key=lambda row: row["note"])
        assert first["_cdc_to_ts"] == second["_cdc_from_ts"]
    assert standing_of(history).rules == 2


def test_a_tracked_column_that_no_row_has_stops_the_table(behind):
    table = table_of("orders", history={"columns": ["note", "nope"]})

    with pytest.raises(HistoryColumnsUnknownError) as caught:
        behind.merge(table)

    assert (caught.value.table, caught.value.columns) == ("orders", "nope")
