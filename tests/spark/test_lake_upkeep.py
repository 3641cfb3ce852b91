"""Maintenance makes tables smaller and changes nothing that anybody reads (`guarantees` §2.8)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from chain import Chain  # type: ignore[import-not-found]
from deltalake import DeltaTable
from orders import ORDERS, SOURCE, know, notes, order  # type: ignore[import-not-found]

from cdc_lakehouse.contract import Job, TableStatus
from cdc_lakehouse.lake.state import read_state
from cdc_lakehouse.maintenance.job import optimize_tables, vacuum_tables
from cdc_lakehouse.maintenance.vacuum import vacuum


@pytest.fixture(scope="module")
def template(engine, tmp_path_factory) -> Chain:
    chain = Chain(engine, root=tmp_path_factory.mktemp("upkeep").as_uri())
    know(chain)
    chain.ingest(ORDERS, [order(number, number, note="first") for number in range(8)])
    chain.merge(ORDERS)
    chain.ingest(ORDERS, [order(8, 0, op="u", note="changed")])
    chain.ingest(ORDERS, [order(9, 1, op="d")])
    chain.merge(ORDERS)
    return chain


@pytest.fixture
def small_files(template: Chain, tmp_path: Path) -> Chain:
    """Three commits in bronze; in silver rows of the first commit that a later one changed or deleted."""
    return template.copied_to(tmp_path)


KEPT = {0: "changed", **dict.fromkeys(range(2, 8), "first")}


def files_in(uri: str) -> int:
    return len(list(Path(urlsplit(uri).path).glob("*.parquet")))


def test_a_table_with_deletion_vectors_tells_its_ledger(small_files):
    uri = small_files.lake.silver("orders")
    log = Path(urlsplit(uri).path) / "_delta_log" / "00000000000000000002.json"

    state = read_state(uri, table="orders")

    assert '"deletionVector":{' in log.read_text()
    assert (state.version, state.ledger.seq, state.ledger.end(SOURCE, 0)) == (2, 2, 10)
    assert state.size_bytes > 0


def test_optimize_compacts_bronze_and_silver_and_keeps_their_ledgers(small_files):
    application = small_files.application(ORDERS, job=Job.OPTIMIZE)

    (result,) = optimize_tables(application)

    assert (result.status, result.counts) == (TableStatus.IDLE, {"tables": 2, "skipped": 0})
    assert len(DeltaTable(small_files.lake.bronze("orders")).file_uris()) == 1
    assert read_state(small_files.lake.bronze("orders"), table="orders").ledger.seq == 3
    assert read_state(small_files.lake.silver("orders"), table="orders").ledger.seq == 2
    assert notes(small_files.silver(ORDERS)) == KEPT


def test_a_dry_run_of_optimize_commits_nothing(small_files):
    optimize_tables(small_files.application(ORDERS, job=Job.OPTIMIZE, dry_run=True))

    assert read_state(small_files.lake.bronze("orders"), table="orders").version == 3


def test_vacuum_deletes_what_no_version_within_the_retention_needs(small_files):
    uri = small_files.lake.bronze("orders")
    small_files.sql("OPTIMIZE {t}", uri)
    before = files_in(uri)

    vacuum(small_files.engine.isolated(), uri, retention=timedelta(0))

    assert (before, files_in(uri)) == (4, 1)
    assert notes(small_files.bronze(ORDERS)) == {**dict.fromkeys(range(8), "first"), 8: "changed"}
    assert read_state(uri, table="orders").ledger.seq == 3


def test_vacuum_keeps_the_files_of_the_last_seven_days(small_files):
    uri = small_files.lake.bronze("orders")
    small_files.sql("OPTIMIZE {t}", uri)

    (result,) = vacuum_tables(small_files.application(ORDERS, job=Job.VACUUM))

    assert result.counts == {"tables": 2}
    assert files_in(uri) == 4


def test_a_table_that_does_not_exist_yet_is_left_alone(chain):
    (result,) = optimize_tables(chain.application(ORDERS, job=Job.OPTIMIZE))

    assert result.counts == {"tables": 0, "skipped": 0}
