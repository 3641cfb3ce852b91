"""Ingest, merge and maintenance in a bucket, two drivers at once, a run that dies between data and commit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pyarrow as pa
import pytest
from chain import Chain  # type: ignore[import-not-found]
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError
from faulty_store import COMMITS, Fault  # type: ignore[import-not-found]
from orders import ORDERS, SOURCE, know, notes, order  # type: ignore[import-not-found]
from pyarrow.fs import FileSelector

from cdc_lakehouse.contract import Job, JobResult, TableStatus
from cdc_lakehouse.errors import StorageUnavailableError, SupersededError
from cdc_lakehouse.lake import files
from cdc_lakehouse.lake.filesystem import delta_options, filesystem_of
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.reports import newest_results, write_reports
from cdc_lakehouse.lake.rows import read_rows
from cdc_lakehouse.lake.state import read_state
from cdc_lakehouse.maintenance import plan as maintenance_plan
from cdc_lakehouse.maintenance.job import clean_tables, optimize_tables
from cdc_lakehouse.maintenance.vacuum import vacuum


def ledger_at(uri: str) -> Ledger:
    state = read_state(uri, table="orders")
    assert state is not None
    assert state.ledger is not None
    return state.ledger


def rows_at(uri: str) -> pa.Table:
    rows = read_rows(uri)
    assert rows is not None
    return rows


def parquet_files(uri: str) -> int:
    filesystem, path = filesystem_of(uri)
    return sum(info.extension == "parquet" for info in filesystem.get_file_info(FileSelector(path)))


@pytest.fixture
def bronze(chain: Chain) -> Chain:
    """Offsets 0 and 1."""
    know(chain)
    chain.ingest(ORDERS, [order(0, 1, note="one"), order(1, 2, note="two")])
    return chain


def test_rows_arrive_in_silver_and_maintenance_changes_none(bronze, monkeypatch):
    # Two files are not worth a commit otherwise.
    monkeypatch.setattr(maintenance_plan, "LEAST_SAVED", 1)
    bronze.merge(ORDERS)
    bronze.ingest(ORDERS, [order(2, 1, op="u", note="new"), order(3, 2, op="d")])
    bronze.merge(ORDERS)
    optimize_tables(bronze.application(ORDERS, job=Job.OPTIMIZE))
    vacuum(bronze.engine.isolated(), bronze.lake.bronze("orders"), retention=timedelta(0))
    (cleaned,) = clean_tables(bronze.application(ORDERS, job=Job.CLEAN_CHECKPOINTS))

    assert parquet_files(bronze.lake.bronze("orders")) == 1
    assert (ledger_at(bronze.lake.bronze("orders")).seq, ledger_at(bronze.lake.silver("orders")).seq) == (
        2,
        2,
    )
    assert ledger_at(bronze.lake.silver("orders")).end(SOURCE, 0) == 4
    assert rows_at(bronze.lake.silver("orders")).select(["id", "note"]).to_pylist() == [
        {"id": 1, "note": "new"}
    ]
    assert cleaned.status is TableStatus.IDLE


def test_files_of_a_run_that_dies_before_its_commit_are_nobodys(bronze, faulty):
    uri = bronze.lake.bronze("orders")
    no_commit = Fault(COMMITS, refuse_with=403)
    with faulty.behaving(no_commit), pytest.raises(StorageUnavailableError) as caught:
        bronze.ingest(ORDERS, [order(2, 3, note="three")])
    left = parquet_files(uri)
    bronze.ingest(ORDERS, [order(2, 3, note="three")])

    vacuum(bronze.engine.isolated(), uri, retention=timedelta(0))

    assert no_commit.met > 0
    assert "Forbidden" in caught.value.reason or "403" in caught.value.reason
    assert (left, parquet_files(uri)) == (2, 2)
    assert notes(bronze.bronze(ORDERS)) == {0: "one", 1: "two", 2: "three"}


def test_a_writer_who_is_overtaken_at_the_last_moment_has_lost(bronze, faulty):
    """It has looked and found no such version, as everybody has who races with it."""
    overtaken = Fault(COMMITS, rival="winner")
    with faulty.behaving(overtaken), pytest.raises(SupersededError):
        bronze.ingest(ORDERS, [order(2, 3, note="three")])

    found = ledger_at(bronze.lake.bronze("orders"))
    assert (overtaken.met, found.seq, found.attempt) == (1, 2, "winner")
    assert [row["offset"] for row in bronze.bronze(ORDERS)] == [0, 1, 2]


def test_of_two_processes_the_one_that_was_held_before_its_commit_has_lost(bronze, faulty, another):
    with faulty.behaving(Fault(COMMITS, holds=1)):
        another.begin(bronze.root)
        faulty.wait_until_met()
        bronze.ingest(ORDERS, [order(2, 3, note="ours")])

    assert another.outcome() == "SupersededError"
    assert notes(bronze.bronze(ORDERS)) == {0: "one", 1: "two", 2: "ours"}
    assert ledger_at(bronze.lake.bronze("orders")).seq == 2


def test_a_commit_that_arrives_after_its_process_was_killed_comes_too_late(bronze, faulty, another):
    uri = bronze.lake.bronze("orders")
    with faulty.behaving(Fault(COMMITS, holds=1)) as late:
        another.begin(bronze.root)
        faulty.wait_until_met()
        another.kill()
        bronze.ingest(ORDERS, [order(2, 3, note="ours")])

    vacuum(bronze.engine.isolated(), uri, retention=timedelta(0))

    assert late.met == 2
    assert notes(bronze.bronze(ORDERS)) == {0: "one", 1: "two", 2: "ours"}
    assert (ledger_at(uri).seq, parquet_files(uri)) == (2, 2)


def test_a_commit_whose_answer_is_lost_has_happened_once(bronze, faulty):
    with faulty.behaving(Fault(COMMITS, lose_answers=1)) as seen:
        result = bronze.ingest(ORDERS, [order(2, 3, note="three")])

    assert (seen.met, result.status) == (2, TableStatus.ADVANCED)
    assert ledger_at(bronze.lake.bronze("orders")).seq == 2
    assert [row["offset"] for row in bronze.bronze(ORDERS)] == [0, 1, 2]


def test_of_two_drivers_at_once_no_commit_is_lost(chain):
    """The other one is delta-rs: another process would be no other code, and no more foreign."""
    uri = f"{chain.root}/race"
    session = chain.engine.isolated()
    session.range(1).withColumnRenamed("id", "n").write.format("delta").save(uri)

    def by_delta_rs(_: int) -> int:
        try:
            write_deltalake(uri, pa.table({"n": [1]}), mode="append", storage_options=delta_options(uri))
        except DeltaError:
            return 0
        return 1

    def by_spark(_: int) -> int:
        session.range(1).withColumnRenamed("id", "n").write.format("delta").mode("append").save(uri)
        return 1

    with ThreadPoolExecutor(3) as pool:
        others = pool.map(by_delta_rs, range(8))
        ours = pool.map(by_spark, range(5))
        acknowledged = 1 + sum(others) + sum(ours)

    assert rows_at(uri).num_rows == acknowledged
    assert DeltaTable(uri, storage_options=delta_options(uri)).version() == acknowledged - 1


def test_reports_and_small_files_are_kept_beside_the_tables(chain):
    application = chain.application(ORDERS)
    result = JobResult(job=Job.BRONZE_INGEST, pipeline="cases", attempt=application.attempt, tables=())

    write_reports(chain.lake, result, airflow=None)
    files.write_text(f"{chain.root}/_ops/note.txt", "first")
    files.write_text(f"{chain.root}/_ops/note.txt", "second")

    assert newest_results(chain.lake) == [result]
    assert files.read_text(f"{chain.root}/_ops/note.txt") == "second"
    assert files.read_text_if_there(f"{chain.root}/_ops/none.txt") is None
    assert [folder.name for folder in files.folders(f"{chain.root}/_ops")] == ["cases"]


def test_a_folder_is_deleted_with_all_that_is_in_it(chain):
    files.write_text(f"{chain.root}/a/b/c.txt", "x")

    files.delete_child(f"{chain.root}/a", "b")

    assert files.folders(f"{chain.root}/a") == []
    assert files.read_text_if_there(f"{chain.root}/a/b/c.txt") is None


def test_no_login_is_in_sparks_settings(bronze, storage):
    session = bronze.session
    hadoop = session.sparkContext._jsc.hadoopConfiguration()
    settings = dict(session.sparkContext.getConf().getAll())
    found = [entry.getValue() for entry in hadoop.iterator()]

    assert storage.s3.password not in "".join([*settings.values(), *filter(None, found)])
    assert settings["spark.hadoop.fs.s3a.aws.credentials.provider"] == "cdclakehouse.ConnectionCredentials"
