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
from orders import ORDERS, SOURCE, know, notes, order, planned  # type: ignore[import-not-found]

from cdc_lakehouse.bronze.decided import Decided
from cdc_lakehouse.contract import Job, TableResult, TableStatus
from cdc_lakehouse.errors import ForeignCommitError, ForeignRowsError
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.state import TableState, foreign_name, look_into, read_state
from cdc_lakehouse.lake.tables import properties_of
from cdc_lakehouse.maintenance.forget import forget
from cdc_lakehouse.maintenance.job import optimize_tables, vacuum_tables
from cdc_lakehouse.maintenance.restate import DEEP
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

    packed = {"tables": 3, "skipped": 0, "files_packed": 5, "files_written": 2}
    bronze = {when: health["bronze/cases/orders"]["files"] for when, health in result.health.items()}
    assert (result.status, result.counts) == (TableStatus.MAINTAINED, packed)
    assert bronze == {"before": 3, "after": 1}
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

    counts = dict(result.counts)
    reclaimed = counts.pop("bytes_reclaimed")
    deleted = 4 - left
    assert counts == {"tables": 3, "skipped": 0, "files_deleted": deleted, "restated": 0}
    assert (result.status, reclaimed > 0) == (
        (TableStatus.MAINTAINED, True) if deleted else (TableStatus.IDLE, False)
    )
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

    assert result.counts == {"tables": 0, "skipped": 0, "files_packed": 0, "files_written": 0}


def vacuumed(chain: Chain) -> TableResult:
    (result,) = vacuum_tables(chain.application(ORDERS, job=Job.VACUUM))
    return result


def make_deep(chain: Chain, uri: str) -> None:
    """As after some nights of maintenance on a table that stands still."""
    for number in range(DEEP):
        chain.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('night' = '{number}')", uri)


def forget_commits_below(uri: str, version: int, chain: Chain) -> None:
    """What Delta does with commits that are older than the retention of the log."""
    log = chain.session._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(chain.session._jsparkSession, uri)
    log.checkpoint()
    for path in (Path(urlsplit(uri).path) / "_delta_log").glob("*.json"):
        if int(path.stem) < version:
            path.unlink()


def test_a_table_that_stands_still_keeps_its_ledger_when_its_log_expires(small_files):
    uris = small_files.lake.bronze("orders"), small_files.lake.silver("orders")
    before = [ledger_at(uri) for uri in uris]
    for uri in uris:
        make_deep(small_files, uri)

    assert vacuumed(small_files).counts["restated"] == 2
    for uri in uris:
        stated = state_at(uri).stated
        assert stated is not None
        forget_commits_below(uri, stated, small_files)
    behind = [ledger_at(uri) for uri in uris]

    assert [(old.seq, old.attempt, old.sources) for old in before] == [
        (new.seq, new.attempt, new.sources) for new in behind
    ]
    assert vacuumed(small_files).counts["restated"] == 0
    small_files.ingest(ORDERS, [order(10, 0, op="u", note="later")])
    small_files.merge(ORDERS)
    assert notes(small_files.silver(ORDERS)) == {**KEPT, 0: "later"}


def test_maintenance_keeps_a_month_of_the_log_of_tables_with_a_ledger(small_files):
    vacuumed(small_files)

    kept = [
        properties_of(uri)["delta.logRetentionDuration"]
        for uri in (small_files.lake.bronze("orders"), small_files.lake.tombstones("orders"))
    ]

    assert kept == ["interval 30 days", "interval 365 days"]


@pytest.mark.parametrize("layer", ["bronze", "silver"])
def test_a_ledger_that_was_stated_again_covers_no_foreign_change(small_files, layer):
    uri = getattr(small_files.lake, layer)("orders")
    make_deep(small_files, uri)
    vacuumed(small_files)

    small_files.sql("DELETE FROM {t}", uri)

    with pytest.raises(ForeignCommitError):
        state_at(uri)


def test_a_ledger_is_not_stated_again_over_a_foreign_change(small_files):
    uri = small_files.lake.bronze("orders")
    make_deep(small_files, uri)
    small_files.sql("DELETE FROM {t} WHERE offset = 1", uri)

    result = vacuumed(small_files)

    assert result.error is not None
    assert result.error.code == "FOREIGN_COMMIT"


@pytest.mark.parametrize("is_vacuumed", [False, True])
def test_rows_deleted_by_hand_weeks_after_our_last_commit_are_acknowledged(small_files, is_vacuumed):
    uri = small_files.lake.bronze("orders")
    make_older(uri, days=20)
    small_files.sql("DELETE FROM {t} WHERE offset = 1", uri)
    state = look_into(uri, table="orders")
    assert state is not None
    decided = Decided(acknowledge_foreign=frozenset({foreign_name(state)}))
    if is_vacuumed:
        vacuum(small_files.engine.isolated(), uri, retention=timedelta(0))
        with pytest.raises(ForeignRowsError) as caught:
            planned(small_files, decided, held=(0, 10))
        assert "data file(s) of that version are gone" in caught.value.problem
        return

    plan = planned(small_files, decided, held=(0, 10))

    assert plan.ledger.sources[SOURCE][0].gaps == ((1, 2),)
