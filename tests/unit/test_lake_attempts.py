"""Records of running attempts: what maintenance asks before it deletes (`guarantees` §2.8)."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest
from delta_logs import commit_of, ledger_of, write_log  # type: ignore[import-not-found]

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.session import LazySession
from cdc_lakehouse.config.models import Pipeline
from cdc_lakehouse.contract import Job, JobRequest
from cdc_lakehouse.errors import StorageUnavailableError
from cdc_lakehouse.lake.attempts import (
    SILENCE,
    AttemptRecord,
    RunningAttempt,
    forget_ended,
    oldest_writer,
    read_attempts,
)
from cdc_lakehouse.lake.names import Lake, new_attempt
from cdc_lakehouse.maintenance.job import vacuum_tables

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
MINE, OTHER = "20260110T110000Z-00000001", "20260110T100000Z-00000002"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(root=tmp_path.as_uri(), pipeline="shop")


def record(attempt: str, *, began: datetime = NOW - DAY, seen: datetime = NOW, ended=None) -> AttemptRecord:
    return AttemptRecord(attempt=attempt, job="bronze_ingest", began=began, seen=seen, ended=ended)


def test_an_attempt_may_write_until_it_says_that_it_ended(lake):
    times = iter([NOW, NOW, NOW + MINUTE])
    running = RunningAttempt(lake, MINE, job="bronze_ingest", clock=lambda: next(times))

    running.begin()
    while_it_ran = read_attempts(lake, longest=2 * HOUR)[MINE]
    running.end()
    behind = read_attempts(lake, longest=2 * HOUR)[MINE]

    assert while_it_ran.may_write(NOW + MINUTE)
    assert (behind.ended, behind.may_write(NOW + MINUTE)) == (NOW + MINUTE, False)


def test_a_process_that_never_started_spark_leaves_no_record(lake):
    RunningAttempt(lake, MINE, job="bronze_ingest").end()

    assert read_attempts(lake, longest=2 * HOUR) == {}


def test_a_process_that_was_killed_counts_as_ended_when_it_has_been_silent():
    killed = record(MINE, seen=NOW - SILENCE)

    assert killed.may_write(NOW - MINUTE)
    assert not killed.may_write(NOW)
    assert killed.last_sign == NOW - SILENCE


def test_an_attempt_that_cannot_write_its_record_does_not_start(tmp_path):
    (tmp_path / "_ops").write_text("a file where the folder has to be")

    with pytest.raises(StorageUnavailableError):
        RunningAttempt(Lake(root=tmp_path.as_uri(), pipeline="shop"), MINE, job="bronze_ingest").begin()


def write_torn(tmp_path: Path, attempt: str, content: str, *, modified: datetime) -> None:
    path = tmp_path / f"_ops/shop/attempts/{attempt}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    os.utime(path, (modified.timestamp(), modified.timestamp()))


@pytest.mark.parametrize("content", ["", "{", '{"attempt": "x"}', "[]", "7", '{"ended": null, "began": "x"}'])
def test_a_torn_record_lives_as_long_as_airflow_lets_its_attempt(lake, tmp_path, content):
    write_torn(tmp_path, MINE, content, modified=NOW)

    torn = read_attempts(lake, longest=2 * HOUR)[MINE]

    assert (torn.is_torn, torn.began, torn.last_sign) == (True, NOW - HOUR, NOW)
    assert torn.may_write(NOW + 2 * HOUR - MINUTE)
    assert not torn.may_write(NOW + 2 * HOUR)


def test_a_torn_record_is_never_silent_for_less_than_a_whole_one(lake, tmp_path):
    write_torn(tmp_path, MINE, "", modified=NOW)

    torn = read_attempts(lake, longest=MINUTE)[MINE]

    assert torn.may_write(NOW + SILENCE - MINUTE)
    assert not torn.may_write(NOW + SILENCE)


def test_a_torn_record_under_a_name_of_no_attempt_begins_with_its_file(lake, tmp_path):
    write_torn(tmp_path, "copied", "", modified=NOW)

    assert read_attempts(lake, longest=HOUR)["copied"].began == NOW


def test_a_process_that_is_alive_mends_its_torn_record(lake, tmp_path):
    times = iter([NOW, NOW, NOW + MINUTE])
    running = RunningAttempt(lake, MINE, job="bronze_ingest", clock=lambda: next(times))
    write_torn(tmp_path, MINE, "{", modified=NOW)

    running.beat()

    assert not read_attempts(lake, longest=HOUR)[MINE].is_torn


def test_torn_records_are_deleted_once_their_attempts_cannot_be_alive(lake, tmp_path):
    write_torn(tmp_path, MINE, "", modified=NOW - HOUR)
    write_torn(tmp_path, OTHER, "", modified=NOW - 2 * HOUR)
    records = read_attempts(lake, longest=2 * HOUR)

    assert forget_ended(lake, records, now=NOW, retention=DAY) == 1
    assert list(read_attempts(lake, longest=2 * HOUR)) == [MINE]


def test_a_record_is_on_the_disk_before_it_takes_its_name(lake, tmp_path, monkeypatch):
    synced: list[bytes] = []
    monkeypatch.setattr("os.fsync", lambda file: synced.append(os.pread(file, 100, 0)[:11]))

    RunningAttempt(lake, MINE, job="bronze_ingest").beat()

    assert synced == [b'{"attempt":']


def test_the_oldest_writer_is_another_attempt_that_has_not_ended():
    records = [
        record("ended", began=NOW - 9 * DAY, ended=NOW),
        record("silent", began=NOW - 8 * DAY, seen=NOW - DAY),
        record(MINE, began=NOW - 7 * DAY),
        record(OTHER, began=NOW - 2 * DAY),
        record("young", began=NOW),
    ]

    oldest = oldest_writer(records, now=NOW, besides=MINE)

    assert oldest is not None
    assert oldest.attempt == OTHER
    assert oldest_writer(records[:3], now=NOW, besides=MINE) is None


def test_records_of_attempts_that_ended_before_the_retention_are_deleted_once(lake, tmp_path):
    folder = tmp_path / "_ops/shop/attempts"
    folder.mkdir(parents=True)
    records = {
        "old": record("old", ended=NOW - 2 * DAY),
        "young": record("young", ended=NOW),
        "long": record("long", began=NOW - 9 * DAY),
    }
    for name, each in records.items():
        (folder / f"{name}.json").write_text(each.to_json())

    assert read_attempts(lake, longest=2 * HOUR) == records
    assert forget_ended(lake, records, now=NOW, retention=DAY) == 1
    assert sorted(read_attempts(lake, longest=2 * HOUR)) == ["long", "young"]
    assert forget_ended(lake, read_attempts(lake, longest=2 * HOUR), now=NOW, retention=DAY) == 0


class NoSpark:
    def isolated(self) -> None:
        raise AssertionError("VACUUM deletes files")


def vacuuming(lake: Lake, now: datetime, *, retention: str = "2d") -> Application:
    pipeline = Pipeline.model_validate(
        {
            "version": 1,
            "name": "shop",
            "owner": "tests",
            "schedule": "0 * * * *",
            "start_date": date(2026, 1, 1),
            "maintenance": {"vacuum_retention": retention},
            "tables": [{"name": "orders", "topics": ["shop.orders"]}],
        }
    )
    return Application(
        request=JobRequest(job=Job.VACUUM, pipeline="shop", tables=()),
        pipeline=pipeline,
        tables=pipeline.tables,
        lake=lake,
        attempt=new_attempt(now),
        spark=cast(LazySession, NoSpark()),
    )


def write_bronze(lake: Lake, now: datetime) -> None:
    info, *actions = commit_of(ledger_of("orders", topic="shop.orders", end=5))
    info["commitInfo"]["timestamp"] = int(now.timestamp() * 1000)
    write_log(lake.bronze("orders"), [info, *actions])


def test_vacuum_waits_for_the_attempt_of_a_torn_record_no_longer_than_it_can_live(lake, tmp_path):
    now = datetime.now(UTC)
    write_bronze(lake, now)
    application = vacuuming(lake, now)
    attempt = new_attempt(now - 3 * DAY)
    write_torn(tmp_path, attempt, "", modified=now - HOUR)

    (spared,) = vacuum_tables(application)
    write_torn(tmp_path, attempt, "", modified=now - 2 * HOUR)
    (deletes,) = vacuum_tables(application)

    assert (spared.error, spared.counts["skipped"]) == (None, 1)
    assert application.notes == {"torn_attempt_records": [attempt]}
    assert deletes.error is not None
    assert "VACUUM deletes files" in deletes.error.sentence


def test_vacuum_keeps_all_files_while_an_attempt_has_run_longer_than_the_retention(lake):
    """Files that it has not committed yet are older than the retention, and no version names them."""
    now = datetime.now(UTC)
    write_bronze(lake, now)
    times = iter([now - 3 * DAY])
    running = RunningAttempt(lake, OTHER, job="bronze_ingest", clock=lambda: next(times, now))
    running.begin()
    application = vacuuming(lake, now)

    (spared,) = vacuum_tables(application)
    running.end()
    (deletes,) = vacuum_tables(application)

    assert (spared.error, spared.counts) == (
        None,
        {
            "tables": 1,
            "skipped": 1,
            "files_deleted": 0,
            "bytes_reclaimed": 0,
            "restated": 0,
        },
    )
    assert deletes.error is not None
    assert "VACUUM deletes files" in deletes.error.sentence
