"""OPTIMIZE and VACUUM in the middle of a merge: at worst it is tried again, and no row is lost or doubled."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from chain import Chain, table_of  # type: ignore[import-not-found]
from orders import ORDERS, know, notes, order  # type: ignore[import-not-found]

from cdc_lakehouse.config.models import Table
from cdc_lakehouse.contract import ExitCode, Job, TableResult, TableStatus
from cdc_lakehouse.lake.row_replacement import RowReplacement
from cdc_lakehouse.lake.snapshot import newest_snapshot
from cdc_lakehouse.maintenance.optimize import optimize
from cdc_lakehouse.maintenance.plan import plan_optimize
from cdc_lakehouse.maintenance.vacuum import vacuum
from cdc_lakehouse.silver.job import merge_tables
from cdc_lakehouse.silver.look import MergeTask, look_at
from cdc_lakehouse.silver.table_merge import merge_table

SOFT = table_of("orders", deletes="soft")
RETENTION = timedelta(days=7)
AFTER = {1: "uno", 3: "three", 4: "four"}


@pytest.fixture(scope="module")
def template(engine, tmp_path_factory) -> Chain:
    chain = Chain(engine, root=tmp_path_factory.mktemp("beside").as_uri())
    know(chain)
    for first in (0, 2):
        chain.ingest(
            ORDERS, [order(first, first + 1, note=("one", "three")[first // 2]), order(first + 1, 2)]
        )
        chain.merge(ORDERS)
    vacuumed(chain, chain.lake.silver("orders"))
    chain.ingest(ORDERS, [order(4, 1, op="u", note="uno"), order(5, 2, op="d"), order(6, 4, note="four")])
    return chain


@pytest.fixture
def behind(template: Chain, tmp_path: Path) -> Chain:
    """Silver has two files and was vacuumed once, which sets how long it keeps some; it lacks an update, a
    delete and a create that bronze holds."""
    return template.copied_to(tmp_path)


def optimized(chain: Chain, uri: str) -> None:
    """All files become one, whether that pays or not."""
    snapshot = newest_snapshot(uri)
    assert snapshot is not None
    plan = replace(plan_optimize(snapshot.files), bins=(snapshot.files,))
    packed = optimize(chain.engine.isolated(), snapshot, plan, attempt="20261120T080000Z-00000001")
    assert packed.commits == (0 if packed.gave_way else 1)


def vacuumed(chain: Chain, uri: str) -> None:
    vacuum(chain.engine.isolated(), uri, retention=RETENTION)


def merged_with(behind: Chain, monkeypatch: pytest.MonkeyPatch, upkeep: Callable[..., None]) -> TableResult:
    """The upkeep of silver comes when the merge has written its files and has not committed them."""
    commit = RowReplacement.commit

    def overtaken(self: RowReplacement, *arguments: Any) -> None:
        upkeep(behind, behind.lake.silver("orders"))
        commit(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(RowReplacement, "commit", overtaken)
        (result,) = merge_tables(behind.application(ORDERS, job=Job.SILVER_MERGE))
    return result


def test_a_merge_whose_files_optimize_took_away_is_tried_again(behind, monkeypatch):
    result = merged_with(behind, monkeypatch, optimized)

    assert result.error is not None
    assert result.error.exit_code is ExitCode.RETRY
    assert behind.merge(ORDERS).status is TableStatus.ADVANCED
    assert notes(behind.silver(ORDERS)) == AFTER


def test_vacuum_in_the_middle_of_a_merge_costs_it_nothing(behind, monkeypatch):
    result = merged_with(behind, monkeypatch, vacuumed)

    assert result.status is TableStatus.ADVANCED
    assert notes(behind.silver(ORDERS)) == AFTER


def test_optimize_of_bronze_behind_the_look_costs_a_merge_nothing(behind):
    application = behind.application(ORDERS, job=Job.SILVER_MERGE)
    found = look_at(application, ORDERS)
    assert isinstance(found, MergeTask)
    optimized(behind, behind.lake.bronze("orders"))

    merge_table(application, found)

    assert notes(behind.silver(ORDERS)) == AFTER


@pytest.mark.parametrize(
    ("table", "deleted"), [(ORDERS, {}), (SOFT, {2: None})], ids=["by place", "by MERGE"]
)
def test_upkeep_at_the_same_time_changes_no_row(behind, table: Table, deleted):
    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(optimized, behind, behind.lake.silver("orders"))
        merge_tables(behind.application(table, job=Job.SILVER_MERGE))
        beside.exception()
    merge_tables(behind.application(table, job=Job.SILVER_MERGE))

    assert notes(behind.silver(table)) == {**AFTER, **deleted}
    assert behind.merge(table).status is TableStatus.IDLE
