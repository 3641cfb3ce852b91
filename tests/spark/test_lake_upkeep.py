"""Maintenance makes tables smaller and changes nothing that anybody reads (`guarantees` §2.8)."""

from __future__ import annotations

import os
import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from chain import Chain  # type: ignore[import-not-found]
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError
from orders import ORDERS, SOURCE, know, notes, order, planned  # type: ignore[import-not-found]
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.bronze.decided import Decided
from cdc_lakehouse.contract import Job, TableResult, TableStatus
from cdc_lakehouse.errors import FilesGoneError, ForeignCommitError, ForeignRowsError
from cdc_lakehouse.lake.delta_transaction import DeltaTransaction
from cdc_lakehouse.lake.health import health_in, health_of
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.snapshot import Snapshot, newest_snapshot
from cdc_lakehouse.lake.state import TableState, foreign_name, look_into, read_state
from cdc_lakehouse.lake.tables import properties_of
from cdc_lakehouse.maintenance import optimize as optimize_module
from cdc_lakehouse.maintenance.forget import forget
from cdc_lakehouse.maintenance.job import optimize_tables, vacuum_tables
from cdc_lakehouse.maintenance.memory import Memory, read_memories, write_memories
from cdc_lakehouse.maintenance.optimize import Packed, optimize
from cdc_lakehouse.maintenance.plan import OptimizePlan, VacuumKind, fill_bins, plan_optimize
from cdc_lakehouse.maintenance.restate import DEEP
from cdc_lakehouse.maintenance.rewriting import write_bins
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


ATTEMPT = "20261120T080000Z-00000001"
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


@pytest.fixture
def many_files(small_files: Chain) -> Chain:
    """Six files in bronze, and in silver two, one of them with hidden rows."""
    for offset in (10, 11, 12):
        small_files.ingest(ORDERS, [order(offset, 10 + offset, note="more")])
    return small_files


def optimized(chain: Chain, *, dry_run: bool = False) -> TableResult:
    (result,) = optimize_tables(chain.application(ORDERS, job=Job.OPTIMIZE, dry_run=dry_run))
    return result


def test_optimize_packs_bronze_and_keeps_its_ledger(many_files):
    result = optimized(many_files)

    packed = {"tables": 3, "skipped": 0, "files_packed": 6, "files_written": 1}
    bronze = {when: health["bronze/cases/orders"]["files"] for when, health in result.health.items()}
    assert (result.status, result.counts) == (TableStatus.MAINTAINED, packed)
    assert bronze == {"before": 6, "after": 1}
    assert len(DeltaTable(many_files.lake.bronze("orders")).file_uris()) == 1
    assert ledger_at(many_files.lake.bronze("orders")).seq == 6
    (statistics,) = pa.table(DeltaTable(many_files.lake.bronze("orders")).get_add_actions()).to_pylist()
    assert set(statistics["max"]) == {"topic", "partition", "offset", "kafka_timestamp"}
    assert len(notes(many_files.bronze(ORDERS))) == 12


def test_optimize_leaves_a_table_alone_where_it_does_not_pay_and_says_why(many_files):
    result = optimized(many_files)

    silver = result.maintenance["silver/cases/orders"]
    assert silver["reason"] == (
        "not worth it: 2 files below 32 MiB can become 1, 1 files hide 2 rows (25.0%)"
    )
    assert (silver["commits"], state_at(many_files.lake.silver("orders")).version) == (0, 2)


def test_a_second_optimize_finds_nothing_to_do(many_files):
    optimized(many_files)

    assert optimized(many_files).status is TableStatus.IDLE


def test_a_dry_run_of_optimize_says_what_it_would_do_and_commits_nothing(many_files):
    result = optimized(many_files, dry_run=True)

    assert (result.status, result.counts["files_packed"]) == (TableStatus.PLANNED, 0)
    assert result.maintenance["bronze/cases/orders"]["reason"] == (
        "6 files below 32 MiB can become 1, 0 files hide 0 rows (0.0%)"
    )
    assert state_at(many_files.lake.bronze("orders")).version == 6


def test_a_table_that_gives_way_for_a_week_is_red_and_one_optimize_heals_it(many_files, monkeypatch):
    lake, week = many_files.lake, Memory(6, datetime.now(UTC).date() - timedelta(days=1))
    write_memories(lake.maintenance("optimize", "orders"), {"bronze/cases/orders": week})

    with monkeypatch.context() as patch:
        patch.setattr(optimize_module, "_commit_unchanged", lambda *_: [])
        blocked = optimized(many_files)
    healed = optimized(many_files)

    assert blocked.error is not None
    assert (blocked.error.code, blocked.counts["skipped"]) == ("OPTIMIZE_OVERDUE", 1)
    assert blocked.maintenance["bronze/cases/orders"]["conflict_nights"] == 7
    assert (healed.error, healed.counts["files_packed"]) == (None, 6)
    assert read_memories(lake.maintenance("optimize", "orders")) == {}


def test_the_first_nights_on_which_a_table_gives_way_are_green(many_files, monkeypatch):
    monkeypatch.setattr(optimize_module, "_commit_unchanged", lambda *_: [])

    results = [optimized(many_files), optimized(many_files)]

    nights = [result.maintenance["bronze/cases/orders"]["conflict_nights"] for result in results]
    assert ([result.error for result in results], nights) == ([None, None], [1, 1])


@pytest.fixture
def forty_files(engine, tmp_path) -> tuple[Snapshot, OptimizePlan]:
    """A table of forty files of one row each, and a plan that makes one of two, eight times per commit."""
    uri = (tmp_path / "forty").as_uri()
    engine.session().range(0, 40, 1, 40).write.format("delta").save(uri)
    snapshot = newest_snapshot(uri)
    assert snapshot is not None
    bins = fill_bins(snapshot.files, target_bytes=2 * max(file.size for file in snapshot.files))
    return snapshot, replace(plan_optimize(snapshot.files), bins=bins)


def test_each_batch_of_optimize_is_a_commit_of_its_own(engine, forty_files):
    snapshot, plan = forty_files

    packed = optimize(engine.isolated(), snapshot, plan, attempt=ATTEMPT)

    assert packed == Packed(40, 20, sum(file.size for file in snapshot.files), commits=3)


def test_a_file_that_another_commit_changed_costs_optimize_its_bin(engine, forty_files):
    snapshot, plan = forty_files

    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(delete_a_row_of_a_later_batch, snapshot.uri)
        packed = optimize(engine.isolated(), snapshot, plan, attempt=ATTEMPT)

    deleted = beside.result(timeout=0)
    left = {row["id"] for row in engine.session().read.format("delta").load(snapshot.uri).collect()}
    assert left == set(range(40)) - {deleted}
    assert (packed.gave_way, packed.removed, packed.added, packed.commits) == (True, 38, 19, 3)


def test_a_commit_in_between_that_removes_other_files_costs_optimize_nothing(
    engine, forty_files, monkeypatch
):
    snapshot, plan = forty_files
    commit, others = DeltaTransaction.commit_rewrite, [int(each[0].oldest["id"]) for each in plan.bins[1:]]
    deleted = []

    def overtaken(*arguments: Any) -> int:
        deleted.append(others.pop())
        DeltaTable(snapshot.uri).delete(f"id = {deleted[-1]}")
        return commit(*arguments)

    monkeypatch.setattr(DeltaTransaction, "commit_rewrite", overtaken)
    packed = optimize(engine.isolated(), snapshot, replace(plan, bins=plan.bins[:1]), attempt=ATTEMPT)

    left = {row["id"] for row in engine.session().read.format("delta").load(snapshot.uri).collect()}
    operations = [each["operation"] for each in DeltaTable(snapshot.uri).history(2)]
    assert (packed.removed, packed.commits, packed.gave_way) == (2, 1, False)
    assert (operations, left) == (["OPTIMIZE", "DELETE"], set(range(40)) - {*deleted})


def test_optimize_commits_no_file_that_is_gone(engine, forty_files, monkeypatch):
    snapshot, plan = forty_files

    def write_and_lose(*arguments: Any, **facts: Any) -> Any:
        written = write_bins(*arguments, **facts)
        assert written[0].new is not None
        (Path(urlsplit(snapshot.uri).path) / written[0].new.name).unlink()
        return written

    monkeypatch.setattr(optimize_module, "write_bins", write_and_lose)

    with pytest.raises(FilesGoneError):
        optimize(engine.isolated(), snapshot, plan, attempt=ATTEMPT)
    assert DeltaTable(snapshot.uri).version() == snapshot.version


def test_a_table_that_somebody_else_packed_meanwhile_is_not_skipped(many_files, monkeypatch):
    def be_overtaken(_session: Any, uri: str, _written: Any) -> list[Any]:
        many_files.sql("OPTIMIZE {t}", uri)
        return []

    monkeypatch.setattr(optimize_module, "_commit_unchanged", be_overtaken)

    assert optimized(many_files).counts["skipped"] == 0


def delete_a_row_of_a_later_batch(uri: str) -> int:
    """Delete a row as soon as the first batch is committed, from a file that no batch has packed yet."""
    table, deadline = DeltaTable(uri), time.monotonic() + 120
    while time.monotonic() < deadline:
        table.update_incremental()
        if table.version() == 0:
            continue
        added = pa.table(table.get_add_actions(flatten=True)).to_pylist()
        row = int(next(file["min.id"] for file in added if file["num_records"] == 1))
        try:
            table.delete(f"id = {row}")
        except CommitFailedError:
            continue
        return row
    raise TimeoutError("no batch was committed")


def test_hidden_rows_above_their_share_are_taken_out_of_a_file_that_is_alone(engine, tmp_path):
    uri = (tmp_path / "hidden").as_uri()
    session = engine.isolated()
    session.range(0, 8000, 1, 1).write.format("delta").option("delta.enableDeletionVectors", "true").save(uri)
    session.sql(f"DELETE FROM delta.`{uri}` WHERE id % 4 = 0").collect()
    snapshot = newest_snapshot(uri)
    assert snapshot is not None

    packed = optimize(engine.isolated(), snapshot, plan_optimize(snapshot.files), attempt=ATTEMPT)

    health = health_of(uri)
    assert health is not None
    assert (health_in(snapshot).hidden_rows, packed.removed) == (2000, 1)
    assert (health.hidden_rows, health.rows) == (0, 6000)


TYPES = {
    "id": "bigint",
    "small": "int",
    "price": "decimal(38, 9)",
    "day": "date",
    "at": "timestamp",
    "local": "timestamp_ntz",
    "ratio": "double",
    "flag": "boolean",
    "raw": "binary",
    "pair": "struct<one: bigint, other: string>",
    "names": "array<string>",
    "bag": "map<string, int>",
}
VALUES = {
    "price": "cast(id as decimal(38, 9)) / 7",
    "day": "date_add('0001-01-01', cast(id as int) * 300)",
    "at": "timestamp_micros(-62135596800000000 + id * 1234567890123)",
    "local": "timestamp_ntz'1500-03-01 00:00:00.000001'",
    "ratio": "if(id % 10 = 0, double('NaN'), -0.0 * id)",
    "flag": "if(id % 3 = 0, NULL, id % 2 = 0)",
    "raw": "cast(concat('x', id) as binary)",
    "pair": "if(id % 5 = 0, NULL, named_struct('one', id, 'other', repeat('ä', 40)))",
    "names": "if(id % 4 = 0, NULL, array(NULL, concat('n', id)))",
    "bag": "map('k', cast(id as int), 'null', NULL)",
}


@pytest.fixture(scope="module")
def all_types(engine, tmp_path_factory) -> Snapshot:
    """Return a table of five files with hidden rows, three of them older than two changes of its columns."""
    uri, session = (tmp_path_factory.mktemp("types") / "all").as_uri(), engine.isolated()
    columns = ", ".join(f"{name} {'smallint' if name == 'small' else kind}" for name, kind in TYPES.items())
    session.sql(
        f"CREATE TABLE delta.`{uri}` ({columns}) USING delta TBLPROPERTIES "
        "('delta.enableDeletionVectors' = true, 'delta.enableTypeWidening' = true)"
    )
    for part in range(5):
        values = {"small": "cast(id as smallint)", **VALUES}
        if part == 3:
            session.sql(f"ALTER TABLE delta.`{uri}` ALTER COLUMN small TYPE int")
            session.sql(f"ALTER TABLE delta.`{uri}` ADD COLUMN later string")
        if part >= 3:
            values |= {"small": "cast(70000 + id as int)", "later": "'later'"}
        rows = session.range(100 * part, 100 * part + 100, 1, 1)
        rows = rows.select("id", *(F.expr(value).alias(name) for name, value in values.items()))
        rows.write.format("delta").mode("append").save(uri)
    session.sql(f"DELETE FROM delta.`{uri}` WHERE id % 3 = 1").collect()
    snapshot = newest_snapshot(uri)
    assert snapshot is not None
    return snapshot


def test_rows_of_all_types_are_the_same_behind_optimize(engine, all_types):
    session, uri = engine.isolated(), all_types.uri
    before = rows_as_text(session, uri)
    plan = plan_optimize(all_types.files)

    packed = optimize(session, all_types, plan, attempt=ATTEMPT)

    assert (packed.removed, packed.added) == (5, 1)
    assert rows_as_text(session, uri) == before
    assert rows_as_text(session, uri, "id = 498 AND small > 70000 AND later = 'later'") == before[-1:]


def test_a_damaged_file_stops_optimize_before_its_commit_and_is_named(many_files):
    uri = many_files.lake.bronze("orders")
    damaged = max(Path(urlsplit(uri).path).glob("*.parquet"), key=lambda path: path.stat().st_size)
    content = bytearray(damaged.read_bytes())
    content[100] ^= 1
    damaged.write_bytes(content)

    result = optimized(many_files)

    assert result.error is not None
    assert (result.error.code, damaged.name in result.error.sentence) == ("FILE_DAMAGED", True)
    assert (state_at(uri).version, len(DeltaTable(uri).file_uris())) == (6, 6)


def rows_as_text(session: SparkSession, uri: str, condition: str = "true") -> list[str]:
    rows = session.read.format("delta").load(uri).where(condition).orderBy("id")
    return [str(row) for row in rows.select(F.to_json(F.struct("*")), F.hex("raw"), "ratio").collect()]


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
    assert {facts["kind"] for facts in result.maintenance.values()} == {"full"}
    assert (result.status, reclaimed > 0) == (
        (TableStatus.MAINTAINED, True) if deleted else (TableStatus.IDLE, False)
    )
    assert files_in(uri) == left


def lay_a_stray_file(uri: str) -> Path:
    """A file that no commit names, as a run that died leaves it."""
    stray = Path(urlsplit(uri).path) / "stray.parquet"
    stray.write_bytes(b"PAR1")
    return stray


def test_vacuum_lists_the_folder_once_a_week_and_reads_the_log_between(small_files):
    uri = small_files.lake.bronze("orders")
    small_files.sql("OPTIMIZE {t}", uri)
    first = vacuumed(small_files)
    stray = lay_a_stray_file(uri)
    make_older(uri, days=20)

    between = vacuumed(small_files)
    is_left = stray.exists()
    memory = small_files.lake.maintenance("vacuum", "orders")
    week_ago = datetime.now(UTC) - timedelta(days=7)
    write_memories(memory, {name: Memory(last_full_vacuum=week_ago) for name in read_memories(memory)})
    full = vacuumed(small_files)

    kinds = [result.maintenance["bronze/cases/orders"]["kind"] for result in (first, between, full)]
    assert kinds == ["full", "lite", "full"]
    assert (between.counts["files_deleted"], is_left, stray.exists()) == (3, True, False)


def test_a_table_whose_log_names_too_little_gets_a_full_vacuum(small_files):
    uri = small_files.lake.bronze("orders")
    stray = lay_a_stray_file(uri)
    make_older(uri, days=20)
    forget_commits_below(uri, 2, small_files)

    reclaimed = vacuum(small_files.engine.isolated(), uri, retention=timedelta(days=7), kind=VacuumKind.LITE)

    assert (reclaimed.kind, stray.exists()) == (VacuumKind.FULL, False)


def test_a_dry_run_of_vacuum_says_which_kind_it_would_be(small_files):
    (result,) = vacuum_tables(small_files.application(ORDERS, job=Job.VACUUM, dry_run=True))

    assert result.status is TableStatus.PLANNED
    assert {facts["kind"] for facts in result.maintenance.values()} == {"full"}


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
