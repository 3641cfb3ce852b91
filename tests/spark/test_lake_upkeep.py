"""Maintenance makes tables smaller and changes nothing that anybody reads (`guarantees` §2.8)."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from chain import Chain  # type: ignore[import-not-found]
from deltalake import DeltaTable
from orders import ORDERS, SOURCE, know, notes, order  # type: ignore[import-not-found]

from cdc_lakehouse.contract import Job, TableStatus
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.state import TableState, read_state
from cdc_lakehouse.maintenance.forget import forget
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


def state_at(uri: str) -> TableState:
    state = read_state(uri, table="orders")
    assert state is not None
    return state


def ledger_at(uri: str) -> Ledger:
    ledger = state_at(uri).ledger
    assert ledger is not None
    return ledger


def make_older(uri: str, *, days: int) -> None:
    """As if every file had been written, and removed, so long ago."""
    folder = Path(urlsplit(uri).path)
    then = (datetime.now(UTC) - timedelta(days=days)).timestamp()
    for log in (folder / "_delta_log").glob("*.json"):
        text = re.sub(r'"deletionTimestamp":\d+', f'"deletionTimestamp":{int(then * 1000)}', log.read_text())
        log.write_text(text)
    for path in [*folder.glob("*.parquet"), *folder.glob("_delta_log/*.json")]:
        os.utime(path, (then, then))
    for checksum in folder.glob("_delta_log/*.crc"):
        checksum.unlink()


def test_a_table_with_deletion_vectors_tells_its_ledger(small_files):
    uri = small_files.lake.silver("orders")
    log = Path(urlsplit(uri).path) / "_delta_log" / "00000000000000000002.json"

    state, ledger = state_at(uri), ledger_at(uri)

    assert '"deletionVector":{' in log.read_text()
    assert (state.version, ledger.seq, ledger.end(SOURCE, 0)) == (2, 2, 10)
    assert state.size_bytes > 0


def test_optimize_compacts_bronze_and_silver_and_keeps_their_ledgers(small_files):
    application = small_files.application(ORDERS, job=Job.OPTIMIZE)

    (result,) = optimize_tables(application)

    assert (result.status, result.counts) == (TableStatus.IDLE, {"tables": 3, "skipped": 0})
    assert len(DeltaTable(small_files.lake.bronze("orders")).file_uris()) == 1
    assert ledger_at(small_files.lake.bronze("orders")).seq == 3
    assert ledger_at(small_files.lake.silver("orders")).seq == 2
    assert notes(small_files.silver(ORDERS)) == KEPT


def test_a_dry_run_of_optimize_commits_nothing(small_files):
    optimize_tables(small_files.application(ORDERS, job=Job.OPTIMIZE, dry_run=True))

    assert state_at(small_files.lake.bronze("orders")).version == 3


def test_vacuum_deletes_what_no_version_within_the_retention_needs(small_files):
    uri = small_files.lake.bronze("orders")
    small_files.sql("OPTIMIZE {t}", uri)
    before = files_in(uri)

    vacuum(small_files.engine.isolated(), uri, retention=timedelta(0))

    assert (before, files_in(uri)) == (4, 1)
    assert notes(small_files.bronze(ORDERS)) == {**dict.fromkeys(range(8), "first"), 8: "changed"}
    assert ledger_at(uri).seq == 3


@pytest.mark.parametrize(("retention", "age", "left"), [("30d", 20, 4), ("1d", 3, 1)])
def test_vacuum_keeps_files_as_long_as_the_pipeline_says(small_files, retention, age, left):
    uri = small_files.lake.bronze("orders")
    small_files.sql("OPTIMIZE {t}", uri)
    make_older(uri, days=age)

    (result,) = vacuum_tables(small_files.application(ORDERS, job=Job.VACUUM, vacuum_retention=retention))

    assert result.counts == {"tables": 3, "skipped": 0}
    assert files_in(uri) == left


@pytest.mark.parametrize(
    ("before", "kept"), [(datetime(2023, 11, 14, tzinfo=UTC), [1]), (datetime.now(UTC), [])]
)
def test_only_deletes_from_before_the_retention_are_forgotten(small_files, before, kept):
    uri = small_files.lake.tombstones("orders")

    forget(small_files.engine.isolated(), uri, before=before)

    assert [row["id"] for row in small_files.rows(uri)] == kept


def test_a_second_vacuum_commits_no_setting_again(small_files):
    uri = small_files.lake.bronze("orders")
    session = small_files.engine.isolated()
    vacuum(session, uri, retention=timedelta(days=3))

    vacuum(session, uri, retention=timedelta(days=3))

    operations = [commit["operation"] for commit in DeltaTable(uri).history()]
    assert operations.count("SET TBLPROPERTIES") == 1


def test_a_table_that_does_not_exist_yet_is_left_alone(chain):
    (result,) = optimize_tables(chain.application(ORDERS, job=Job.OPTIMIZE))

    assert result.counts == {"tables": 0, "skipped": 0}
